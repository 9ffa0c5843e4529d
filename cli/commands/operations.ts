import { Command } from 'commander';
import { counted } from '../../core/counted.ts';
import { heartbeatInWords } from '../../runs/temporal/heartbeats.ts';
import { readOperations } from '../../runs/operations/operations.ts';
import type { ActivityInFlight, Operations } from '../../runs/operations/operations.ts';
import { usageBelow } from '../../runs/operations/usage.ts';
import type { UsageReport } from '../../runs/operations/usage.ts';
import { assertRun } from '../../store/run/find-run.ts';
import { runPrefix } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { withConnectionFlags, withSources, withStoreOf } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { print } from '../printable.ts';
import { printJson } from '../json/print-json.ts';
import { textTable } from '../../runs/text-table.ts';

interface Flags extends ConnectionOptions {
  json?: boolean;
  bytes?: string | true;
}

/** `gradus operations`: what is under way in all runs, and who serves the queues. */
export function operationsCommand(): Command {
  return withConnectionFlags(new Command('operations'))
    .option('--json', 'everything, as one JSON object')
    .option(
      '--bytes [run]',
      'what the bucket holds, or one run in it, by prefix; takes a request for every thousand objects',
    )
    .action(async ({ json = false, bytes, ...options }: Flags) => {
      if (bytes !== undefined) {
        const report = await withStoreOf(options, (store) =>
          countBytes(store, bytes === true ? null : bytes),
        );
        if (json) printJson('operations-bytes', report);
        else print(usageInWords(report));
        return;
      }
      const read = await withSources(options, ({ temporal }) => readOperations(temporal));
      if (json) printJson('operations', read);
      else print(inWords(read));
    });
}

/** Of a run, or with null of the bucket. Throws as `assertRun` does. */
async function countBytes(store: ObjectStore, run: string | null): Promise<UsageReport> {
  if (run !== null) await assertRun(store, run);
  return usageBelow(store, run === null ? '' : runPrefix(run));
}

function inWords({ activities, workflows, queues, asOf }: Operations): string {
  const rows: (string | number)[][] = [];
  for (const activity of activities) {
    const { name, attempt, state, workflowId, worker, said, lastFailure } = activity;
    rows.push([
      name,
      attempt,
      state,
      age(activity, asOf),
      workflowId,
      worker ?? '–',
      said === null ? '–' : heartbeatInWords(said),
      lastFailure?.message ?? '–',
    ]);
  }
  const servedRows: (string | number)[][] = [];
  for (const { name, kind, pollers, backlog } of queues) {
    servedRows.push([
      kind === 'workflows' ? `${name} (workflows)` : name,
      pollers.map(({ identity }) => identity).join(', ') || 'none',
      backlog?.tasks ?? '–',
    ]);
  }
  const left = workflows.open - workflows.asked;
  return [
    activities.length === 0
      ? 'no activity is under way'
      : textTable(
          ['activity', 'attempt', 'state', 'for', 'workflow', 'worker', 'says', 'last failure'],
          rows,
        ),
    `${counted(workflows.asked, 'open workflow')} ${workflows.asked === 1 ? 'was' : 'were'} asked${left > 0 ? `, the oldest and the newest; ${left} more were not` : ''}.`,
    textTable(['queue', 'workers', 'waiting tasks'], servedRows),
  ].join('\n');
}

function age({ since }: ActivityInFlight, asOf: number): string {
  if (since === null) return '–';
  const seconds = (asOf - since) / 1000;
  return seconds < 0 ? `in ${(-seconds).toFixed(1)} s` : `${seconds.toFixed(1)} s`;
}

function usageInWords({ all, parts, left }: UsageReport): string {
  const rows: (string | number)[][] = [];
  for (const { prefix, objects, bytes } of parts) rows.push([prefix, objects, (bytes / 1e6).toFixed(3)]);
  const total = `${counted(all.objects, 'object')}, ${(all.bytes / 1e6).toFixed(3)} MB below "${all.prefix}"`;
  return [
    textTable(['prefix', 'objects', 'MB'], rows),
    `${total}${left > 0 ? `; ${left} smaller prefixes are not listed` : ''}`,
  ].join('\n');
}
