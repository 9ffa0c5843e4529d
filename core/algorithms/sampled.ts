import type { Sample } from './method.ts';

// An episode as credit sees it: its sampled tokens in a row. What follows the last token of a turn is the first token of
// the next one; observations are part of the state, and nobody acts in them.

/** Places of the sampled tokens [N] in a completion, in order. */
export const sampledAt = ({ mask }: Pick<Sample, 'mask'>): number[] =>
  mask.flatMap((bit, at) => (bit === 1 ? [at] : []));

/** Of the sampled tokens [N], what `perToken` [T] says. */
export const atSampled = (places: readonly number[], perToken: ArrayLike<number>): number[] =>
  places.map((at) => perToken[at]!);

/** The way back [T]: 0 where nothing was sampled. */
export function overCompletion({ mask }: Pick<Sample, 'mask'>, values: readonly number[]): number[] {
  let next = 0;
  return mask.map((bit) => (bit === 1 ? values[next++]! : 0));
}

/** What the plan had scored [T]. Throws RangeError where it has not. */
export function scoreOf({ scores }: Sample, name: keyof Sample['scores']): ArrayLike<number> {
  const values = scores[name];
  if (!values) throw new RangeError(`credit needs ${name}, and nobody has scored them`);
  return values;
}

/**
 * Rewards of the sampled tokens [N]: −β k1 of each, k1 = log π(a) − log π_ref(a) under the policy that sampled (Ziegler et
 * al. 2019, eq. 2), a turn's own reward at its last token, and the outcome at the last of all.
 */
export function tokenRewards(sample: Sample, klCoefficient: number): number[] {
  const places = sampledAt(sample);
  const rewards = places.map(() => 0);
  if (klCoefficient !== 0) {
    const reference = scoreOf(sample, 'reference');
    places.forEach((at, n) => (rewards[n] = -klCoefficient * (sample.rollout[at]! - reference[at]!)));
  }
  for (const { end, reward } of sample.turns) {
    const last = places.indexOf(end - 1);
    if (reward !== 0) rewards[last]! += reward;
  }
  if (rewards.length > 0) rewards[rewards.length - 1]! += sample.reward!;
  return rewards;
}

const mean = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0) / values.length;

/** With n − 1; 0 for fewer than two values. */
export function deviationOf(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const center = mean(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - center) ** 2, 0) / (values.length - 1));
}

const SMALLEST_DEVIATION = 1e-8;

/** (x − mean) / deviation; all 0 where they do not differ. */
export function standardized(values: readonly number[]): number[] {
  const deviation = deviationOf(values);
  if (deviation < SMALLEST_DEVIATION) return values.map(() => 0);
  const center = mean(values);
  return values.map((value) => (value - center) / deviation);
}

/** x − mean. */
export function centered(values: readonly number[]): number[] {
  const center = mean(values);
  return values.map((value) => value - center);
}

/** All lists standardized together, as one. */
export function standardizedTogether(lists: readonly (readonly number[])[]): number[][] {
  const flat = standardized(lists.flat());
  let next = 0;
  return lists.map((list) => list.map(() => flat[next++]!));
}
