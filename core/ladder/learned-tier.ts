import type { ModelVerdict } from '../episode/outcome.ts';
import { modelPasses } from '../episode/reward.ts';
import { RandomStream } from '../random.ts';
import { meanOf } from '../statistics/standardized.ts';
import type { Calibration } from './calibration.ts';
import type { LadderTier } from './policy.ts';

// A reward model on the ladder: it speaks in the place of the lowest tier, of what that one has passed. What it is sure of
// costs nothing. Where its models disagree, or the line to the next tier is not known yet, that tier is asked.

/** As the spec has it. */
export interface LearnedTier {
  /** The stage that trains it. */
  stage: string;
  uncertaintyAtLeast: number;
  /** Part of what it is sure of that is escalated all the same. */
  audit: number;
  seed: number;
  /** The run whose episodes its stage learns from, where that is another one. */
  learntFrom?: string;
}

/** What it says of a candidate. */
export interface LearnedVerdict {
  /** The mean of its models: what the next tier is predicted from. */
  expected: number;
  /** What it is worth by the model: the mean less σ, or the minimum. */
  score: number;
  passed: boolean;
  /** Standard deviation of its models. */
  uncertainty: number;
  /** Drawn to be escalated, however sure the model is. */
  audited: boolean;
}

/** The same for a candidate whenever it is looked at. */
export const learnedVerdict = (
  verdict: ModelVerdict,
  candidate: string,
  { seed, audit }: LearnedTier,
): LearnedVerdict => ({
  expected: meanOf(verdict.members),
  score: verdict.score,
  passed: modelPasses(verdict),
  uncertainty: verdict.uncertainty,
  audited: new RandomStream(seed, 'audit', candidate).uniform() < audit,
});

/** Its name in the ledger, where verifiers stand. */
export const learnedName = (stage: string): string => `model:${stage}`;

/** A ladder with all of its lines: between neighbours, and last the one from the reward model where there is one. */
export interface WholeLadder {
  rungs: readonly LadderTier[];
  calibrations: readonly Calibration[];
  learned?: LearnedTier | undefined;
}

/** The ladder as a candidate meets it, with one line from each tier to the next. */
export function ladderOf(
  said: LearnedVerdict | undefined,
  { rungs, calibrations, learned }: WholeLadder,
): { rungs: readonly LadderTier[]; calibrations: readonly Calibration[] } {
  const lines = calibrations.slice(0, rungs.length - 1);
  if (!said || !learned) return { rungs, calibrations: lines };
  const [lowest, ...above] = rungs;
  return {
    rungs: [{ ...lowest!, verifier: learnedName(learned.stage), learned: { ...said, ...learned } }, ...above],
    calibrations: [calibrations[lineBelow(1, said, rungs.length)]!, ...lines.slice(1)],
  };
}

/** Which line leads to a tier from what stands below it. */
export const lineBelow = (tier: number, said: LearnedVerdict | undefined, tiers: number): number =>
  tier === 1 && said ? tiers - 1 : tier - 1;

/** The line that a verdict was predicted by. */
export const lineOfBasis = (
  { rung, learned }: { rung: number; learned?: string },
  calibrations: readonly Calibration[],
): Calibration | undefined => (learned === undefined ? calibrations[rung] : calibrations.at(-1));
