/** Of at least one value. */
export const meanOf = (values: readonly number[]): number =>
  values.reduce((a, b) => a + b, 0) / values.length;

/** The sample's standard deviation, with n − 1; 0 for fewer than two values. */
export function deviationOf(values: readonly number[]): number {
  if (values.length < 2) return 0;
  const mean = meanOf(values);
  return Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
}

const SMALLEST_DEVIATION = 1e-8;

/** Whether such a deviation is one of rounding, of values that are all equal: nothing is to be divided by it. */
export const isRounding = (deviation: number): boolean => deviation < SMALLEST_DEVIATION;

/** (x − mean) / deviation; all 0 where they do not differ. */
export function standardized(values: readonly number[]): number[] {
  const deviation = deviationOf(values);
  return centered(values).map((value) => (value === 0 ? 0 : value / deviation));
}

/** x − mean; all 0 where they do not differ, though the mean of equal values may be another one by rounding. */
export function centered(values: readonly number[]): number[] {
  if (isRounding(deviationOf(values))) return values.map(() => 0);
  const mean = meanOf(values);
  return values.map((value) => value - mean);
}

/** All lists standardized together, as one. */
export function standardizedTogether(lists: readonly (readonly number[])[]): number[][] {
  const flat = standardized(lists.flat());
  let next = 0;
  return lists.map((list) => list.map(() => flat[next++]!));
}
