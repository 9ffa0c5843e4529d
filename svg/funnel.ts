import { line, panel, rect, text } from './elements.ts';

/** A tier that candidates reach, or do not. */
export interface FunnelTier {
  name: string;
  /** Class of its colour. */
  className: string;
  /** How many came here, and how many of them went on, in the words that stand beside their bars. */
  reached: { count: number; words: string };
  passed: { count: number; words: string };
  cost: string;
  details: string;
}

const LEFT = 16;
const TOP = 72;
/** Height of one tier, pixels. */
const FUNNEL_BLOCK = 84;
/** Height of a chart with so many tiers and its axis, pixels. */
export const funnelHeight = (tiers: number): number => TOP + tiers * FUNNEL_BLOCK + 28;

/** How many candidates reached each tier and passed it, on a logarithmic scale, and what the tier cost. */
export function funnelChart(
  width: number,
  height: number,
  { heading, note, tiers }: { heading: string; note: string; tiers: readonly FunnelTier[] },
): string[] {
  const most = Math.max(10, ...tiers.map(({ reached }) => reached.count));
  const decades = Math.ceil(Math.log10(most));
  // Room for the longest figure behind the longest bar.
  const room = width - 2 * LEFT - 60;
  const x = (value: number): number => (value < 1 ? 0 : 3 + (Math.log10(value) / decades) * (room - 3));
  const bottom = TOP + tiers.length * FUNNEL_BLOCK;
  const ticks = Array.from({ length: decades + 1 }, (_, power) => 10 ** power);
  return [
    ...panel(width, height, heading),
    text(LEFT, 46, note, { size: 12, className: 'muted' }),
    ...ticks.map((value) => line(LEFT + x(value), TOP - 10, LEFT + x(value), bottom, 'grid')),
    ...ticks.map((value) =>
      text(LEFT + x(value), bottom + 16, value.toLocaleString('en'), {
        size: 11,
        className: 'muted',
        anchor: 'middle',
      }),
    ),
    ...tiers.flatMap((tier, i) => block(tier, TOP + i * FUNNEL_BLOCK)),
  ];

  function block({ name, className, reached, passed, cost, details }: FunnelTier, y: number): string[] {
    return [
      text(LEFT, y + 4, name, { bold: true, className }),
      text(width - LEFT, y + 4, cost, { anchor: 'end', size: 12 }),
      rect(LEFT, y + 12, x(reached.count), 14, `${className} faint`, 2),
      text(LEFT + x(reached.count) + 6, y + 24, reached.words, { size: 12 }),
      rect(LEFT, y + 28, x(passed.count), 14, className, 2),
      text(LEFT + x(passed.count) + 6, y + 40, passed.words, { size: 12 }),
      text(LEFT, y + 58, details, { size: 12, className: 'muted', maxWidth: width - 2 * LEFT }),
    ];
  }
}
