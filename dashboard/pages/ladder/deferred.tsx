import type { FC } from 'hono/jsx';
import { decimals } from '../../../core/decimals.ts';
import type { TierRow, LadderView } from '../../../runs/ladder/ladder.ts';
import type { DeferredView } from '../../../runs/ladder/deferred.ts';
import { amountText } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';
import { Table } from '../../parts/table.tsx';
import { SubjectLink } from './subject-link.tsx';

export const DeferredTable: FC<{ view: LadderView }> = ({ view: { run, deferred, rungs: tiers } }) => (
  <>
    <h2>Deferred</h2>
    {tiers.some(({ totals }) => totals.deferred > 0) && <p>{deferredText(tiers, deferred)}</p>}
    {deferred.count === 0 ? (
      <p>No candidate waits in the archive for a budget.</p>
    ) : (
      <Table
        caption={`Candidates that no budget had room for and that were not judged since: the best ${deferred.best.length} of ${deferred.count} by the score that their tier is expected to give. A sweep works through them in this order.`}
        columns={['expected', 'tier', 'subject', 'rests on']}
      >
        {deferred.best.map(({ value, verifier, digest, basis }) => (
          <tr data-item>
            <td class="number">{decimals(value, 3)}</td>
            <td>
              <Text value={verifier} max={100} />
            </td>
            <td>
              <SubjectLink run={run} verifier={verifier} digest={digest} />
            </td>
            <td>
              {basis === null
                ? 'no tier could judge it'
                : `${basis.learned ?? tiers.find(({ rung: tier }) => tier === basis.rung)?.verifier ?? `tier ${basis.rung}`} gave ${basis.score.toFixed(3)}`}
            </td>
          </tr>
        ))}
      </Table>
    )}
  </>
);

/** The table counts decisions about episodes, and the list subjects: how the one comes to the other. */
export function deferredText(
  tiers: readonly Pick<TierRow, 'totals'>[],
  { count, judged }: Pick<DeferredView, 'count' | 'judged'>,
): string {
  const decisions = tiers.reduce((sum, { totals }) => sum + totals.deferred, 0);
  return `${amountText(decisions, 'decision')} to defer an episode, about ${amountText(count + judged, 'subject')}: ${judged.toLocaleString('en')} judged since, ${count.toLocaleString('en')} open.`;
}
