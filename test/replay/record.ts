import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { historyToJSON } from '@temporalio/common/lib/proto-utils.js';
import type { WorkflowHandle } from '@temporalio/client';
import { ObjectStore } from '../../store/objects/object-store.ts';
import { readLedger } from '../../store/ladder/ledger.ts';
import { startInstallation } from '../../cli/stack-with-workers.ts';
import { EVALUATE, ids, QUEUES } from '../../core/names.ts';
import { change, decide, pause, resume } from '../../workflows/control/messages.ts';
import { ladderSpec } from '../support/ladder-installation.ts';
import { RunClient } from '../support/run-client.ts';
import { tinySpec } from '../support/tiny-spec.ts';

// Records the histories that `replay.test.ts` replays, from a real run of seconds:
//
//   npx tsx test/replay/record.ts 0.2.0
//
// into `histories/0.2.0/`; what is there already is left as it is. A history is a promise: runs that were started with
// that version are continued by the workflow code of today. So record a folder for each version that is released, never over an earlier one; and when
// the replay of an old folder fails, the workflows need `patched()`, not a new recording. A folder may go when no
// run of its version can be alive any more.

const [version] = process.argv.slice(2);
if (version === undefined || !/^\d+\.\d+\.\d+$/.test(version)) {
  console.error('say which version is recorded: npx tsx test/replay/record.ts 0.2.0');
  process.exit(2);
}

const LONG = 'calculator-brief';
const SUPPORT = path.join(import.meta.dirname, '..', 'support');
const folder = path.join(import.meta.dirname, 'histories', version);
const stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-record-'));
const installation = await startInstallation({
  stateDir,
  ui: false,
  env: {
    GRADUS_ENVIRONMENTS: ['brief-calculator.ts', 'ladder-calculator.ts']
      // From here, so that no history tells where it was recorded.
      .map((name) => path.relative('.', path.join(SUPPORT, name)))
      .join(','),
  },
});
const runs = await RunClient.connect(installation.settings);
try {
  const run = await runs.start('flaky-recorded', spec());
  await runs.progress(run, ({ status }) => status === 'waiting');
  await run.executeUpdate(decide, { args: ['advance'] });
  await runs.progress(run, ({ phase }) => phase === 'rl');
  await run.signal(pause);
  await runs.progress(run, ({ status }) => status === 'paused');
  // As many as it has: histories are small.
  await run.executeUpdate(change, { args: [{ maxSteps: { rl: 3 } }] });
  await run.signal(resume);
  await run.result();

  const child = (id: string): WorkflowHandle => runs.client.workflow.getHandle(`flaky-recorded/${id}`);
  const groups = Array.from({ length: 4 }, (_, group) => child(`rl/1/${group}`));
  const long = await firstWhere(groups, async (group) => !(await isInline(group)));
  const inline = await firstWhere(groups, isInline);
  await mkdir(folder, { recursive: true });
  await record('curriculum', run);
  await record('supervised', child('warm-start'));
  await record('stage', child('rl'));
  await record('evaluation', child('evaluation/before/0'));
  await record('rollout-group', inline);
  await record('rollout-group-with-long-calls', long);
  await record('follow-episodes', runs.client.workflow.getHandle(`${long.workflowId}/0`));
  await recordEvaluate(run.workflowId);
  await recordLadder();
} finally {
  await runs.close();
  await installation.stop();
  await rm(stateDir, { recursive: true, force: true });
}

/** A checkpoint that is measured without a run: its workflow, and the evaluation that takes what is stored as it is. */
async function recordEvaluate(checkpoint: string): Promise<void> {
  const tasks = [{ environment: 'calculator', levels: [1] }];
  const measured = await runs.client.workflow.start('evaluate', {
    workflowId: 'evaluate-recorded',
    taskQueue: QUEUES.orchestrator,
    args: [{ checkpoint, tasks, count: 4, samples: 2 }],
  });
  await measured.result();
  await record('evaluate', measured);
  const child = ids.evaluation('evaluate-recorded', `${EVALUATE}/0`);
  await record('evaluation-that-adopts', runs.client.workflow.getHandle(child));
}

/** A step that climbs, a verdict of people and a sweep while the run is paused, and a step that learns from them. */
async function recordLadder(): Promise<void> {
  const handle = (id: string): WorkflowHandle => runs.client.workflow.getHandle(id);
  const near = { verifier: 'near', passAtLeast: 0, budget: { count: 1 } };
  const expert = { verifier: 'expert', passAtLeast: 0.5, wait: false, budget: { count: 1 } };
  const whole = ladderSpec([near, expert], { offer: 4 });
  const [warmStart, stage] = whole.stages;
  const stages = [warmStart, { ...stage, groupsPerStep: 2, numGenerations: 2 }];
  const run = await runs.start('ladder-recorded', { ...whole, stages });
  await runs.progress(run, ({ phase }) => phase === 'rl');
  await run.signal(pause);
  await runs.progress(run, ({ status, step }) => status === 'paused' && step?.stage === 'rl');
  const store = await ObjectStore.connect(installation.settings.store);
  const entries = await readLedger(store, 'ladder-recorded');
  store.close();
  const asked = (verifier: string): WorkflowHandle => {
    const entry = entries.find(
      (one) => one.kind === 'decision' && one.decision === 'escalate' && one.verifier === verifier,
    );
    if (entry?.kind !== 'decision') throw new Error(`${verifier} was not asked: choose another seed`);
    return handle(ids.verdict({ verifier, version: '1', digest: entry.digest }));
  };
  const review = asked('expert');
  await review.executeUpdate('submitVerdict', { args: [{ reviewer: 'ann', score: 0.75 }] });
  await review.result();
  const sweepInput = { run: 'ladder-recorded', verifier: 'near', budget: { count: 2 }, concurrency: 1 };
  const sweep = await runs.client.workflow.start('verificationSweep', {
    workflowId: 'sweep-recorded',
    taskQueue: QUEUES.orchestrator,
    args: [sweepInput],
  });
  await sweep.result();
  await run.signal(resume);
  await run.result();
  await handle(ids.ladder('ladder-recorded')).result();
  await record('ladder', handle(ids.ladder('ladder-recorded')));
  await record('stage-that-climbs', handle(ids.stage('ladder-recorded', 'rl')));
  await record('verdict', asked('near'));
  await record('review', review);
  await record('verification-sweep', sweep);
}

/** Groups of both calculators, a warm start that asks, two steps with a measurement. */
function spec(): unknown {
  const tiny = tinySpec({ maxSteps: 2, groupsPerStep: 4 });
  const [warmStart, stage] = tiny.stages;
  const graduation = { successAtLeast: 0.65, tasks: 8, everySteps: 1 };
  return {
    ...tiny,
    stages: [
      { ...warmStart, graduation: { successAtLeast: 1, tasksPerLevel: 8 } },
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

/** Whether no episode of a group waited for a long call. */
async function isInline(group: WorkflowHandle): Promise<boolean> {
  const { events } = await group.fetchHistory();
  return !(events ?? []).some((event) => event.startChildWorkflowExecutionInitiatedEventAttributes);
}

async function firstWhere<T>(all: readonly T[], wanted: (one: T) => Promise<boolean>): Promise<T> {
  for (const one of all) if (await wanted(one)) return one;
  throw new Error('the run has no group of this kind: choose another seed');
}

async function record(name: string, handle: WorkflowHandle): Promise<void> {
  const history = JSON.parse(historyToJSON(await handle.fetchHistory()), withoutMachine) as unknown;
  const file = path.join(folder, `${name}.json`);
  await writeFile(file, `${JSON.stringify(history)}\n`, { flag: 'wx' }).then(
    () => console.log(file),
    (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EEXIST') throw error;
      console.log(`${file} is there already`);
    },
  );
}

/** Replay needs neither who recorded a history nor where its code lay. */
function withoutMachine(key: string, value: unknown): unknown {
  if (key === 'identity') return 'recorder';
  return key === 'stackTrace' ? undefined : value;
}
