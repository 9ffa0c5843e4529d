import { funnelChart as chart } from '../../../../svg/funnel.ts';
import { countText, dollars, duration, toolName } from '../names.ts';
import type { TierFunnel } from '../report.ts';

/** How many candidates reached each tier and passed it, on a logarithmic scale, and what the tier cost. */
export const reportFunnel = (width: number, height: number, funnel: readonly TierFunnel[]): string[] =>
  chart(width, height, {
    heading: 'Funnel: who reached each tier, and what it cost',
    note: 'pale: candidates of all training steps; full: those that passed; logarithmic',
    tiers: funnel.map((tier) => ({
      name: `${tier.tier}: ${toolName(tier.verifier)}`,
      className: tier.tier,
      reached: { count: tier.candidates, words: countText(tier.candidates) },
      passed: { count: tier.passed, words: `${countText(tier.passed)} passed` },
      cost: costOf(tier),
      details: detailsOf(tier),
    })),
  });

function costOf({ computed, seconds, usd }: TierFunnel): string {
  if (computed === null || seconds === null || usd === null) return 'below 1 ms each';
  return `${countText(computed)} calculations, ${duration(seconds)}, ${dollars(usd)}`;
}

function detailsOf({ different, abstained, deferred, waiting }: TierFunnel): string {
  const rest: [number, string][] = [
    [abstained, 'abstained'],
    [deferred, 'deferred'],
    [waiting, 'without a verdict'],
  ];
  const some = rest.filter(([value]) => value > 0).map(([value, what]) => `${countText(value)} ${what}`);
  return [`${countText(different)} different molecules`, ...some].join(', ');
}
