import { pathsOf } from '../episode/paths.ts';
import type { EpisodePath } from '../episode/paths.ts';
import type { RolloutGroup } from '../episode/episode.ts';
import type { BatchRequest } from '../requests/batch.ts';
import type { MovingTask } from '../requests/collect.ts';
import type { EnvironmentScale } from '../reward/normalization.ts';
import { isMoving } from './advantage.ts';
import type { SampleAdvantages } from './advantage.ts';
import { mixesSuccess, rewardsDiffer } from './group-baseline.ts';
import type { MovingMeans } from './moving-means.ts';
import type { Sample } from './sample.ts';
import { stepAdvantages } from './step-advantages.ts';
import type { AdvantageRequest, Beside, GroupAdvantages } from './step-advantages.ts';

/** One sequence of a batch: a prompt and its completion; all arrays have the same length. */
export interface TrainingSample {
  tokens: number[];
  mask: number[];
  /** What is said of each token; all sequences of a batch have the same streams. */
  streams: Partial<
    Record<'advantages' | 'samplerLogprobs' | 'reference' | 'values' | 'returns' | 'staleness', number[]>
  >;
  /** Ids that each token was sampled among; empty where nothing was cut. Absent: nowhere. */
  kept?: number[][];
  /** Was sampled by an earlier policy than the one that learns from it, or has begun so. */
  late?: true;
  /** Learner steps since that policy, where somebody asks; −1: not known. Where turns have others, each token says its own. */
  staleness?: number;
  /** Sequences of one number are the two of a preference, and stay in one update. */
  pair?: number;
  /** Sequences of one number stay in one update, without being a pair: an example, and what it is compared with. */
  together?: number;
  /** Sequences of one number are branches of one episode: they stay in one update, and weigh together as one sequence. */
  episode?: number;
  /** 1: preferred, or desirable; −1: the other; 0: neither. */
  label?: 1 | -1 | 0;
  /** The number of the teacher that it follows; absent: all of them by weight. */
  teacher?: number;
}

/**
 * The training samples of a step, with the advantages of `stepAdvantages`. Those of groups without variance have an advantage of zero and stay, for the
 * loss is a mean over them too, and updates are cut from all; the learner passes over what cannot move it. A step in which
 * nothing moves the weights is none.
 */
export function trainingSamples(
  groups: readonly RolloutGroup[],
  request: AdvantageRequest &
    Pick<BatchRequest, 'plan'> &
    Partial<Pick<BatchRequest, 'policy' | 'stepsAhead' | 'replayed' | 'tellMoving'>>,
  beside: Beside = {},
): {
  sequences: TrainingSample[];
  taughtTokens: number;
  degenerateGroups: number;
  trees?: number;
  moving?: MovingTask[];
  scales?: EnvironmentScale[];
  movingMeans?: MovingMeans;
} {
  const { plan, policy, stepsAhead, reward, replayed = 0 } = request;
  const { groups: all, fresh, scales, movingMeans } = stepAdvantages(groups, request, beside);
  const ageOf = (weights: string): number => (weights === policy ? 0 : (stepsAhead?.[weights] ?? -1));
  const isMixed = ({ group }: GroupAdvantages): boolean =>
    group.samples.some(({ turns }) => turns.some(({ weights }) => weights !== undefined));
  const mixed = stepsAhead !== undefined && all.some(isMixed);
  let branching = 0;
  const sequences = all.flatMap(({ group, late, advantages }) => {
    const stale = late || (policy !== undefined && group.weights !== policy);
    const age = {
      ...(stale && { late: true as const }),
      ...(stepsAhead && { staleness: ageOf(group.weights) }),
    };
    return advantages.flatMap((one) => {
      const { promptTokens } = one.promptOf === undefined ? group : fresh[one.promptOf]!;
      const own = group.samples[one.sample]!;
      const sample: AgedSample = mixed ? { ...own, staleness: agesOf(own, group.weights, ageOf) } : own;
      if (!sample.branches) return [trainingSample(promptTokens, sample, one, age)];
      const episode = branching++;
      return pathsOf(sample).map((path) => ({
        ...trainingSample(promptTokens, ...along(path, sample, one), age),
        episode,
      }));
    });
  });
  const longest = sequences.reduce(
    (most, { label, tokens }) => (label === 0 ? most : Math.max(most, tokens.length)),
    0,
  );
  const moves = plan.movesAll || all.some(({ advantages }) => advantages.some(isMoving));
  // Each replayed group is of one task, and its tokens were counted when they were sampled.
  const own = all.slice(0, all.length - replayed);
  const compared = fresh.filter(({ hindsight }) => !hindsight);
  const hasContrast = plan.refillBy === 'correctness' ? mixesSuccess : rewardsDiffer;
  return {
    // A completion after a longer prompt than its own may have no room in the model.
    sequences: moves ? sequences.filter(({ label, tokens }) => label !== 0 || tokens.length <= longest) : [],
    taughtTokens: own.reduce((sum, one) => sum + (one.late ? 0 : movingTokens(one)), 0),
    degenerateGroups: compared.filter((group) => !hasContrast(group)).length,
    ...(groups.some(({ grows }) => grows !== undefined) && { trees: compared.length }),
    ...(request.tellMoving && { moving: movingTasks(groups.slice(0, groups.length - replayed), own) }),
    ...(reward.normalization && { scales }),
    ...(movingMeans && { movingMeans }),
  };
}

/** Of groups without trees, whose tasks are in their order. */
function movingTasks(groups: readonly RolloutGroup[], all: readonly GroupAdvantages[]): MovingTask[] {
  const places = groups.flatMap(({ tasks }, group) => tasks.map((_, task) => ({ group, task })));
  return all.flatMap((one, i) => {
    if (!one.advantages.some(isMoving)) return [];
    let [sum, tokens] = [0, 0];
    for (const { sample, advantages, mask } of one.advantages)
      (mask ?? one.group.samples[sample]!.mask).forEach((bit, at) => {
        if (bit === 0) return;
        sum += Math.abs(advantages[at]!);
        tokens += 1;
      });
    return [{ ...places[i]!, advantage: sum / tokens, tokens }];
  });
}

/** Sampled tokens of a group that some advantages are about which move the policy, each counted once. */
function movingTokens({ group: { samples }, advantages }: GroupAdvantages): number {
  const moving = advantages.filter(isMoving);
  return samples.reduce((sum, { mask: own }, sample) => {
    const about = moving.filter((one) => one.sample === sample);
    return (
      sum + own.filter((bit, at) => bit === 1 && about.some(({ mask }) => (mask?.[at] ?? 1) === 1)).length
    );
  }, 0);
}

/** With the learner steps since the weights of each token, where turns have several. */
interface AgedSample extends Sample {
  staleness?: number[];
}

function agesOf({ tokens, turns }: Sample, weights: string, ageOf: (weights: string) => number): number[] {
  const ages = tokens.map(() => ageOf(weights));
  for (const { start, end, weights: its } of turns) if (its !== undefined) ages.fill(ageOf(its), start, end);
  return ages;
}

/** A sample as one of its paths has it: what an earlier path has, too, is read, and is trained there. */
function along(
  { places, shared }: EpisodePath,
  sample: AgedSample,
  one: SampleAdvantages,
): [AgedSample, SampleAdvantages] {
  const of = <T>(values: readonly T[]): T[] => places.map((at) => values[at]!);
  const own = (values: readonly number[]): number[] => of(values).fill(0, 0, shared);
  const { tokens, samplerLogprobs, mask, kept, staleness } = sample;
  return [
    {
      ...sample,
      tokens: of(tokens),
      samplerLogprobs: of(samplerLogprobs),
      mask: own(mask) as (0 | 1)[],
      ...(kept && { kept: of(kept) }),
      ...(staleness && { staleness: of(staleness) }),
    },
    {
      ...one,
      advantages: own(one.advantages),
      ...(one.mask && { mask: own(one.mask) as (0 | 1)[] }),
      ...(one.returns && { returns: own(one.returns) }),
    },
  ];
}

function trainingSample(
  promptTokens: readonly number[],
  { tokens, samplerLogprobs, kept, mask: own, scores: { values }, staleness }: AgedSample,
  { advantages, mask, returns, pair, label, teacher }: SampleAdvantages,
  age: Pick<TrainingSample, 'late' | 'staleness'>,
): TrainingSample {
  // Nothing behind the last token that the advantages are about has a part in it.
  const end = mask ? mask.lastIndexOf(1) + 1 : tokens.length;
  const nothing = promptTokens.map(() => 0);
  const afterPrompt = (perToken: ArrayLike<number>): number[] => [
    ...nothing,
    ...Array.from(perToken).slice(0, end),
  ];
  return {
    tokens: [...promptTokens, ...tokens.slice(0, end)],
    mask: afterPrompt(mask ?? own),
    streams: {
      advantages: afterPrompt(advantages),
      samplerLogprobs: afterPrompt(samplerLogprobs),
      ...(returns && { returns: afterPrompt(returns) }),
      ...(returns && values && { values: afterPrompt(values) }),
      ...(staleness && { staleness: afterPrompt(staleness) }),
    },
    ...(kept && { kept: [...nothing.map(() => []), ...kept.slice(0, end)] }),
    ...age,
    ...(pair !== undefined && { pair }),
    ...(label !== undefined && { label }),
    ...(teacher !== undefined && { teacher }),
  };
}
