import type { Objective } from './objective.ts';

/** Steps that samples may be behind of a loss that nothing holds back. */
const MOST_UNCLIPPED = 1;

/**
 * Whether a loss follows its advantages however far a token has moved: a policy gradient without a clip of the ratio, and
 * without DPPO's mask. A cap of the importance weight bounds how much a token counts, and not how far it is moved. A clip
 * is to the weights that the step starts from: in the first update of a step none binds, however stale its samples are.
 * Losses that imitate, prefer or distil are made for samples of others; of one that a project brings nothing is known here.
 */
const isUnclipped = (objective: Objective): boolean =>
  objective.kind === 'reinforce' &&
  !(objective.importanceCap > 0 && objective.importanceRule === 'difference');

/**
 * Why a stage whose samples may be `maxStaleness` learner steps old cannot be trained by this loss, in the words of a
 * refusal of its algorithm; null: it can, or somebody insists (`allowUnclipped`).
 */
export function refuseUnclipped(
  name: string,
  objective: Objective,
  { maxStaleness, allowUnclipped }: { maxStaleness: number; allowUnclipped: boolean },
): string | null {
  if (allowUnclipped || maxStaleness <= MOST_UNCLIPPED || !isUnclipped(objective)) return null;
  return `${name} has a loss without a clip, and samples may be ${maxStaleness} steps old: choose importanceRule difference or a method with a clip, let them be ${MOST_UNCLIPPED} step old, or insist by collect.allowUnclipped`;
}
