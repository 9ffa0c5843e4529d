import { percent } from '../../core/percent.ts';
import type { FC } from 'hono/jsx';
import { rate } from '../../core/statistics/intervals.ts';
import type { Proportion } from '../../core/statistics/intervals.ts';
import { measuredShare } from '../../core/statistics/measured.ts';
import type { EvaluationResult } from '../../core/requests/evaluation.ts';
import { samplesIn } from '../../core/training/dimensions.ts';
import { total } from '../../core/training/stage-policy.ts';
import { shortNumber } from '../../svg/charts.ts';

/** How sure the intervals of pages are. */
export const CONFIDENCE = 0.95;

/** A success rate with Wilson's interval, of as many trials as there are tasks, and what it was measured on. */
export const Success: FC<{ of: Proportion & { samples?: number } }> = ({ of }) => {
  if (of.trials === 0) return <>–</>;
  const { low, high } = measuredShare(of, CONFIDENCE, of.samples);
  return (
    <span class="success">
      {percent(rate(of))}{' '}
      <small title={`${of.successes} of ${of.trials}; 95 % interval`}>
        [{(100 * low).toFixed(1)}, {(100 * high).toFixed(1)}]
      </small>
    </span>
  );
};

/** Of a report, which may sample each of its tasks several times. */
export const Reported: FC<{ of: EvaluationResult }> = ({ of }) => (
  <Success of={{ ...total(of.arms), samples: samplesIn(of) }} />
);

/** A number as short as it can be read, or a dash for what is not known. */
export const Num: FC<{ value: number | null | undefined }> = ({ value }) => (
  <>{value === null || value === undefined || !Number.isFinite(value) ? '–' : shortNumber(value)}</>
);

/** Such a number in a column of them. */
export const NumberCell: FC<{ value: number | null | undefined }> = ({ value }) => (
  <td class="number">
    <Num value={value} />
  </td>
);

const STEPS: [seconds: number, unit: string][] = [
  [86_400, 'd'],
  [3600, 'h'],
  [60, 'min'],
];

/** `3 h 12 min`, `48 s`, `0.3 s`. */
export function duration(seconds: number): string {
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  for (const [i, [size, unit]] of STEPS.entries()) {
    if (seconds < size) continue;
    const rest = Math.floor((seconds % size) / (STEPS[i + 1]?.[0] ?? 1));
    const [, smaller = 's'] = STEPS[i + 1] ?? [];
    return `${Math.floor(seconds / size)} ${unit}${rest > 0 ? ` ${rest} ${smaller}` : ''}`;
  }
  return `${Math.round(seconds)} s`;
}

/** `1,000`. */
export const countText = (count: number): string => count.toLocaleString('en');

/** `1 verdict`, `1,000 verdicts`. */
export const amountText = (count: number, what: string, many = `${what}s`): string =>
  `${countText(count)} ${count === 1 ? what : many}`;

/** Cents where there are any, and what is less than one to two digits. */
export const dollars = (usd: number): string =>
  `US$ ${usd === 0 || Math.abs(usd) >= 0.01 ? usd.toFixed(2) : usd.toPrecision(2)}`;

/** What a verdict took and cost: a review is open, and nobody measures how long people work at it. */
export const priceText = (spent: { seconds: number; usd: number }, people = false): string =>
  `${people ? 'open for ' : ''}${duration(spent.seconds)}, ${dollars(spent.usd)}`;

/** A moment, by the clock of this machine, in UTC. */
export const Time: FC<{ at: number | Date }> = ({ at }) => {
  const iso = new Date(at).toISOString();
  return <time datetime={iso}>{`${iso.slice(0, 10)} ${iso.slice(11, 19)}`}</time>;
};

export function bytes(count: number): string {
  const units = ['bytes', 'KB', 'MB', 'GB', 'TB'];
  const power = Math.min(units.length - 1, count < 1000 ? 0 : Math.floor(Math.log10(count) / 3));
  return power === 0 ? `${count} bytes` : `${(count / 1000 ** power).toPrecision(3)} ${units[power]}`;
}
