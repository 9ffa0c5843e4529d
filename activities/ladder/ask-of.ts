import { isRewarded } from '../../core/episode/outcome.ts';
import type { Episode } from '../../core/episode/episode.ts';
import { learnedName } from '../../core/ladder/learned-tier.ts';
import type { LearnedTier, LearnedVerdict } from '../../core/ladder/learned-tier.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import type { VerdictRequest, CheaperVerdict } from '../../core/ladder/requests.ts';
import { tierQueue } from '../../core/names.ts';
import type { TierSpec } from '../../core/schema/verification.ts';
import { DEFAULT_TIER_LIMITS } from '../../environments/contract/environment.ts';
import type { LadderCandidate, TierView } from './candidates.ts';

/** How long people are waited for where the verifier does not say. */
const PEOPLE_TAKE_SECONDS = 7 * 24 * 3600;

/** What must be asked for a verdict, for which run, and of whom. */
export function askOf(
  { verifier, subject, digest }: TierView,
  environment: string,
  { reviewers, ...asking }: { reviewers: number; run: string; cheaper?: CheaperVerdict[] },
): VerdictRequest {
  const { name, version, tier, cost, served, limits } = verifier;
  return {
    request: { format: 'gradus.verify/1', verifier: name, version, digest, subject },
    environment,
    cost,
    limits: {
      ...DEFAULT_TIER_LIMITS,
      ...(served.by === 'people' && { timeoutSeconds: PEOPLE_TAKE_SECONDS }),
      ...limits,
    },
    served:
      served.by === 'people'
        ? { by: 'people', reviewers }
        : { by: 'queue', queue: tierQueue(tier, served.by === 'pool' ? served.pool : undefined) },
    ...asking,
  };
}

/** Characters of what a lower tier has said that are passed on. */
const SAID = 300;

/** What the tiers below have said of a candidate; those that were not asked are left out. */
export function cheaperVerdicts(
  { episode, views, learned: said }: Pick<LadderCandidate, 'episode' | 'views' | 'learned'>,
  {
    rungs: tiers,
    learned,
  }: { rungs: readonly Pick<TierSpec, 'verifier'>[]; learned?: LearnedTier | undefined },
  below: number,
): CheaperVerdict[] {
  return views.slice(0, below).flatMap((view, tier): CheaperVerdict[] => {
    const { verifier } = tiers[tier]!;
    if (tier === 0)
      return [fastVerdict(verifier, episode), ...(said && learned ? [modelVerdict(said, learned)] : [])];
    if (!view?.answer) return [];
    const { answer, meaning } = view;
    const text = answer.kind === 'abstained' ? answer.reason : (meaning?.evidence ?? answer.evidence);
    return [
      {
        verifier,
        version: view.verifier.version,
        score: meaning?.score ?? null,
        ...(answer.kind === 'scored' &&
          answer.uncertainty !== undefined && { uncertainty: answer.uncertainty }),
        ...(text && { said: text.slice(0, SAID) }),
      },
    ];
  });
}

const modelVerdict = ({ expected, uncertainty }: LearnedVerdict, { stage }: LearnedTier): CheaperVerdict => ({
  verifier: learnedName(stage),
  version: null,
  score: expected,
  uncertainty,
});

function fastVerdict(verifier: string, { outcome }: Episode): CheaperVerdict {
  const component =
    outcome && isRewarded(outcome) && outcome.components.find((one) => one.verifier === LADDER);
  if (!component) return { verifier, version: null, score: null };
  const { score, evidence } = component;
  // It names whose verdict stands for the ladder.
  const version = component.version.slice(verifier.length + 1);
  return { verifier, version, score, ...(evidence && { said: evidence.slice(0, SAID) }) };
}
