import { count, dollars, duration, toolName } from '../names.ts';
import type { TierFunnel } from '../report.ts';
import { line, panel, rect, text } from '../../../../svg/elements.ts';

const LEFT = 16;
const TOP = 72;
const BLOCK = 84;

/** How many candidates reached each tier and passed it, on a logarithmic scale, and what the tier cost. */
export function funnelChart(width: number, height: number, funnel: readonly TierFunnel[]): string[] {
  const most = Math.max(10, ...funnel.map(({ candidates }) => candidates));
  const decades = Math.ceil(Math.log10(most));
  // Room for the longest figure behind the longest bar.
  const room = width - 2 * LEFT - 60;
  const x = (value: number): number => (value < 1 ? 0 : 3 + (Math.log10(value) / decades) * (room - 3));
  const bottom = TOP + funnel.length * BLOCK;
  const ticks = Array.from({ length: decades + 1 }, (_, power) => 10 ** power);
  return [
    ...panel(width, height, 'Funnel: who reached each tier, and what it cost'),
    text(LEFT, 46, 'pale: candidates of all training steps; full: those that passed; logarithmic', {
      size: 12,
      className: 'muted',
    }),
    ...ticks.map((value) => line(LEFT + x(value), TOP - 10, LEFT + x(value), bottom, 'grid')),
    ...ticks.map((value) =>
      text(LEFT + x(value), bottom + 16, count(value), { size: 11, className: 'muted', anchor: 'middle' }),
    ),
    ...funnel.flatMap((tier, i) => block(tier, TOP + i * BLOCK)),
  ];

  function block(tier: TierFunnel, y: number): string[] {
    const { candidates, passed } = tier;
    return [
      text(LEFT, y + 4, `${tier.tier}: ${toolName(tier.verifier)}`, { bold: true, className: tier.tier }),
      text(width - LEFT, y + 4, costOf(tier), { anchor: 'end', size: 12 }),
      rect(LEFT, y + 12, x(candidates), 14, `${tier.tier} faint`, 2),
      text(LEFT + x(candidates) + 6, y + 24, count(candidates), { size: 12 }),
      rect(LEFT, y + 28, x(passed), 14, tier.tier, 2),
      text(LEFT + x(passed) + 6, y + 40, `${count(passed)} passed`, { size: 12 }),
      text(LEFT, y + 58, detailsOf(tier), { size: 12, className: 'muted', maxWidth: width - 2 * LEFT }),
    ];
  }
}

function costOf({ computed, seconds, usd }: TierFunnel): string {
  if (computed === null || seconds === null || usd === null) return 'below 1 ms each';
  return `${count(computed)} calculations, ${duration(seconds)}, ${dollars(usd)}`;
}

function detailsOf({ different, abstained, deferred, waiting }: TierFunnel): string {
  const rest: [number, string][] = [
    [abstained, 'abstained'],
    [deferred, 'deferred'],
    [waiting, 'without a verdict'],
  ];
  const some = rest.filter(([value]) => value > 0).map(([value, what]) => `${count(value)} ${what}`);
  return [`${count(different)} different molecules`, ...some].join(', ');
}
