import type { FC } from 'hono/jsx';
import type { LedgerTotals } from '../../../core/ladder/ledger.ts';
import type { TierRow, LadderView } from '../../../runs/ladder/ladder.ts';
import { figure } from '../../../svg/elements.ts';
import { funnelChart, funnelHeight } from '../../../svg/funnel.ts';
import type { FunnelTier } from '../../../svg/funnel.ts';
import { Figure } from '../../parts/chart.tsx';
import { dollars, duration } from '../../parts/numbers.tsx';
import { Table, numeric } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';

const FUNNEL_WIDTH = 640;

export const Funnel: FC<{ view: LadderView }> = ({ view: { rungs, ledger } }) => {
  const tiers = rungs.map((tier) => tierOf(tier, ledger.episodes));
  const height = funnelHeight(tiers.length);
  const parts = funnelChart(FUNNEL_WIDTH, height, {
    heading: 'Candidates judged and escalated, verdicts, and their cost',
    note: 'pale: episodes; full: those that go on, then subjects that were answered; logarithmic',
    tiers,
  });
  const label = `Funnel: ${tiers.map(({ name, reached, passed }) => `${name}: ${reached.words}, ${passed.words}`).join('; ')}`;
  return (
    <>
      <h2>Funnel</h2>
      <div class="funnel">
        <Figure heading="By tier" svg={figure(label, FUNNEL_WIDTH, height, parts)} wide />
      </div>
      <Table
        label="tiers"
        caption="Episodes: for the lowest tier those that it judged, for the others those that were escalated to it. Deferred, accepted and rejected are decisions about episodes; each subject that a verifier was asked about counts once. Computed: for this run; shared: computed for another one, or before. For people, the time that their reviews were open is shown; it is not working time and in no other figure."
        columns={['tier', ...COLUMNS.map(([name]) => numeric(name))]}
      >
        {rungs.map((tier) => (
          <tr>
            <th scope="row">
              <Text value={tier.verifier} max={100} />{' '}
              <small class="whole">{tier.tier ?? 'no tier: measured or swept'}</small>
            </th>
            {COLUMNS.map(([name, value]) => (
              <td class="number">
                {tier.rung !== 0 || OF_THE_LOWEST.has(name)
                  ? value(tier)
                  : name === 'episodes'
                    ? ledger.episodes.judged
                    : '–'}
              </td>
            ))}
          </tr>
        ))}
      </Table>
    </>
  );
};

/** The lowest tier judges every episode where it is rolled out; the others are asked about subjects, at a price. */
function tierOf(
  { verifier, tier, rung, totals, answered }: TierRow,
  { judged, climbed: escalated }: LadderView['ledger']['episodes'],
): FunnelTier {
  const count = (value: number, what: string) => ({
    count: value,
    words: `${value.toLocaleString('en')} ${what}`,
  });
  const about = { name: tier === null ? verifier : `${tier}: ${verifier}`, className: tier ?? 'fast' };
  if (rung === 0) {
    const details = `${totals.rejected.toLocaleString('en')} rejected by its verdict alone`;
    return {
      ...about,
      reached: count(judged, 'episodes'),
      passed: count(escalated, 'to be escalated'),
      cost: '',
      details,
    };
  }
  return {
    ...about,
    reached: count(totals.escalated, 'escalated'),
    passed: count(answered, 'answered'),
    cost: `${totals.computed.toLocaleString('en')} computed, ${duration(totals.seconds)}, ${dollars(totals.usd)}`,
    details: detailsOf(totals),
  };
}

/** What the ledger knows of the lowest tier, too. */
const OF_THE_LOWEST: ReadonlySet<string> = new Set(['accepted', 'rejected']);

function detailsOf({ shared, abstained, deferred, late, afterRun, lost }: LedgerTotals): string {
  const all: [number, string][] = [
    [shared, 'shared'],
    [abstained, 'abstained'],
    [deferred, 'deferred'],
    [late, 'late'],
    [afterRun, 'after the run'],
    [lost, 'attempts lost'],
  ];
  const some = all.filter(([count]) => count > 0);
  return some.map(([count, what]) => `${count.toLocaleString('en')} ${what}`).join(', ');
}

const COLUMNS: readonly (readonly [name: string, value: (tier: TierRow) => string])[] = [
  ['episodes', ({ totals }) => String(totals.escalated)],
  ['subjects', ({ asked }) => String(asked)],
  ['answered', ({ answered }) => String(answered)],
  ['computed', ({ totals }) => String(totals.computed)],
  ['shared', ({ totals }) => String(totals.shared)],
  ['abstained', ({ totals }) => String(totals.abstained)],
  ['late', ({ totals }) => String(totals.late)],
  ['after the run', ({ totals }) => String(totals.afterRun)],
  [
    'attempts lost',
    ({ totals: { lost, lostSeconds } }) => (lost === 0 ? '0' : `${lost} (${duration(lostSeconds)})`),
  ],
  ['deferred', ({ totals }) => String(totals.deferred)],
  ['accepted', ({ totals }) => String(totals.accepted)],
  ['rejected', ({ totals }) => String(totals.rejected)],
  ['time', ({ totals }) => duration(totals.seconds)],
  ['reviews open', ({ totals }) => (totals.openSeconds === 0 ? '–' : duration(totals.openSeconds))],
  ['cost', ({ totals }) => dollars(totals.usd)],
];
