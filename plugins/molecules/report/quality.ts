import { meanWithInterval, wilson } from '../../../core/statistics/intervals.ts';
import type { Interval, Mean, Proportion } from '../../../core/statistics/intervals.ts';
import { promptOf } from '../../../environments/families/molecules/targets.ts';
import { MET } from './best.ts';
import type { Design } from './designs.ts';

export interface Share extends Proportion, Interval {}

export const shareOf = (proportion: Proportion, confidence: number): Share => ({
  ...proportion,
  ...wilson(proportion, confidence),
});

/** How good a checkpoint's answers to the report's tasks are. */
export interface Quality {
  /** Answers that are molecules within the limits of their task. */
  valid: Share;
  /** Score by the judge, over the answers that it could judge; what is no molecule counts as zero. null without a judge. */
  score: Mean | null;
  /** Answers of those that score at least 0.9. */
  good: Share | null;
  abstained: number;
}

export interface QualityComparison {
  judge: string | null;
  before: Quality;
  after: Quality;
  /** After minus before, task by task, where both could be judged: the tasks are the same ones. */
  gain: Mean | null;
}

export function compareQuality(
  before: readonly Design[],
  after: readonly Design[],
  judge: string | null,
  confidence: number,
): QualityComparison {
  const judged = (designs: readonly Design[]) =>
    new Map(
      designs.flatMap((design) => {
        const score = judge === null ? undefined : scoreOf(design, judge);
        return typeof score === 'number' ? [[placeOf(design), score] as const] : [];
      }),
    );
  const [then, now] = [judged(before), judged(after)];
  const both = [...then].flatMap(([place, score]) => {
    const later = now.get(place);
    return later === undefined ? [] : [later - score];
  });
  return {
    judge,
    before: qualityOf(before, judge, confidence),
    after: qualityOf(after, judge, confidence),
    gain: within(meanWithInterval(both, confidence), -1, 1),
  };
}

function qualityOf(designs: readonly Design[], judge: string | null, confidence: number): Quality {
  const share = (proportion: Proportion) => shareOf(proportion, confidence);
  const said = judge === null ? [] : designs.map((design) => scoreOf(design, judge));
  const scores = said.filter((score) => typeof score === 'number');
  return {
    valid: share({
      successes: designs.filter(({ smiles }) => smiles !== null).length,
      trials: designs.length,
    }),
    score: within(meanWithInterval(scores, confidence), 0, 1),
    good:
      judge === null
        ? null
        : share({ successes: scores.filter((score) => score >= MET).length, trials: scores.length }),
    abstained: said.filter((score) => score === null).length,
  };
}

/** null where the judge abstained, undefined where it has not been asked. */
const scoreOf = ({ smiles, verdicts }: Design, judge: string): number | null | undefined =>
  smiles === null ? 0 : verdicts[judge]?.score;

const placeOf = ({ task, target }: Design): string => `${task.level}/${task.index} ${promptOf(target)}`;

const within = (mean: Mean | null, least: number, most: number): Mean | null =>
  mean && { ...mean, low: Math.max(least, mean.low), high: Math.min(most, mean.high) };
