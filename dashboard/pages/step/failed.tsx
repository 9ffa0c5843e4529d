import type { FC } from 'hono/jsx';
import { taskOf } from '../../../runs/episodes/contrast.ts';
import type { EpisodeRow } from '../../../runs/episodes/episode-rows.ts';
import { episodeAt, taskAt } from '../../address.ts';
import { Text } from '../../parts/text.tsx';

/** Tasks, and episodes, that are listed beside the table. */
const MOST_LISTED = 200;

/** Tasks of which no sample has succeeded, and what else came to nothing. */
export const FailedEpisodes: FC<{ run: string; rows: readonly EpisodeRow[] }> = ({ run, rows }) => {
  const tasks = new Map<string, EpisodeRow[]>();
  for (const row of rows) {
    const some = tasks.get(taskOf(row));
    if (some) some.push(row);
    else tasks.set(taskOf(row), [row]);
  }
  // Without the run's spec it is not known of any.
  const isKnown = rows.some(({ success }) => success !== null);
  const failed = [...tasks].filter(([, some]) => isKnown && some.every(({ success }) => success !== true));
  const lost = rows.filter(({ outcome }) => ['failed', 'abstained', 'pending'].includes(outcome));
  return (
    <>
      {failed.length > 0 && (
        <>
          <h2>Tasks that no sample has solved</h2>
          <details>
            <summary>
              {failed.length} of {tasks.size}
              {failed.length > MOST_LISTED && `, the first ${MOST_LISTED} of them`}
            </summary>
            <ul>
              {failed.slice(0, MOST_LISTED).map(([task, some]) => (
                <li data-item>
                  <a href={taskAt({ run, ...some[0]! })}>
                    <Text value={task} max={200} />
                  </a>
                </li>
              ))}
            </ul>
          </details>
        </>
      )}
      {lost.length > 0 && (
        <>
          <h2>Without a reward</h2>
          <ul>
            {lost.slice(0, MOST_LISTED).map((row) => (
              <li data-item>
                <a href={episodeAt({ run, ...row })}>
                  group {row.group}, sample {row.sample}
                </a>
                : {row.outcome}
                {row.boundary && ` at ${row.boundary}`} <Text value={row.reason ?? ''} max={300} />
              </li>
            ))}
          </ul>
          {lost.length > MOST_LISTED && <p>and {lost.length - MOST_LISTED} more</p>}
        </>
      )}
    </>
  );
};
