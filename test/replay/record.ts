import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';
import { startInstallation } from '../../cli/stack-with-workers.ts';
import { decide, pause, resume } from '../../workflows/messages.ts';
import { RunClient } from '../support/run-client.ts';
import { tinySpec } from '../support/tiny-spec.ts';

// Records the histories that `replay.test.ts` replays, from a real run of seconds:
//
//   npx tsx test/replay/record.ts 0.2.0
//
// into `histories/0.2.0/`. A history is a promise: runs that were started with that version are continued by the
// workflow code of today. So record a folder for each version that is released, never over an earlier one; and when
// the replay of an old folder fails, the workflows need `patched()`, not a new recording. A folder may go when no
// run of its version can be alive any more.

const [version] = process.argv.slice(2);
if (version === undefined || !/^\d+\.\d+\.\d+$/.test(version)) {
  console.error('say which version is recorded: npx tsx test/replay/record.ts 0.2.0');
  process.exit(2);
}

const LONG = 'calculator-brief';
const folder = path.join(import.meta.dirname, 'histories', version);
const stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-record-'));
const installation = await startInstallation({
  stateDir,
  ui: false,
  env: { GRADUS_ENVIRONMENTS: path.join(import.meta.dirname, '..', 'support', 'brief-calculator.ts') },
});
const runs = await RunClient.connect(installation.settings);
try {
  const run = await runs.start('flaky-recorded', spec());
  await runs.progress(run, ({ status }) => status === 'waiting');
  await run.executeUpdate(decide, { args: ['continue'] });
  await runs.progress(run, ({ phase }) => phase === 'rl');
  await run.signal(pause);
  await runs.progress(run, ({ status }) => status === 'paused');
  await run.signal(resume);
  await run.result();

  const child = (id: string): WorkflowHandle => runs.client.workflow.getHandle(`flaky-recorded/${id}`);
  const groups = Array.from({ length: 4 }, (_, group) => child(`rl/1/${group}`));
  const long = await firstWhere(groups, async (group) => (await activities(group)).includes('callTool'));
  const inline = await firstWhere(groups, async (group) => !(await activities(group)).includes('callTool'));
  await mkdir(folder, { recursive: true });
  await record('curriculum', run);
  await record('warm-start', child('warm-start'));
  await record('stage', child('rl'));
  await record('evaluation', child('evaluation/before/0'));
  await record('rollout-group', inline);
  await record('rollout-group-with-long-calls', long);
} finally {
  await runs.close();
  await installation.stop();
  await rm(stateDir, { recursive: true, force: true });
}

/** Groups of both calculators, a warm start that asks, two steps with a measurement. */
function spec(): unknown {
  const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4 });
  const [stage] = tiny.stages;
  const graduation = { successAtLeast: 0.8, tasks: 8, everySteps: 1 };
  return {
    ...tiny,
    warmStart: { ...tiny.warmStart, graduation: { successAtLeast: 1, tasksPerLevel: 8 } },
    stages: [
      {
        ...stage,
        tasks: [
          { environment: 'calculator', levels: [1] },
          { environment: LONG, levels: [1] },
        ],
        numGenerations: 4,
        groupsPerWorkflow: 1,
        graduation,
      },
    ],
    evaluation: { ...tiny.evaluation, count: 8 },
  };
}

async function activities(handle: WorkflowHandle): Promise<string[]> {
  const { events } = await handle.fetchHistory();
  return (events ?? []).flatMap(
    (event) => event.activityTaskScheduledEventAttributes?.activityType?.name ?? [],
  );
}

async function firstWhere<T>(all: readonly T[], wanted: (one: T) => Promise<boolean>): Promise<T> {
  for (const one of all) if (await wanted(one)) return one;
  throw new Error('the run has no group of this kind: choose another seed');
}

async function record(name: string, handle: WorkflowHandle): Promise<void> {
  const history = JSON.parse(historyToJSON(await handle.fetchHistory()), withoutMachine) as unknown;
  const file = path.join(folder, `${name}.json`);
  await writeFile(file, `${JSON.stringify(history)}\n`);
  console.log(file);
}

/** Replay needs neither who recorded a history nor where its code lay. */
function withoutMachine(key: string, value: unknown): unknown {
  if (key === 'identity') return 'recorder';
  return key === 'stackTrace' ? undefined : value;
}
