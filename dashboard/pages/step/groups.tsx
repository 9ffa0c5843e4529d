import type { FC } from 'hono/jsx';
import type { TruncatedRule } from '../../../core/episode/outcome.ts';
import { comparedSamples, taskOf } from '../../../runs/episodes/contrast.ts';
import type { EpisodeRow } from '../../../runs/episodes/episode-rows.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { episodeAt, taskAt } from '../../address.ts';
import { Num, NumberCell } from '../../parts/numbers.tsx';
import { Pages } from '../../parts/pages.tsx';
import { Text } from '../../parts/text.tsx';
import { Table, numeric } from '../../parts/table.tsx';
import type { Paged } from './paged.ts';
import { shownRows } from './paged.ts';

/** Rewards of a row. */
const MOST_CHIPS = 64;

export const Groups: FC<{
  paged: Paged;
  rows: readonly EpisodeRow[];
  truncated: TruncatedRule;
  greedy: boolean;
}> = ({ paged, rows, truncated, greedy }) => {
  const { run } = paged;
  const groups = comparedSamples(rows, truncated, { greedy }).toSorted(
    (a, b) => (b.deviation ?? -1) - (a.deviation ?? -1),
  );
  if (groups.length === 0) return <p>No episode of this step is stored.</p>;
  const shown = shownRows(paged, groups);
  const silent = groups.filter(({ deviation }) => deviation === null || deviation === 0);
  return (
    <>
      <h2>Groups, by how much their rewards differ</h2>
      <p class="note">
        {silent.length} of {groups.length} have no contrast: their rewards are all equal, or too few to be
        compared. What the samples of a tree are compared within is the tree.
        {greedy && ' The greedy samples that others are compared with are no groups.'}
      </p>
      <Table
        columns={[
          'task, a link to its samples',
          numeric('deviation'),
          numeric('mean'),
          numeric('solved'),
          'rewards, each a link to its episode',
        ]}
      >
        {shown.rows.map(({ rows: some, mean, deviation, taught }) => (
          <tr data-item>
            <th scope="row">
              <a href={taskAt({ run, ...some[0]! })}>
                <Text value={taskOf(some[0]!)} max={200} />
              </a>
              {some[0]!.retried && ' (again)'}
              {some[0]!.hinted && ' (with a hint)'}
            </th>
            <td class="number">
              <Num value={deviation} />
              {!taught && <span class="warn"> no advantages</span>}
            </td>
            <NumberCell value={mean} />
            <td class="number">
              {some.every(({ success }) => success === null)
                ? '–'
                : `${some.filter(({ success }) => success === true).length}/${some.length}`}
            </td>
            <td>
              {some.slice(0, MOST_CHIPS).map((row) => (
                <>
                  <a class="chip" href={episodeAt({ run, ...row })}>
                    {row.reward === null ? row.outcome : shortNumber(row.reward)}
                  </a>{' '}
                </>
              ))}
              {some.length > MOST_CHIPS && <>and {some.length - MOST_CHIPS} more</>}
            </td>
          </tr>
        ))}
      </Table>
      <Pages label="groups" page={paged.page} last={shown.last} to={paged.to} />
    </>
  );
};
