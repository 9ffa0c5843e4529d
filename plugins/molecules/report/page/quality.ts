import type { Interval } from '../../../../core/statistics/intervals.ts';
import { rate } from '../../../../core/statistics/intervals.ts';
import { percent } from '../../../../core/percent.ts';
import { toolName } from '../names.ts';
import type { QualityComparison } from '../quality.ts';
import { dot, group, line, rect, text, widthOf } from '../../../../svg/elements.ts';

const GAP = 16;
const HEIGHT = 116;

interface Shown extends Interval {
  value: number;
}

/** Before and after RL, on the report's tasks: one box for each measure. */
export function qualityStrip(width: number, { before, after, judge }: QualityComparison) {
  const boxes: [string, string, Shown, Shown, (value: number) => string][] = [
    [
      'Valid molecules',
      `within the limits, of ${after.valid.trials} tasks`,
      { value: rate(before.valid), ...before.valid },
      { value: rate(after.valid), ...after.valid },
      percent,
    ],
  ];
  const name = judge === null ? '' : toolName(judge);
  if (before.score && after.score) {
    const [then, now] = [before.score, after.score];
    boxes.push([
      `Mean ${name} score`,
      'no molecule counts as zero',
      { ...then, value: then.mean },
      { ...now, value: now.mean },
      (value) => value.toFixed(2),
    ]);
  }
  if (before.good && after.good) {
    boxes.push([
      `${name} score of at least 0.9`,
      `of ${before.good.trials} and ${after.good.trials} judged`,
      { value: rate(before.good), ...before.good },
      { value: rate(after.good), ...after.good },
      percent,
    ]);
  }
  const box = (width - (boxes.length - 1) * GAP) / boxes.length;
  const parts = boxes.map(([title, note, then, now, show], i) =>
    group(i * (box + GAP), 0, measure(box, title, note, then, now, show)),
  );
  return { height: HEIGHT, parts };
}

function measure(
  width: number,
  title: string,
  note: string,
  before: Shown,
  after: Shown,
  show: (value: number) => string,
): string[] {
  const [left, right] = [16, width - 16];
  const x = (value: number): number => left + value * (right - left);
  const change = `${show(before.value)} → ${show(after.value)}`;
  const bar = (y: number, { low, high, value }: Shown, kind: 'before' | 'high-fidelity') => [
    line(x(low), y, x(high), y, `${kind}-line`),
    dot(x(value), y, 5, kind),
  ];
  return [
    rect(0, 0, width, HEIGHT, 'panel', 8),
    text(left, 26, title, { size: 15, bold: true }),
    text(left, 46, note, { size: 12, className: 'muted', maxWidth: right - left - widthOf(change, 16) }),
    text(right, 47, change, { size: 16, bold: true, anchor: 'end' }),
    rect(left, 60, right - left, 30, 'track', 4),
    ...bar(68, before, 'before'),
    ...bar(82, after, 'high-fidelity'),
    text(left, 106, show(0), { size: 11, className: 'muted' }),
    text((left + right) / 2, 106, 'before ○   after ●', { size: 11, className: 'muted', anchor: 'middle' }),
    text(right, 106, show(1), { size: 11, className: 'muted', anchor: 'end' }),
  ];
}
