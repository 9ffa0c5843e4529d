import type { FC } from 'hono/jsx';
import { taskOf } from '../../../runs/episodes/contrast.ts';
import type { EpisodeRow } from '../../../runs/episodes/episode-rows.ts';
import { episodeAt } from '../../address.ts';
import { NumberCell } from '../../parts/numbers.tsx';
import { Pages } from '../../parts/pages.tsx';
import { Text } from '../../parts/text.tsx';
import { Table, numeric } from '../../parts/table.tsx';
import type { Paged } from './paged.ts';
import { shownRows } from './paged.ts';

/** One sample of each task. */
export const isEvaluation = (rows: readonly EpisodeRow[]): boolean =>
  rows.length > 0 && new Set(rows.map(taskOf)).size === rows.length;

export const StepTasks: FC<{ paged: Paged; rows: readonly EpisodeRow[] }> = ({ paged, rows }) => {
  const { run } = paged;
  const shown = shownRows(paged, rows);
  return (
    <>
      <h2>Tasks</h2>
      <Table columns={['task', 'outcome', numeric('reward'), numeric('turns'), numeric('tokens')]}>
        {shown.rows.map((row) => (
          <tr data-item>
            <th scope="row">
              <a href={episodeAt({ run, ...row })}>
                <Text value={taskOf(row)} max={200} />
              </a>
            </th>
            <td>
              {row.outcome}
              {row.success === true && ', solved'}
            </td>
            <NumberCell value={row.reward} />
            <td class="number">{row.turns}</td>
            <td class="number">{row.sampledTokens}</td>
          </tr>
        ))}
      </Table>
      <Pages label="tasks" page={paged.page} last={shown.last} to={paged.to} />
    </>
  );
};
