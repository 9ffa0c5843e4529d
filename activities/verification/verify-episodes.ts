import type { Episode } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import type { ModelVerdict, Outcome, StoredRuleVerdict } from '../../core/episode/outcome.ts';
import type { TaskRef } from '../../core/refs.ts';
import { composeReward, modelPasses } from '../../core/episode/reward.ts';
import type { VerdictOfVerifier } from '../../core/episode/reward.ts';
import { isUnjudged } from '../../core/reward/self-judge.ts';
import type { Unjudged } from '../../core/reward/self-judge.ts';
import { ensembleVerdict } from '../../core/reward/ensemble.ts';
import type { JudgedSample } from '../../core/reward/rule.ts';
import { isOfGroup, ruleName, ruleVerdicts } from '../../core/reward/rules.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { EventLoopTurns } from '../../engine/in-pieces.ts';
import type { HostedVerdict } from '../../environments/host/asks.ts';
import type { HostCaller, HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';

/** An episode that no verifier has been asked about. */
export interface Unverified {
  ref: TaskRef;
  episode: Episode;
  /** What its highest tier says. */
  escalated?: VerdictOfVerifier;
  /** What a reward model, or the policy itself, says in the place of the verifier that decides. */
  model?: ModelVerdict | Unjudged;
  /** What the rules that compare it with the other samples of its task have said, where these are not at hand. */
  ruled?: readonly StoredRuleVerdict[] | undefined;
}

/**
 * Asks the fast verifiers that the reward names, and composes what they say, in order, with what the reward's rules say
 * of the samples of a task. The component `ladder` is what `climbed` says, and as long as no higher tier has spoken,
 * what the lowest tier does. An episode that a verifier cannot even be asked about, or whose task cannot be made, is
 * `failed` at that boundary. What answers come down to is kept with the outcomes of samples that vote.
 */
export async function verifyAll(
  environments: Environments,
  episodes: readonly Unverified[],
  reward: RewardSpec,
  asker: HostCaller,
  votes = false,
): Promise<Outcome[]> {
  const heard = new Map<Unverified, VerdictOfVerifier[] | Outcome>();
  for (const one of episodes) {
    const { status, mask } = one.episode;
    if (status.kind === 'failed') {
      const { boundary, reason } = status;
      const acted = boundary === 'environment' && mask.includes(1) && { acted: true as const };
      heard.set(one, { kind: 'failed', boundary, reason, ...acted });
    }
  }
  const byEnvironment = groupBy(
    episodes.filter((one) => !heard.has(one)),
    ({ ref }) => ref.environment,
  );
  await Promise.all(
    [...byEnvironment].map(async ([name, members]) => {
      const said = await verdictsOf(environmentOf(environments, name), members, reward, asker);
      members.forEach((one, i) => heard.set(one, verdictsOrFailure(one, said[i]!, reward)));
    }),
  );
  const ruled = await rulesOf(episodes, heard, reward, asker.signal);
  return episodes.map((one) => outcomeOf(one, heard.get(one)!, ruled.get(one) ?? [], reward, votes));
}

/**
 * What the rules say, by the samples of each task. They shape what is learnt from: what is held out is judged by
 * verifiers alone. An episode that failed, by infrastructure or because nobody could be asked about it, says nothing of
 * the policy: it is none of the samples. The event loop turns between tasks: of hundreds of samples one can take a tenth
 * of a second.
 */
async function rulesOf(
  episodes: readonly Unverified[],
  heard: ReadonlyMap<Unverified, VerdictOfVerifier[] | Outcome>,
  { rules = [] }: RewardSpec,
  signal: AbortSignal,
): Promise<Map<Unverified, VerdictOfVerifier[]>> {
  const ruled = new Map<Unverified, VerdictOfVerifier[]>();
  if (rules.length === 0) return ruled;
  const judged = episodes.flatMap((of): (JudgedSample & { of: Unverified })[] => {
    const verdicts = heard.get(of)!;
    return of.ref.split === 'train' && isVerdicts(verdicts) ? [{ of, episode: of.episode, verdicts }] : [];
  });
  const turns = new EventLoopTurns(signal);
  for (const samples of groupBy(judged, ({ of }) => of.episode.task).values()) {
    if (turns.due) await turns.take();
    // Who is judged anew by a higher tier is so alone, and would be unlike all others: what was said of it stays.
    const alone = samples.some(({ of }) => of.escalated);
    const speaking = alone ? rules.filter((rule) => !isOfGroup(rule)) : rules;
    ruleVerdicts(speaking, samples).forEach((verdicts, i) => {
      const { of } = samples[i]!;
      ruled.set(of, [...verdicts, ...(of.ruled ?? [])]);
    });
  }
  return ruled;
}

/** `verifyAll` of one. */
export async function verify(
  environment: HostedEnvironment,
  episode: Unverified,
  reward: RewardSpec,
  asker: HostCaller,
): Promise<Outcome> {
  const [outcome] = await verifyAll(
    new Map([[episode.ref.environment, environment]]),
    [episode],
    reward,
    asker,
  );
  return outcome!;
}

/** The fast verifiers that a reward asks; its lowest tier only where the ladder is given. */
export function verifiersOf({
  components,
  ensembles = [],
  ladder,
}: Pick<RewardSpec, 'components' | 'ensembles' | 'ladder'>): string[] {
  const others = components.flatMap(({ verifier }) => {
    if (verifier === LADDER) return [];
    return ensembles.find(({ name }) => name === verifier)?.verifiers ?? [verifier];
  });
  return [...new Set(ladder ? [...others, ladder.verifier] : others)];
}

async function verdictsOf(
  environment: HostedEnvironment,
  members: readonly Unverified[],
  reward: RewardSpec,
  asker: HostCaller,
): Promise<(HostedVerdict[] | GradusError)[]> {
  // Where the lowest tier has been overruled by a higher one, it is not asked again.
  const { ladder: _, ...withoutLadder } = reward;
  const others = verifiersOf(withoutLadder);
  const named = verifiersOf(reward);
  const ask = async (verifiers: readonly string[], some: readonly Unverified[]) =>
    verifiers.length === 0
      ? some.map((): HostedVerdict[] => [])
      : environment.verdicts(verifiers, some, asker);
  const escalated = members.filter(({ escalated }) => escalated);
  const fresh = members.filter(({ escalated }) => !escalated);
  const verdicts = new Map<Unverified, HostedVerdict[] | GradusError>();
  const [ofClimbed, ofFresh] = await Promise.all([ask(others, escalated), ask(named, fresh)]);
  escalated.forEach((one, i) => verdicts.set(one, ofClimbed[i]!));
  fresh.forEach((one, i) => verdicts.set(one, ofFresh[i]!));
  return members.map((one) => verdicts.get(one)!);
}

/** What the components of the reward go by, or what became of an episode that nobody could be asked about. */
function verdictsOrFailure(
  { escalated, model }: Unverified,
  said: HostedVerdict[] | GradusError,
  reward: RewardSpec,
): VerdictOfVerifier[] | Outcome {
  if (said instanceof GradusError) return { kind: 'failed', boundary: said.boundary, reason: said.message };
  const verdicts = verdictsIn(said, reward, escalated);
  if (!model) return verdicts;
  if (isUnjudged(model)) return { kind: 'abstained', reason: model.unjudged, judge: model.judge };
  const decisive = reward.components.findIndex(({ role }) => role === 'outcome');
  return verdicts.map((verdict, i) => (i === decisive ? withModel(verdict, model) : verdict));
}

/** On a ladder a model is asked about what the lowest tier has passed, and is a tier itself: what it passes has passed. */
function withModel(verdict: VerdictOfVerifier, model: ModelVerdict): VerdictOfVerifier {
  if (verdict.verifier !== LADDER) return { ...verdict, model };
  return verdict.passed ? { ...verdict, model, passed: modelPasses(model) } : verdict;
}

/** What the components of the reward go by; `climbed` is what the highest tier has said. */
export function verdictsIn(
  verdicts: readonly HostedVerdict[],
  { components, ensembles = [], ladder }: RewardSpec,
  escalated?: VerdictOfVerifier,
): VerdictOfVerifier[] {
  const by = (name: string): VerdictOfVerifier => {
    const { fault: _, ...verdict } = verdicts.find(({ verifier }) => verifier === name)!;
    return verdict;
  };
  return components.map(({ verifier }) => {
    if (verifier === LADDER) return escalated ?? lowestTier(by(ladder!.verifier), ladder!.passAtLeast);
    const ensemble = ensembles.find(({ name }) => name === verifier);
    return ensemble ? ensembleVerdict(ensemble, ensemble.verifiers.map(by)) : by(verifier);
  });
}

function outcomeOf(
  { episode: { status } }: Unverified,
  heard: readonly VerdictOfVerifier[] | Outcome,
  ruled: readonly VerdictOfVerifier[],
  reward: RewardSpec,
  votes: boolean,
): Outcome {
  if (!isVerdicts(heard)) return heard;
  const said = votes ? heard : heard.map(withoutCanonical);
  const composed = composeReward(reward, [...said, ...ruled]);
  const ofGroup = ruled.filter(({ verifier }) => rulesOfGroup(reward).includes(verifier));
  if (composed.kind === 'abstained' && reward.ladder && ofGroup.length > 0)
    return { ...composed, ruled: ofGroup };
  if (composed.kind !== 'scored' || status.kind !== 'truncated') return composed;
  return { ...composed, kind: 'truncated', limit: status.limit };
}

const rulesOfGroup = ({ rules = [] }: RewardSpec): string[] => rules.filter(isOfGroup).map(ruleName);

/** Rules have read what the answers come down to; where samples do not vote, nobody else does. */
function withoutCanonical(verdict: VerdictOfVerifier): VerdictOfVerifier {
  const { canonical: _, ...kept } = verdict;
  return kept;
}

const isVerdicts = (heard: readonly VerdictOfVerifier[] | Outcome): heard is readonly VerdictOfVerifier[] =>
  Array.isArray(heard);

function lowestTier(verdict: VerdictOfVerifier, passAtLeast: number): VerdictOfVerifier {
  const version = `${verdict.verifier}@${verdict.version}`;
  return {
    ...verdict,
    verifier: LADDER,
    version,
    passed: verdict.score !== null && verdict.score >= passAtLeast,
  };
}
