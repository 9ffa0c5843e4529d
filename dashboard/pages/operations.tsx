import type { FC } from 'hono/jsx';
import { messageOf } from '../../core/errors.ts';
import { heartbeatInWords } from '../../runs/temporal/heartbeats.ts';
import { readOperations } from '../../runs/operations/operations.ts';
import type { ActivityInFlight, Operations } from '../../runs/operations/operations.ts';
import { Remembered } from '../../runs/remembered.ts';
import { UsageCache } from '../../runs/operations/usage.ts';
import type { UsageReport } from '../../runs/operations/usage.ts';
import { runAt } from '../address.ts';
import type { App, Context } from '../context.ts';
import { Layout, Live } from '../layout.tsx';
import { bytes, duration, Time } from '../parts/numbers.tsx';
import { Table, numeric } from '../parts/table.tsx';
import { Text } from '../parts/text.tsx';
import { WorkflowLink } from '../parts/workflow-link.tsx';

/** Looking costs a request a workflow: who looks again within this time sees the same. */
const FRESH_MS = 3000;
/** A page does not wait longer for a count that goes on. */
const COUNT_MS = 1500;
/** Rows of the table. */
const MOST_ROWS = 200;

interface Filter {
  run: string;
  activity: string;
  /** Only what has been tried before. */
  again: boolean;
}

/** `/operations`: what is under way in all runs, who serves the queues, and with `?bytes=1` what the store holds. */
export function operationsPage(app: App, context: Context): void {
  const { store, temporal } = context.sources;
  const operations = new Remembered(() => readOperations(temporal), FRESH_MS);
  const usage = new UsageCache(store);
  app.get('/operations', async (c) => {
    const { run = '', activity = '', again, bytes: asked } = c.req.query();
    const seen = await operations.look();
    const counted = asked === '1' ? await soon(usage.of(run === '' ? null : run)) : null;
    return c.html(
      <Layout
        title="Operations"
        live
        stale={seen.problem === null ? [] : [{ source: 'Temporal', problem: seen.problem, asOf: seen.asOf }]}
      >
        <Page
          operations={seen.value}
          counted={counted}
          filter={{ run, activity, again: again === '1' }}
          context={context}
        />
      </Layout>,
    );
  });
}

/** What is counted by now, in words why it is not. */
async function soon(report: Promise<UsageReport>): Promise<UsageReport | string> {
  const later = new Promise<string>((resolve) =>
    setTimeout(() => resolve('It is being counted. Load the page again in a while.'), COUNT_MS).unref(),
  );
  return Promise.race([report, later]).catch((error: unknown) => `It cannot be counted: ${messageOf(error)}`);
}

const Page: FC<{
  operations: Operations | null;
  counted: UsageReport | string | null;
  filter: Filter;
  context: Context;
}> = ({ operations, counted, filter, context }) => (
  <>
    <h2>Activities</h2>
    <form method="get" action="/operations" class="filters">
      <label>
        run
        <input name="run" value={filter.run} />
      </label>
      <label>
        activity
        <input name="activity" value={filter.activity} />
      </label>
      <label>
        attempts
        <select name="again">
          <option value="">all</option>
          <option value="1" selected={filter.again}>
            second and later
          </option>
        </select>
      </label>
      {counted !== null && <input type="hidden" name="bytes" value="1" />}
      <button type="submit">Show</button>
    </form>
    <Live id="activities">
      {operations !== null && <Activities operations={operations} filter={filter} context={context} />}
    </Live>
    <h2>Workers by queue</h2>
    <Live id="queues">{operations !== null && <Queues operations={operations} />}</Live>
    <h2>The store</h2>
    <Live id="bytes">
      <Bytes counted={counted} filter={filter} />
    </Live>
    {context.temporalUi !== null && (
      <p>
        <a href={context.temporalUi}>Temporal’s own pages</a>
      </p>
    )}
  </>
);

const Activities: FC<{ operations: Operations; filter: Filter; context: Context }> = ({
  operations: { activities, workflows, asOf },
  filter,
  context,
}) => {
  const shown = activities.filter(
    ({ run, name, attempt }) =>
      (filter.run === '' || run === filter.run) &&
      (filter.activity === '' || name === filter.activity) &&
      (!filter.again || attempt > 1),
  );
  const left = workflows.open - workflows.asked;
  return (
    <>
      <p class="note">
        {shown.length} of {activities.length} activities, of {workflows.asked} workflows that go on
        {left > 0 && `; ${left} more were not asked (the oldest and the newest were)`}. As of{' '}
        <Time at={asOf} /> UTC.
      </p>
      {shown.length > 0 && (
        <Table
          label="activities"
          columns={[
            'activity',
            numeric('attempt'),
            'for',
            'last sign of life',
            'its heartbeat',
            'worker',
            'run',
            'workflow',
            'the last attempt failed',
          ]}
        >
          {shown.slice(0, MOST_ROWS).map((activity) => (
            <Row activity={activity} asOf={asOf} context={context} />
          ))}
        </Table>
      )}
      {shown.length > MOST_ROWS && <p class="note">{shown.length - MOST_ROWS} more are not shown.</p>}
    </>
  );
};

const Row: FC<{ activity: ActivityInFlight; asOf: number; context: Context }> = ({
  activity,
  asOf,
  context,
}) => {
  const { name, state, attempt, beat, said, worker, run, workflowId, runId, lastFailure } = activity;
  return (
    <tr data-item>
      <td>
        <Text value={name} max={80} />
      </td>
      <td class="number">{attempt > 1 ? <strong class="warn">{attempt}</strong> : attempt}</td>
      <td>{ageInWords(activity, asOf)}</td>
      <td>
        {beat === null || state !== 'running' ? '–' : `${duration(Math.max(0, asOf - beat) / 1000)} ago`}
      </td>
      <td>{said === null ? '–' : <Text value={heartbeatInWords(said)} max={300} />}</td>
      <td>{worker === null ? '–' : <Text value={worker} max={80} />}</td>
      <td>
        <a href={runAt(run)}>
          <Text value={run} max={80} />
        </a>
      </td>
      <td>
        <WorkflowLink context={context} workflowId={workflowId} runId={runId} />
      </td>
      <td>{lastFailure === null ? '–' : <Text value={lastFailure.message} max={300} />}</td>
    </tr>
  );
};

/** How long it has run, or has waited; of one whose next attempt is not due yet, when it is. */
function ageInWords({ state, since }: ActivityInFlight, asOf: number): string {
  if (since === null) return state;
  const seconds = (asOf - since) / 1000;
  if (seconds < 0) return `tried again in ${duration(-seconds)}`;
  const age = duration(seconds);
  return state === 'running' ? age : state === 'paused' ? `paused, ${age}` : `waits for a worker, ${age}`;
}

const Queues: FC<{ operations: Operations }> = ({ operations: { queues, asOf } }) => (
  <Table
    label="workers by queue"
    caption="Workers that polled within the last five minutes. A killed worker stays listed for that long; one whose slots are all busy is missing"
    columns={['queue', 'workers', numeric('waiting tasks'), 'the oldest']}
  >
    {queues.map(({ name, kind, pollers, backlog }) => (
      <tr>
        <td>
          <Text value={name} max={120} />
          {kind === 'workflows' && ' (workflows)'}
        </td>
        <td>
          {pollers.length === 0 && <span class={backlog?.tasks ? 'bad' : 'muted'}>none</span>}
          {pollers.slice(0, 20).map(({ identity, lastSeen }, i) => (
            <>
              {i > 0 && ', '}
              <Text value={identity} max={80} />
              {lastSeen !== null && <small> {duration(Math.max(0, asOf - lastSeen) / 1000)} ago</small>}
            </>
          ))}
          {pollers.length > 20 && `, and ${pollers.length - 20} more`}
        </td>
        <td class="number">{backlog === null ? '–' : backlog.tasks}</td>
        <td>{backlog === null || backlog.tasks === 0 ? '–' : duration(backlog.seconds)}</td>
      </tr>
    ))}
  </Table>
);

const Bytes: FC<{ counted: UsageReport | string | null; filter: Filter }> = ({ counted, filter }) => {
  const of = filter.run === '' ? 'the bucket' : `the run ${filter.run}`;
  if (counted === null) {
    const query = new URLSearchParams({ ...(filter.run !== '' && { run: filter.run }), bytes: '1' });
    return (
      <p>
        <a href={`/operations?${query.toString()}`}>
          Count what is in <Text value={of} max={100} />
        </a>
        : one request for every thousand objects.
      </p>
    );
  }
  if (typeof counted === 'string') {
    return (
      <p class="note">
        <Text value={counted} max={500} />
      </p>
    );
  }
  const { all, parts, left, asOf } = counted;
  return (
    <>
      <Table
        label="bytes by prefix"
        caption={
          <>
            <Text value={of} max={100} />: {all.objects} objects, {bytes(all.bytes)}, as of <Time at={asOf} />{' '}
            UTC
          </>
        }
        columns={['prefix', numeric('objects'), numeric('size')]}
      >
        {parts.map(({ prefix, objects, bytes: size }) => (
          <tr>
            <td>
              <Text value={prefix} max={200} />
            </td>
            <td class="number">{objects}</td>
            <td class="number">{bytes(size)}</td>
          </tr>
        ))}
      </Table>
      {left > 0 && <p class="note">{left} smaller ones are not listed.</p>}
    </>
  );
};
