import type { FC } from 'hono/jsx';
import { LAST_ROW } from '../../../runs/find/find.ts';
import type { Findings } from '../../../runs/find/find.ts';
import type { Job } from '../../../runs/find/find-jobs.ts';
import { episodeAt, stepAt } from '../../address.ts';
import { rate } from '../../../core/statistics/intervals.ts';
import { percent } from '../../../core/percent.ts';
import { Num, amountText, countText, NumberCell } from '../../parts/numbers.tsx';
import { Table, numeric } from '../../parts/table.tsx';
import { Text } from '../../parts/text.tsx';
import type { FindRequest } from './asked.ts';
import { linkTo } from './asked.ts';

export const FOUND_ROWS = 50;

export const Reading: FC<{ job: Job; asked: FindRequest; missing: number }> = ({ job, asked, missing }) => {
  if (job.state === 'done' || missing === 0) return null;
  return (
    <p class="stale" role="status">
      {job.state === 'failed' ? (
        <>
          {missing} steps could not be read: <Text value={job.problem ?? ''} max={500} />{' '}
        </>
      ) : (
        <>
          The episodes of this run are being read for the first time: {job.at.done} of {job.at.total} steps.
          What is found below is of those.{' '}
        </>
      )}
      <a href={linkTo('/find', asked, { page: asked.page })}>Look again</a>
    </p>
  );
};

export const FoundRows: FC<{ asked: FindRequest; findings: Findings }> = ({ asked, findings }) => {
  const { run, page } = asked;
  const { rows, total, there, success, meanReward, unknown } = findings;
  const first = (page - 1) * FOUND_ROWS + 1;
  return (
    <>
      <h2>
        {countText(total)} of {amountText(there.episodes, 'episode')}
      </h2>
      {unknown.map((message) => (
        <p class="note">
          <Text value={message} max={1000} />
        </p>
      ))}
      <p class="note">
        {success.trials > 0 && (
          <>
            solved {percent(rate(success))} ({countText(success.successes)} of {countText(success.trials)}
            ),{' '}
          </>
        )}
        mean reward <Num value={meanReward} />
        {rows.length > 0 && `; shown are ${countText(first)} to ${countText(first + rows.length - 1)}`}
        {total > LAST_ROW && `; pages end after ${countText(LAST_ROW)}, files have all`}
      </p>
      {rows.length > 0 && (
        <Table
          label="episodes"
          columns={[
            'episode',
            'step',
            'task',
            'outcome',
            numeric('reward'),
            numeric('tokens'),
            numeric('turns'),
            'calls',
            'errors',
            'answer',
          ]}
        >
          {rows.map((row) => (
            <tr data-item>
              <th scope="row">
                <a href={episodeAt({ run, ...row })}>
                  {row.group}/{row.episode}
                </a>
              </th>
              <td>
                <a href={stepAt({ run, ...row })}>
                  <Text value={row.stage} max={80} /> {row.step}
                </a>
              </td>
              <td>
                <Text value={row.environment} max={80} /> level {row.level}, {row.split} {row.index}
                {row.retried && ' (again)'}
                {row.hinted && ' (with a hint)'}
              </td>
              <td>
                {row.outcome}
                {row.success === true && ', solved'}
                {row.boundary !== null && ` at ${row.boundary}`}
                {row.reason !== null && (
                  <>
                    {': '}
                    <Text value={row.reason} max={120} />
                  </>
                )}
              </td>
              <NumberCell value={row.reward} />
              <td class="number">{row.sampledTokens}</td>
              <td class="number">{row.turns}</td>
              <td>
                <Counts of={row.tools} />
              </td>
              <td>
                <Counts of={row.errors} />
              </td>
              <td>
                <Text value={row.answer ?? ''} max={60} />
              </td>
            </tr>
          ))}
        </Table>
      )}
    </>
  );
};

const Counts: FC<{ of: Record<string, number> }> = ({ of }) => (
  <>
    {Object.entries(of)
      .slice(0, 5)
      .map(([name, count], i) => (
        <>
          {i > 0 && ', '}
          {count} <Text value={name} max={60} />
        </>
      ))}
  </>
);
