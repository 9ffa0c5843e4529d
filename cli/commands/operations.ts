import Table from 'cli-table3';
import { Command } from 'commander';
import { saidInWords } from '../../observe/temporal/heartbeats.ts';
import { readOperations } from '../../observe/operations/operations.ts';
import type { ActivityInFlight, Operations } from '../../observe/operations/operations.ts';
import { usageBelow } from '../../observe/operations/usage.ts';
import type { UsageReport } from '../../observe/operations/usage.ts';
import { assertRun } from '../../store/find-run.ts';
import { runPrefix } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/object-store.ts';
import { withConnectionFlags, withSources, withStore } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';

interface Flags extends ConnectionOptions {
  json?: boolean;
  bytes?: string | true;
}

/** `gradus operations`: what is under way in all runs, and who serves the queues. */
export function operations(): Command {
  return withConnectionFlags(new Command('operations'))
    .option('--json', 'all that is known, as one JSON object')
    .option(
      '--bytes [run]',
      'what the bucket holds, or a run of it, by prefix: one request for every thousand objects',
    )
    .action(async ({ json = false, bytes, ...options }: Flags) => {
      if (bytes !== undefined) {
        const report = await withStore(options, (store) => countBytes(store, bytes === true ? null : bytes));
        print(json ? JSON.stringify(report) : usageInWords(report));
        return;
      }
      const read = await withSources(options, ({ temporal }) => readOperations(temporal));
      print(json ? JSON.stringify(read) : inWords(read));
    });
}

/** Of a run, or with null of the bucket. Throws as `assertRun` does. */
async function countBytes(store: ObjectStore, run: string | null): Promise<UsageReport> {
  if (run !== null) await assertRun(store, run);
  return usageBelow(store, run === null ? '' : runPrefix(run));
}

function inWords({ activities, workflows, queues, asOf }: Operations): string {
  const table = new Table({
    head: ['activity', 'attempt', 'state', 'for', 'workflow', 'worker', 'says', 'last failure'],
    style: { head: [], border: [] },
  });
  for (const activity of activities) {
    const { name, attempt, state, workflowId, worker, said, lastFailure } = activity;
    table.push([
      name,
      attempt,
      state,
      age(activity, asOf),
      workflowId,
      worker ?? '–',
      said === null ? '–' : saidInWords(said),
      lastFailure?.message ?? '–',
    ]);
  }
  const served = new Table({ head: ['queue', 'workers', 'waiting tasks'], style: { head: [], border: [] } });
  for (const { name, kind, pollers, backlog } of queues) {
    served.push([
      kind === 'workflows' ? `${name} (workflows)` : name,
      pollers.map(({ identity }) => identity).join(', ') || 'none',
      backlog?.tasks ?? '–',
    ]);
  }
  const left = workflows.open - workflows.asked;
  return [
    activities.length === 0 ? 'no activity is under way' : table.toString(),
    `${workflows.asked} workflows that go on were asked${left > 0 ? `, the oldest and the newest; ${left} more were not` : ''}.`,
    served.toString(),
  ].join('\n');
}

function age({ since }: ActivityInFlight, asOf: number): string {
  if (since === null) return '–';
  const seconds = (asOf - since) / 1000;
  return seconds < 0 ? `in ${(-seconds).toFixed(1)} s` : `${seconds.toFixed(1)} s`;
}

function usageInWords({ all, parts, left }: UsageReport): string {
  const table = new Table({ head: ['prefix', 'objects', 'MB'], style: { head: [], border: [] } });
  for (const { prefix, objects, bytes } of parts) table.push([prefix, objects, (bytes / 1e6).toFixed(3)]);
  const total = `${all.objects} objects, ${(all.bytes / 1e6).toFixed(3)} MB below "${all.prefix}"`;
  return [table.toString(), `${total}${left > 0 ? `; ${left} smaller prefixes are not listed` : ''}`].join(
    '\n',
  );
}
