import { normalQuantile } from '../statistics/intervals.ts';
import { predict } from './calibration.ts';
import type { Calibration } from './calibration.ts';
import { basisOf, passes, silentAbove } from './policy.ts';
import type { LadderTier, TierScores } from './policy.ts';

/** What the verdicts on a candidate come to. */
export type Standing =
  | {
      kind: 'judged';
      /** The highest one that gave a score. */
      tier: number;
      /** What its score counts for, in [0, 1]: all candidates on the scale of the highest tier. */
      worth: number;
      passed: boolean;
      /** The tier above it that could not judge, where it is that silence which counts. */
      silent?: number;
    }
  | {
      kind: 'abstained';
      /** Which tier could not judge what the one below had passed. */
      tier: number;
      /** It cannot judge this subject, whenever it is asked. */
      ofSubject: boolean;
    };

type Ladder = { rungs: readonly LadderTier[]; calibrations: readonly Calibration[] };

/**
 * What a candidate's verdicts count for, by the rule of the tier that abstained where one did; null where no tier has
 * judged it. A tier that passed a candidate vouches for nothing that the tier above it could not confirm: what looks
 * right and cannot be judged would otherwise be the best that a policy can do.
 */
export function standingOf(scores: TierScores, ladder: Ladder): Standing | null {
  const tier = basisOf(scores);
  if (tier < 0) return null;
  const { learned } = ladder.rungs[tier]!;
  // Paid by a reward model is what it says after its deviations, brought to the scale of the highest tier.
  const score = learned?.score ?? (scores[tier] as number);
  const passed = passes(ladder.rungs[tier]!, score);
  const worth = worthAbove(tier, score, ladder);
  const silent = silentAbove(scores);
  // Whatever a model said of it, the fast tier had passed it.
  if (!(passed || learned) || silent < 0) return { kind: 'judged', tier, worth, passed };
  const { abstains } = ladder.rungs[silent]!;
  const ofSubject = scores[silent] === 'abstained';
  if (abstains === 'expected') return { kind: 'judged', tier, worth, passed: false, silent };
  // What says nothing of the subject is never a zero.
  if (abstains === 'zero' && ofSubject) return { kind: 'judged', tier, worth: 0, passed: false, silent };
  return { kind: 'abstained', tier: silent, ofSubject };
}

/**
 * What a score counts for. What a tier rejected is worth no more than it said: nothing that it rejects is sent up to be
 * seen, so the line is no evidence there, and must not make garbage worth having.
 */
function worthAbove(tier: number, score: number, ladder: Ladder): number {
  const expected = expectedAbove(tier, score, ladder);
  return passes(ladder.rungs[tier]!, score) ? expected : Math.min(score, expected);
}

/** Of the standard normal distribution, all as probable. */
const QUANTILES = Array.from({ length: 16 }, (_, i) => normalQuantile((i + 0.5) / 16));

const clamp = (score: number): number => Math.min(1, Math.max(0, score));

/** What the highest tier is expected to say of what this tier, and all above it, pass: a line of lines is one. */
const alongLines = (tier: number, score: number, { calibrations }: Ladder): number =>
  calibrations.slice(tier).reduce((score, line) => clamp(predict(line, score).mean), score);

/**
 * What a candidate with this score of this tier is expected to count for, by the lines from each tier to the next. Each
 * is drawn through what the tier below passed. The tier above may reject this one, and what it would then count for
 * less is taken off by its probability, or whoever is not asked about would be better off than who is.
 */
function expectedAbove(tier: number, score: number, ladder: Ladder): number {
  const line = ladder.calibrations[tier];
  if (line === undefined) return score;
  const { mean, deviation } = predict(line, score);
  const { passAtLeast } = ladder.rungs[tier + 1]!;
  const lost = QUANTILES.map((z) => {
    const score = clamp(mean + z * deviation);
    return score < passAtLeast ? Math.max(0, alongLines(tier + 1, score, ladder) - score) : 0;
  });
  const taken = lost.reduce((sum, one) => sum + one, 0) / lost.length;
  return clamp(expectedAbove(tier + 1, clamp(mean), ladder) - taken);
}
