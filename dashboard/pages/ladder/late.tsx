import type { FC } from 'hono/jsx';
import type { LadderView } from '../../../runs/ladder/ladder.ts';
import { amountText } from '../../parts/numbers.tsx';
import { Text } from '../../parts/text.tsx';
import { Table } from '../../parts/table.tsx';
import { Verdicts } from './verdicts.tsx';

/** One that came when the run was over is not late: nothing waited for it. */
export function lateText(late: number, afterRun: number): string {
  const parts = [
    ...(late > 0 ? [`${amountText(late, 'verdict')} came after their step had gone on`] : []),
    ...(afterRun > 0 ? [`${amountText(afterRun, 'verdict')} came after the end of the run`] : []),
  ];
  return `${parts.join('; ')}.`;
}

export const Late: FC<{ view: LadderView }> = ({ view: { run, ledger, rungs: tiers } }) => {
  const { late, offered } = ledger;
  const afterRun = tiers.reduce((sum, { totals }) => sum + totals.afterRun, 0);
  return (
    <>
      <h2>Late verdicts</h2>
      {late.count === 0 ? (
        <p>No verdict came after its step had gone on.</p>
      ) : (
        <>
          <p>
            {lateText(late.count - afterRun, afterRun)}{' '}
            {offered.count === 0
              ? 'None changed a reward that was trained on again.'
              : `They changed rewards of ${amountText(offered.episodes, 'episode')}, trained on again in ${amountText(offered.count, 'offer')}.`}
          </p>
          <Verdicts
            run={run}
            caption={`The newest: ${amountText(late.newest.length, 'verdict')}`}
            of={late.newest}
          />
          {offered.newest.length > 0 && (
            <Table caption="What was trained on again" columns={['in step', 'episodes of step', 'episodes']}>
              {offered.newest.toReversed().map(({ stage, step, fromStep, episodes }) => (
                <tr>
                  <td>
                    <Text value={stage} max={100} /> {step}
                  </td>
                  <td>{fromStep}</td>
                  <td class="number">{episodes}</td>
                </tr>
              ))}
            </Table>
          )}
        </>
      )}
    </>
  );
};
