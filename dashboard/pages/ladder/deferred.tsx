import type { FC } from 'hono/jsx';
import { decimals } from '../../../core/decimals.ts';
import type { LadderRung, LadderView } from '../../../runs/ladder/ladder.ts';
import type { DeferredView } from '../../../runs/ladder/deferred.ts';
import { amount } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';
import { Listing, SubjectLink } from './listing.tsx';

export const Deferred: FC<{ view: LadderView }> = ({ view: { run, deferred, rungs } }) => (
  <>
    <h2>Deferred</h2>
    {rungs.some(({ totals }) => totals.deferred > 0) && <p>{deferredText(rungs, deferred)}</p>}
    {deferred.count === 0 ? (
      <p>Nothing waits in the archive for a budget.</p>
    ) : (
      <Listing
        caption={`What no budget had room for and nobody has judged since: the best ${deferred.best.length} of ${deferred.count} by what the rung is expected to say. A sweep works through them in this order.`}
        columns={['expected', 'rung', 'subject', 'rests on']}
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
                ? 'no rung could judge it'
                : `${rungs.find(({ rung }) => rung === basis.rung)?.verifier ?? `rung ${basis.rung}`} said ${basis.score.toFixed(3)}`}
            </td>
          </tr>
        ))}
      </Listing>
    )}
  </>
);

/** The table counts decisions about episodes, and the list subjects: how the one comes to the other. */
export function deferredText(
  rungs: readonly Pick<LadderRung, 'totals'>[],
  { count, judged }: Pick<DeferredView, 'count' | 'judged'>,
): string {
  const decisions = rungs.reduce((sum, { totals }) => sum + totals.deferred, 0);
  return `${amount(decisions, 'decision')} to defer an episode, about ${amount(count + judged, 'subject')}: ${judged.toLocaleString('en')} judged since, ${count.toLocaleString('en')} open.`;
}
