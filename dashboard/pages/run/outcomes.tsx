import type { FC } from 'hono/jsx';
import { noOutcomes } from '../../../core/episode/outcome.ts';
import type { OutcomeKind } from '../../../core/episode/outcome.ts';
import type { StoredStep } from '../../../store/training/step-facts.ts';
import { percent } from '../../../core/percent.ts';
import { Table, numeric } from '../../parts/table.tsx';

export const Outcomes: FC<{ steps: readonly StoredStep[] }> = ({ steps }) => {
  const sums = noOutcomes();
  const last = steps.findLast(({ rollout }) => rollout !== null)?.rollout?.outcomes;
  const failures: Record<string, number> = {};
  for (const { rollout } of steps) {
    for (const [kind, count] of Object.entries(rollout?.outcomes ?? {})) sums[kind as OutcomeKind] += count;
    for (const [boundary, count] of Object.entries(rollout?.failures ?? {})) {
      failures[boundary] = (failures[boundary] ?? 0) + count;
    }
  }
  const all = Object.values(sums).reduce((sum, count) => sum + count, 0);
  if (all === 0) return null;
  return (
    <>
      <h2>Outcomes</h2>
      <Table
        caption="Episodes that were rolled out for training"
        columns={['outcome', numeric('last step'), numeric('whole run'), numeric('share')]}
      >
        {Object.entries(sums).map(([kind, count]) => (
          <tr>
            <th scope="row">{kind}</th>
            <td class="number">{last?.[kind as OutcomeKind] ?? 0}</td>
            <td class="number">{count}</td>
            <td class="number">{percent(count / all)}</td>
          </tr>
        ))}
      </Table>
      {Object.keys(failures).length > 0 && (
        <p class="note">
          Failed, by boundary:{' '}
          {Object.entries(failures)
            .map(([boundary, count]) => `${boundary} ${count}`)
            .join(', ')}
        </p>
      )}
    </>
  );
};
