import { isToolFailure } from './outcome.ts';
import type { RewardedOutcome, Outcome, RewardComponent } from './outcome.ts';
import type { RewardComponentSpec } from '../spec.ts';

/** What a verifier said of one episode, as composition needs it. */
export interface VerdictOfVerifier {
  verifier: string;
  version: string;
  /** In [0, 1]; null for an abstention. */
  score: number | null;
  /** What the score counts for, in [0, 1], where it is brought to another scale. */
  worth?: number;
  /** Whether that is a success, where the full score is not asked for. */
  passed?: boolean;
  evidence?: string;
}

/** The full score, with room for rounding. */
const isFull = (score: number | null | undefined): boolean =>
  score !== null && score !== undefined && score >= 1 - 1e-9;

/**
 * Composes verdicts into a reward as the spec says. The outcome verifier decides: where it abstains the episode
 * abstains. An abstention of another verifier leaves its component out. A gated component counts only where its
 * gate gave the full score.
 */
export function composeReward(
  specs: readonly RewardComponentSpec[],
  verdicts: readonly VerdictOfVerifier[],
): Extract<Outcome, { kind: 'scored' | 'abstained' }> {
  const byName = new Map(verdicts.map((verdict) => [verdict.verifier, verdict]));
  const components: RewardComponent[] = [];
  let reward = 0;
  for (const spec of specs) {
    const verdict = byName.get(spec.verifier);
    if (!verdict) throw new RangeError(`no verdict of ${spec.verifier}`);
    if (spec.role === 'outcome' && verdict.score === null) {
      return { kind: 'abstained', reason: verdict.evidence ?? `${spec.verifier} abstained` };
    }
    const gate = spec.gatedBy === null ? undefined : byName.get(spec.gatedBy);
    const open = spec.gatedBy === null || (gate?.passed ?? isFull(gate?.score));
    const worth = verdict.worth ?? verdict.score;
    const contribution =
      worth === null || !open
        ? 0
        : spec.role === 'penalty'
          ? -spec.weight * (1 - worth)
          : spec.weight * worth;
    reward += contribution;
    components.push({ ...verdict, contribution });
  }
  return { kind: 'scored', reward, components };
}

/** The outcome with this verdict in place of the one that it has of the same verifier. */
export function withVerdict(
  specs: readonly RewardComponentSpec[],
  outcome: RewardedOutcome,
  verdict: VerdictOfVerifier,
): Outcome {
  const composed = composeReward(
    specs,
    outcome.components.map((said) => (said.verifier === verdict.verifier ? verdict : said)),
  );
  if (composed.kind === 'abstained') return composed;
  return { ...outcome, reward: composed.reward, components: composed.components };
}

/**
 * Whether an episode counts as a success; null where it cannot be said (abstained, pending, failed). Where a call made
 * its tool fail it can: what to call is the policy's choice, and what is not counted would be a place to hide.
 */
export function succeeded(specs: readonly RewardComponentSpec[], outcome: Outcome): boolean | null {
  if (outcome.kind === 'truncated') return false;
  if (outcome.kind === 'abstained' && outcome.ofSubject) return false;
  if (isToolFailure(outcome)) return false;
  if (outcome.kind !== 'scored') return null;
  const decisive = specs.find((spec) => spec.role === 'outcome');
  const said = outcome.components.find((component) => component.verifier === decisive?.verifier);
  return said?.passed ?? isFull(said?.score);
}
