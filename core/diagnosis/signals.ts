import { equalGroups, meanStaleness } from '../training/figures.ts';
import { total } from '../training/stage-policy.ts';
import type { BatchFacts, RolloutFacts, StepFacts } from '../training/step-facts.ts';

/** What the diagnoses read of a step. */
export const SIGNALS = [
  /** Mean reward of the episodes that may be trained on. */
  'reward',
  /** Part of the episodes of tasks drawn for the first time that succeeded. */
  'success',
  /** By how much a reward model's scores exceed those of the verifier that it stands for, in the mean. */
  'excess',
  /** Mean variance of the rewards of one task's samples. */
  'variance',
  /** Part of the groups whose rewards are all equal (σ = 0). */
  'equal',
  /** Of the policy that sampled, nats a token. */
  'entropy',
  /** L2 norm before clipping, mean over the step's updates. */
  'gradientNorm',
  /** To the reference, nats a token. */
  'kl',
  /** Part of the tokens whose ratio was clipped. */
  'clipped',
  /** Mean |learner − rollout| log-prob before the first update, nats. */
  'gap',
  /** Likewise of the positions, or the lengths, where it is widest. */
  'widestGap',
  /** Effective sample size of the importance weights, as a part of the tokens. */
  'effective',
  /** Of the sampled tokens where a stage samples ahead, learner steps in the mean. */
  'staleness',
  /** Tokens that are learnt for each one that was sampled, in this step or, where it is replayed, in an earlier one. */
  'learnt',
  /** Tokens that were sampled besides, for baselines and corrections, for each one that was sampled. */
  'besides',
  /** Sampled tokens an episode. */
  'length',
  /** Part of the episodes that a limit cut off. */
  'truncated',
  /** Part of the calls that name a tool that there is not. */
  'unknown',
  /** Part of the turns that end in an error other than an unknown tool: malformed, refused by the tool, or failed in it. */
  'errors',
  /** Part of the calls that the same episode has made before with the same arguments and the same result. */
  'repeated',
  /** Part of the episodes that are, to the letter, one of an earlier sample of the same task. */
  'duplicates',
  /** Part of the runs of four tokens that the same turn has had before. */
  'echoed',
] as const;
export type Signal = (typeof SIGNALS)[number];

/** null where the step cannot say it: nothing was sampled, nothing learnt, there is no reference, a figure is not finite. */
export type Signals = Record<Signal, number | null>;

/** `part` of `all`, or null of nothing. */
const share = (part: number, all: number): number | null => (all > 0 ? finite(part / all) : null);

const finite = (x: number | null | undefined): number | null =>
  typeof x === 'number' && Number.isFinite(x) ? x : null;

/** Calls an episode from which on a part of them is told. */
const CALLING = 0.1;

export function signalsOf({
  rollout,
  batch,
  learner,
}: Pick<StepFacts, 'rollout' | 'batch' | 'learner'>): Signals {
  const tasks = rollout === null ? { successes: 0, trials: 0 } : total(rollout.arms);
  const calls = rollout === null ? 0 : callsOf(rollout);
  // Of a policy that hardly calls, a part of its calls says nothing about it.
  const tooFew = rollout !== null && calls < CALLING * rollout.episodes;
  return {
    reward: rollout && share(rollout.rewardSum, rollout.rewardCount),
    success: share(tasks.successes, tasks.trials),
    excess: rollout && excessOf(rollout),
    variance: rollout && share(rollout.rewardVariance, rollout.rewardGroups),
    equal: equalGroups({ rollout, batch }),
    entropy: rollout && share(-rollout.sampledLogprob, rollout.sampledTokens),
    gradientNorm: finite(learner?.gradientNorm),
    kl: finite(learner?.kl),
    clipped: finite(learner?.clipFraction),
    gap: finite(learner?.logprobGapMean),
    widestGap: finite(widestGap(learner)),
    effective: finite(learner?.effectiveSamples?.tokens),
    staleness: rollout && finite(meanStaleness(rollout)),
    learnt: rollout && batch && learntShare(rollout, batch),
    besides: rollout && share(rollout.otherTokens ?? 0, rollout.sampledTokens),
    // Of stored episodes nothing was sampled here.
    length: rollout && (rollout.sampledTokens === 0 ? null : share(rollout.sampledTokens, rollout.episodes)),
    truncated: rollout && share(rollout.truncated, rollout.episodes),
    unknown: rollout && (tooFew ? null : share(rollout.unknownTools, calls)),
    errors: rollout && share(errorsOf(rollout), rollout.turns),
    repeated: rollout && (tooFew ? null : share(rollout.repeatedCalls, calls)),
    duplicates: rollout && share(rollout.duplicateEpisodes, rollout.episodes),
    echoed: rollout && share(rollout.repeatedFourGrams, rollout.fourGrams),
  };
}

/** Of stored episodes nothing was sampled here: of them it is known only where none is trained on. */
function learntShare(
  { episodes, sampledTokens, otherTokens = 0, inheritedTokens = 0, replayed }: RolloutFacts,
  { maskedTokens }: BatchFacts,
): number | null {
  if (sampledTokens === 0) return episodes > 0 && maskedTokens === 0 ? 0 : null;
  const again = replayed === undefined ? [0] : replayed.tokensByStaleness;
  if (again === undefined) return null;
  const before = again.reduce((sum, tokens) => sum + tokens, 0);
  return share(maskedTokens, sampledTokens + otherTokens + inheritedTokens + before);
}

/** Over the episodes that both have judged; null where none is. */
function excessOf({ components }: NonNullable<StepFacts['rollout']>): number | null {
  const models = Object.values(components).flatMap(({ model }) => model ?? []);
  const sum = (of: (one: (typeof models)[number]) => number): number =>
    models.reduce((all, one) => all + of(one), 0);
  return share(
    sum(({ excess }) => excess),
    sum(({ compared }) => compared),
  );
}

/** Sampled tokens from which on their mean is no chance. */
const ENOUGH_TOKENS = 64;

/** Of positions and lengths that have enough tokens; null where nothing tells some from others. */
function widestGap(learner: StepFacts['learner']): number | null {
  const bins = [learner?.logprobGapByPosition, learner?.logprobGapByLength].flatMap((some) =>
    some && some.length > 1 ? some : [],
  );
  const means = bins.filter(({ tokens }) => tokens >= ENOUGH_TOKENS).map(({ mean }) => mean);
  return means.length === 0 ? null : Math.max(...means);
}

const errorsOf = (rollout: NonNullable<StepFacts['rollout']>): number =>
  rollout.malformedCalls + rollout.invalidArguments + rollout.toolErrors;

/** All calls that parsed, whether a tool took them or not. */
function callsOf({ calls, unknownTools }: NonNullable<StepFacts['rollout']>): number {
  return Object.values(calls).reduce((sum, count) => sum + count, unknownTools);
}
