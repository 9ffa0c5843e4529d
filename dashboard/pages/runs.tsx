import { raw } from 'hono/html';
import type { FC } from 'hono/jsx';
import { commandLine } from '../../core/installation.ts';
import { HeldOutCurves } from '../../runs/overview/held-out-curves.ts';
import { readRuns } from '../../runs/overview/runs.ts';
import type { RunRow, RunList } from '../../runs/overview/runs.ts';
import { sparkline } from '../../svg/charts.ts';
import { runAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { percent } from '../../core/percent.ts';
import { duration, Time } from '../parts/numbers.tsx';
import { Status } from '../parts/status.tsx';
import { Text } from '../parts/text.tsx';
import { Table, numeric } from '../parts/table.tsx';

/** Runs that the page lists unless it is asked for more. */
const LISTED = 50;
const MOST_LISTED = 1000;
/** Runs whose held-out success is drawn: each costs a look at all of its steps. */
const DRAWN = 20;

/** `/`: all runs at a glance, those that wait for a person first. */
export function runsPage(app: App, { sources }: Context): void {
  const heldOut = new HeldOutCurves(sources.store);
  app.get('/', async (c) => {
    const asked = Number(c.req.query('limit') ?? LISTED);
    const limit = Number.isInteger(asked) && asked > 0 ? Math.min(asked, MOST_LISTED) : LISTED;
    const runs = await readRuns(sources, { limit });
    const curves = await heldOut.of(drawnOf(runs));
    return c.html(
      <Layout title="Runs" live>
        <Live id="runs">
          {runs.problems.map((problem) => (
            <p class="stale" role="status">
              <Text value={problem} max={500} />
            </p>
          ))}
          <RunsTable runs={runs} curves={curves} />
        </Live>
        {runs.total > limit && limit < MOST_LISTED && (
          <p>
            <a href={`/?limit=${MOST_LISTED}`}>Show all {runs.total}</a>
          </p>
        )}
      </Layout>,
    );
  });
}

type Curves = ReadonlyMap<string, number[]>;

const drawnOf = ({ rows, away }: RunList): string[] =>
  away.includes('store')
    ? []
    : rows.flatMap(({ run, heldOut }) => (run === null || heldOut === null ? [] : [run])).slice(0, DRAWN);

const RunsTable: FC<{ runs: RunList; curves: Curves }> = ({ runs: { rows, total: all, away }, curves }) => {
  // Who does not answer may know some.
  if (rows.length === 0 && away.length > 0) return null;
  if (rows.length === 0) {
    return (
      <p>
        There is no run yet. In a terminal, <code>{commandLine('start SPEC.json')}</code> starts one.
      </p>
    );
  }
  const waiting = rows.filter(({ status }) => status === 'waiting').length;
  return (
    <>
      {waiting > 0 && (
        <p>
          <strong class="warn">
            {waiting === 1 ? 'One run waits' : `${waiting} runs wait`} for a person.
          </strong>
        </p>
      )}
      <Table
        caption={
          <>
            {rows.length} of {all}
          </>
        }
        columns={[
          'run',
          'status',
          'stage and step',
          'held-out success',
          'begun',
          numeric('has taken'),
          numeric('spent on verdicts'),
        ]}
      >
        {rows.map((row) => (
          <Row
            row={row}
            newest={isNewest(row, rows)}
            curve={(row.run === null ? null : curves.get(row.run)) ?? []}
          />
        ))}
      </Table>
    </>
  );
};

const Row: FC<{ row: RunRow; newest: boolean; curve: readonly number[] }> = ({ row, newest, curve }) => {
  const { run, workflowId, status, stage, step, stageStep, maxSteps, heldOut, question, concerns } = row;
  const name = run ?? workflowId ?? '–';
  return (
    <tr data-item>
      <th scope="row">
        {run === null ? (
          <Text value={name} max={120} />
        ) : (
          <a href={runAt(run)}>
            <Text value={name} max={120} />
          </a>
        )}
        {run !== null && workflowId !== null && workflowId !== run && (
          <small>
            {' '}
            of <Text value={workflowId} max={120} />
          </small>
        )}
      </th>
      <td>
        <Status status={status} concerns={concerns} />
        {status === 'refused' && (
          <div>
            before its first step
            {newest && workflowId !== null && (
              <>
                ; to see why:{' '}
                <code class="command">
                  <Text value={commandLine(`why ${inShell(workflowId)}`)} max={200} />
                </code>
              </>
            )}
          </div>
        )}
        {question && (
          <div>
            <Text value={question.reason} max={300} />
          </div>
        )}
      </td>
      <td>
        {stage === null ? '–' : <Text value={stage} max={80} />}
        {stageStep !== null && maxSteps !== null
          ? `, ${stageStep} of ${maxSteps}`
          : step !== null && `, after step ${step} of the run`}
      </td>
      <td>
        {heldOut === null ? (
          '–'
        ) : (
          <>
            {percent(heldOut.success)}{' '}
            <small title={`${heldOut.successes} of ${heldOut.trials}`}>
              [{(100 * heldOut.low).toFixed(1)}, {(100 * heldOut.high).toFixed(1)}]
            </small>
            {curve.length > 1 &&
              raw(
                sparkline(
                  `held-out success of ${curve.length} measurements, from ${percent(curve[0]!)} to ${percent(curve.at(-1)!)}`,
                  curve,
                ),
              )}
          </>
        )}
      </td>
      <td>{row.startedAt === null ? '–' : <Time at={row.startedAt} />}</td>
      <td class="number">{took(row)}</td>
      <td class="number">
        {row.spend === null ? '–' : `${duration(row.spend.seconds)}, US$ ${row.spend.usd.toFixed(2)}`}
        {(row.spend?.openSeconds ?? 0) > 0 && (
          <div>
            <small>reviews were open for {duration(row.spend!.openSeconds)}</small>
          </div>
        )}
      </td>
    </tr>
  );
};

/** Of those with its workflow's id, which commands take for the newest. */
const isNewest = (row: RunRow, rows: readonly RunRow[]): boolean =>
  !rows.some((one) => one.workflowId === row.workflowId && (one.startedAt ?? 0) > (row.startedAt ?? 0));

/** As one word of a command, whatever is in it. */
const inShell = (word: string): string =>
  /^[\w./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;

const took = ({ startedAt, endedAt }: RunRow): string =>
  startedAt === null ? '–' : duration(((endedAt ?? Date.now()) - startedAt) / 1000);
