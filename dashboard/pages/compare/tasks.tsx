import type { FC } from 'hono/jsx';
import type { CommonEpisode, CommonTasks } from '../../../runs/comparison/compare.ts';
import { shortNumber } from '../../../svg/charts.ts';
import { episodeAt } from '../../address.ts';
import { Success } from '../../parts/numbers.tsx';
import { Table } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';
import { MOST_ROWS, runHeads } from './run-heads.tsx';
import type { Asking } from './asking.ts';
import { placeText } from './asking.ts';

export const ComparedTasks: FC<{ runs: readonly string[]; tasks: CommonTasks; only: Asking['tasks'] }> = ({
  runs,
  tasks: { at, tasks, success, solved },
  only,
}) => {
  const shown = tasks.filter(({ of }) => only === 'all' || new Set(of.map(solvedOf)).size > 1);
  return (
    <>
      <h2>
        Tasks of <Text value={placeText(at)} max={120} /> that all were asked
      </h2>
      {tasks.length === 0 ? (
        <p>There is none: their tasks are others.</p>
      ) : (
        <>
          <p>
            {tasks.length} tasks.{' '}
            {runs.map((run, r) => (
              <>
                {run}: <Success of={success[r]!} />
                {'. '}
              </>
            ))}
            {solved &&
              `Both solve ${solved.both}, ${runs[0]!} alone ${solved.first}, ${runs[1]!} alone ${solved.second}, neither ${solved.neither}.`}
          </p>
          {shown.length === 0 ? (
            <p>Each of them is solved by all runs alike.</p>
          ) : (
            <>
              <Table label="common tasks" columns={['task', ...runHeads(runs)]}>
                {shown.slice(0, MOST_ROWS).map(({ ref, prompt, of }) => (
                  <tr data-item>
                    <th scope="row">
                      <Text
                        value={`${ref.environment} level ${ref.level}, ${ref.split} ${ref.index}`}
                        max={200}
                      />
                      <br />
                      <small>
                        <Text value={prompt} max={160} />
                      </small>
                    </th>
                    {of.map((some, r) => (
                      <td>
                        {some.map((one) => (
                          <>
                            <a class="chip" href={episodeAt({ run: runs[r]!, ...at, ...one })}>
                              {outcomeOf(one)}
                            </a>{' '}
                          </>
                        ))}
                      </td>
                    ))}
                  </tr>
                ))}
              </Table>
              {shown.length > MOST_ROWS && <p class="note">{shown.length - MOST_ROWS} more are not shown</p>}
            </>
          )}
        </>
      )}
    </>
  );
};

/** Successes of a task's samples, as text. */
const solvedOf = (some: readonly CommonEpisode[]): string =>
  some
    .map(({ success }) => String(success))
    .toSorted()
    .join();

const outcomeOf = ({ success, reward }: CommonEpisode): string =>
  `${success === null ? 'not judged' : success ? 'solved' : 'not solved'}${reward === null ? '' : `, ${shortNumber(reward)}`}`;
