import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { defineSearchAttributeKey } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { QUEUES } from '../../../core/names.ts';
import { stackEnvironment } from '../../../infra/dev/stack-addresses.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { deleteRun, planDeletion } from '../../../runs/control/delete-run.ts';
import { startRun } from '../../../runs/control/start.ts';
import { pinCheckpoints } from '../../../store/training/retention.ts';
import { readRuns } from '../../../runs/overview/runs.ts';
import { whyOf } from '../../../runs/overview/why.ts';
import type { Sources } from '../../../runs/sources.ts';
import { jsonCodec } from '../../../store/codec.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { keepForgottenRun } from '../../support/forgotten-run.ts';
import type { Forgotten } from '../../support/forgotten-run.ts';
import { COMMAND, gradusCommand } from '../../support/gradus-command.ts';
import { ROOT } from '../../support/markdown.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Nobody works here: what a person sees is what Temporal and the store know by themselves.

const MANY = 300;
const STRANGE = `it's "odd"\\; \u001b[31m\u202Ered/%20'--`;
const RUN = defineSearchAttributeKey('GradusRun', 'KEYWORD');
const STEP = defineSearchAttributeKey('GradusStep', 'INT');

const installation = await startTestInstallation({ processes: [] });
afterAll(() => installation.remove());
const { client } = installation.runs;
const store = await ObjectStore.connect(installation.settings.store);
afterAll(() => store.close());
const sources: Sources = { store, temporal: client };

const start = (workflowId: string, run?: string, input: unknown = tinySpec()) =>
  client.workflow.start('curriculum', {
    args: [input],
    workflowId,
    taskQueue: QUEUES.orchestrator,
    ...(run !== undefined && {
      typedSearchAttributes: [
        { key: RUN, value: run },
        { key: STEP, value: 7 },
      ],
    }),
  });

const forgottenRun = (...args: Forgotten): Promise<void> => keepForgottenRun(store, ...args);

const gradus = gradusCommand(installation.stack);
const env = { ...process.env, ...stackEnvironment(installation.stack) };

beforeAll(async () => {
  const names = Array.from({ length: MANY }, (_, i) => `many-${i}`);
  for (let i = 0; i < MANY; i += 25) {
    await Promise.all(names.slice(i, i + 25).map((name) => start(name, name)));
  }
  await forgottenRun('forgotten', 3);
  await store.putIfAbsent(runKey('brought'), runClaims, { import: 'x'.repeat(64), spec: null });
  const text = jsonCodec<{ nothing: string }>('nothing', undefined as never);
  await store.putIfAbsent(
    runKey('damaged'),
    { ...text, encode: () => new TextEncoder().encode('{') },
    {
      nothing: '',
    },
  );
  await start(STRANGE);
  await start('wrong', undefined, { model: 1 });
  const terminated = await start('terminated', 'terminated');
  await terminated.terminate();
  await until(
    async () => {
      const { count } = await client.workflow.count('WorkflowType = "curriculum"');
      const over = await client.workflow.count('ExecutionStatus = "Terminated"');
      return count >= MANY + 3 && over.count === 1 ? true : undefined;
    },
    300_000,
    () => 'visibility does not list what was started',
  );
}, 600_000);

test('hundreds of runs are listed as far as they are known, without waiting for workers', async () => {
  const begun = performance.now();
  const { rows, total, problems, away } = await readRuns(sources, { limit: 1000, patienceMs: 60_000 });
  const took = performance.now() - begun;
  expect(away).toEqual([]);
  expect(total).toBe(MANY + 3 + 3);
  expect(problems).toEqual([expect.stringContaining('runs/damaged/run.json is not JSON')]);
  const of = (name: string) => rows.find(({ run, workflowId }) => run === name || workflowId === name);
  expect(of('many-17')).toMatchObject({ status: 'running', from: 'visibility', step: 7, endedAt: null });
  expect(of('terminated')).toMatchObject({ status: 'terminated', endedAt: expect.any(Number) as number });
  expect(of(STRANGE)).toMatchObject({ run: null, status: 'running' });
  expect(of('forgotten')).toMatchObject({
    workflowId: null,
    status: 'forgotten',
    stage: 'rl',
    step: 5,
    stageStep: 3,
    maxSteps: 4,
    heldOut: { successes: 2, trials: 32, success: 2 / 32, confidence: 0.95 },
    endedAt: 1000,
  });
  expect(of('brought')).toMatchObject({ status: 'imported' });
  // What goes on comes before what is over.
  expect(rows.findIndex(({ run }) => run === 'terminated')).toBe(MANY + 2);
  // All are asked at once, for 0.4 s.
  console.info(`${MANY} runs were read in ${took.toFixed(0)} ms`);
});

test('a look has its time: what is not known by then is left out, and said', async () => {
  const { pid } = installation.stack.objectStore;
  process.kill(pid, 'SIGSTOP');
  try {
    const looked = (patienceMs: number) => readRuns(sources, { limit: 1000, patienceMs });
    let look = await looked(3000);
    // On a busy machine Temporal has not answered by then either.
    if (look.away.length > 1) look = await looked(60_000);
    const { rows, problems, away } = look;
    // What Temporal knows, and nothing of what only the store does.
    expect(rows).toHaveLength(MANY + 3);
    expect(away).toEqual(['store']);
    expect(problems.join()).toMatch(/in time/);
  } finally {
    process.kill(pid, 'SIGCONT');
  }
});

test('the command lists them with what is strange made visible, and says how many there are', async () => {
  await gradus('runs', '--help');
  const { code, stdout, stderr, seconds } = await gradus('runs');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  console.info(`gradus runs with ${MANY} runs: ${seconds.toFixed(2)} s`);
  expect(stderr).toContain(`50 of ${MANY + 6}; --limit ${MANY + 6} shows all`);
  expect(stdout).not.toContain('\u001b');
  const lines = stdout.trim().split('\n');
  expect(lines).toHaveLength(50 + 1);
  const json = await gradus('runs', '--json', '--limit', String(MANY + 6));
  const rows = json.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { workflowId: string });
  expect(rows.map(({ workflowId }) => workflowId)).toContain(STRANGE);
});

test('why a run stands still is said without any worker', async () => {
  const begun = performance.now();
  const why = await whyOf(sources, STRANGE);
  console.info(`why took ${(performance.now() - begun).toFixed(0)} ms`);
  expect(why).toMatchObject({
    workflowId: STRANGE,
    run: null,
    status: 'running',
    reasons: [
      {
        kind: 'no-worker',
        queue: 'gradus',
        serves: 'workflows',
        what: [STRANGE],
        lastAsked: null,
        sure: true,
      },
    ],
    problems: ['the run itself did not answer in 1.5 s'],
  });
  // By the name in the store, too.
  await expect(whyOf(sources, 'terminated')).resolves.toMatchObject({
    reasons: [{ kind: 'over', status: 'terminated' }],
  });
  await expect(whyOf(sources, 'forgotten')).resolves.toMatchObject({
    workflowId: null,
    reasons: [{ kind: 'over', status: 'forgotten' }],
  });
  await expect(whyOf(sources, 'forgoten')).rejects.toThrow('did you mean "forgotten"?');
  await expect(whyOf(sources, '../../etc')).rejects.toThrow('there is no run "../../etc"');

  const { code, stdout, stderr, seconds } = await gradus('why', STRANGE);
  console.info(`gradus why: ${seconds.toFixed(2)} s`);
  expect({ code, stderr }).toMatchObject({ code: 0 });
  expect(stdout).toContain('no worker serves the queue gradus (workflows)');
  expect(stdout).not.toContain('\u001b');
});

test('a run is not started where nobody would execute it, nor with a spec that is wrong', async () => {
  await expect(startRun(client, 'nobody', tinySpec())).rejects.toThrow('no worker serves the queue gradus');
  await expect(client.workflow.getHandle('nobody').describe()).rejects.toThrow(/not found/);
  const file = path.join(installation.stateDir, 'wrong.json');
  await writeFile(file, JSON.stringify({ ...tinySpec(), sed: 3 }));
  const { code, stderr } = await gradus('start', file, '--id', 'nobody');
  expect(code).toBe(1);
  expect(stderr).toContain('did you mean "seed"');
  expect(stderr).toContain('Nothing was started.');
});

test('a run is deleted with all that Temporal and the store have of it, and nothing else', async () => {
  const other = 'verdicts/near/1/00.json';
  const bytes = new TextEncoder().encode('{}');
  const conflict = () => new Error('conflict') as never;
  await store.putSame(other, bytes, { conflict });
  await forgottenRun('for', 1);
  const keysOf = async (run: string) => (await store.list(`runs/${run}/`)).map(({ key }) => key);

  // Not one that goes on, nor one that another run learns from.
  await expect(planDeletion(sources, 'many-3')).resolves.toMatchObject({
    refusals: [expect.stringContaining('it goes on: stop it first')],
  });
  const key = `runs/forgotten/checkpoints/000003-${'0'.repeat(12)}/manifest.json`;
  const checkpoint = {
    manifest: { key, sha256: '0'.repeat(64), bytes: 1 },
    weights: '0'.repeat(64),
    step: 3,
  };
  await forgottenRun('student', 1, { checkpoints: { forgotten: checkpoint } });
  await pinCheckpoints(store, 'forgotten', 'student', [checkpoint]);
  const refused = await planDeletion(sources, 'forgotten');
  expect(refused.refusals).toEqual([expect.stringContaining('student needs its checkpoints')]);
  await expect(deleteRun(sources, refused)).rejects.toThrow('student needs its checkpoints');
  expect(await keysOf('forgotten')).toContain('runs/forgotten/pins/student.json');

  // With the one that learns from it goes what that one needed.
  await deleteRun(sources, await planDeletion(sources, 'student'));
  expect(await keysOf('student')).toEqual([]);
  expect(await keysOf('forgotten')).not.toContain('runs/forgotten/pins/student.json');

  // Interrupted in the middle, and begun anew: the claim to the name goes last.
  const plan = await planDeletion(sources, 'forgotten');
  expect(plan).toMatchObject({ executions: [], refusals: [] });
  await store.remove(plan.objects.filter((one) => !one.endsWith('run.json')).slice(0, 2));
  const asked = await runCommand('bash', ['-c', `echo forgoten | node ${COMMAND} delete forgotten`], {
    env,
    cwd: ROOT,
  });
  expect(asked).toMatchObject({ code: 1, stderr: expect.stringContaining('nothing was done') as string });
  expect(asked.stdout).toContain(`${plan.objects.length - 2} objects`);
  const typed = await runCommand('bash', ['-c', `echo forgotten | node ${COMMAND} delete forgotten`], {
    env,
    cwd: ROOT,
  });
  expect(typed).toMatchObject({ code: 0, stdout: expect.stringContaining('forgotten is deleted') as string });
  expect(await keysOf('forgotten')).toEqual([]);
  // A name that begins alike, and what is for all.
  expect(await keysOf('for')).toHaveLength(2);
  expect(await store.head(other)).toBeDefined();

  // What Temporal alone knows, by the id of a workflow that was refused a name.
  const wrong = client.workflow.getHandle('wrong');
  await wrong.terminate();
  const below = await client.workflow.start('rolloutGroup', {
    workflowId: 'wrong/rl/1/0',
    taskQueue: 'x',
    args: [],
  });
  await below.terminate();
  const notOfIt = await client.workflow.start('curriculum', {
    workflowId: 'wrong/run',
    taskQueue: 'x',
    args: [],
  });
  const found = await until(
    async () => {
      const all = await planDeletion(sources, 'wrong');
      return all.executions.length === 2 && all.refusals.length === 0 ? all : undefined;
    },
    300_000,
    () => 'what was terminated is not listed',
  );
  await deleteRun(sources, found);
  await expect(wrong.describe()).rejects.toThrow(/not found/);
  await expect(below.describe()).rejects.toThrow(/not found/);
  await expect(notOfIt.describe()).resolves.toMatchObject({ status: { name: 'RUNNING' } });
});

test('where Temporal is away, what the store has is shown, and the rest says so', async () => {
  const away = { ...env, TEMPORAL_ADDRESS: '127.0.0.1:1' };
  const gone = gradusCommand(installation.stack, { TEMPORAL_ADDRESS: away.TEMPORAL_ADDRESS });
  const runs = await gone('runs', '--json');
  expect(runs).toMatchObject({
    code: 0,
    stderr: expect.stringContaining('Temporal does not answer') as string,
  });
  expect(runs.stdout).toContain('"run":"brought"');
  // Which of them go on nobody can say; none is called forgotten.
  expect(runs.stdout).toMatch(/"run":"damaged".*"status":"unknown"/);
  expect(runs.stdout).not.toContain('"status":"forgotten"');
  expect(runs.stderr).not.toContain('not looked up in time');
  const why = await gone('why', 'brought');
  expect(why).toMatchObject({
    code: 1,
    stdout: expect.stringContaining('what it waits for is not known') as string,
    stderr: expect.stringContaining('Temporal does not answer') as string,
  });
  expect(why.stderr).not.toContain('    at ');
});
