import type { ComponentCounts, StepFacts } from '../training/step-facts.ts';

/** Scores that are no further apart are the same. */
export const SAME = 0.01;

/** What a component of the reward has said in the latest steps, whose scores are all the same. */
export interface Alike {
  lowest: number;
  highest: number;
  /** Groups of samples of one task, whose rewards may be compared. */
  groups: number;
  /** Whether a model has spoken in the verifier's place. */
  model: boolean;
  /** Of what the verifier has judged, too, as in `ModelCounts`: how often, and sums of the difference and its square. */
  compared: number;
  excess: number;
  squaredError: number;
}

/** After a step: what said the same again has said it for longer, and what did not has none. */
export function alikeAfter(
  before: Record<string, Alike>,
  { components, rewardGroups }: Pick<NonNullable<StepFacts['rollout']>, 'components' | 'rewardGroups'>,
): Record<string, Alike> {
  const after: [string, Alike][] = [];
  for (const [name, counts] of Object.entries(components)) {
    const known = Object.hasOwn(before, name) ? before[name] : undefined;
    const own = ofStep(counts, rewardGroups);
    if (own === null || !isSame(own)) continue;
    const both = known && together(known, own);
    after.push([name, both && isSame(both) ? both : own]);
  }
  return Object.fromEntries(after);
}

const isSame = ({ lowest, highest }: Alike): boolean => highest - lowest <= SAME;

function ofStep({ lowest, highest, model }: ComponentCounts, groups: number): Alike | null {
  if (lowest === undefined || highest === undefined) return null;
  const { compared = 0, excess = 0, squaredError = 0 } = model ?? {};
  return { lowest, highest, groups, model: model !== undefined, compared, excess, squaredError };
}

const together = (a: Alike, b: Alike): Alike => ({
  lowest: Math.min(a.lowest, b.lowest),
  highest: Math.max(a.highest, b.highest),
  groups: a.groups + b.groups,
  model: a.model || b.model,
  compared: a.compared + b.compared,
  excess: a.excess + b.excess,
  squaredError: a.squaredError + b.squaredError,
});
