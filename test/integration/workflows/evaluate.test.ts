import { mkdtemp, rm } from 'node:fs/promises';
import { spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { z } from 'zod';
import type { evaluateOutput } from '../../../cli/json/evaluate.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import { successWithin } from '../../../core/training/evaluated.ts';
import { stackEnvironment } from '../../../infra/dev/stack-addresses.ts';
import type { StackAddresses } from '../../../infra/dev/stack-addresses.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { rolloutsPrefix, runKey } from '../../../store/keys.ts';
import { findEvaluation } from '../../../store/run/evaluation.ts';
import type { StoredEvaluation } from '../../../store/run/evaluation.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { deleteRun, planDeletion } from '../../../runs/control/delete-run.ts';
import { readRuns } from '../../../runs/overview/runs.ts';
import type { EvaluateOutcome } from '../../../workflows/training/evaluate.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { COMMAND, gradusCommand } from '../../support/gradus-command.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { ROOT } from '../../support/markdown.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

// A checkpoint is measured without a run: durable, once, and the same whoever is killed meanwhile.

const RUN = 'measured';
const tasks = [{ environment: 'calculator', levels: [1, 2] }];
/** Six groups of 128 episodes. */
const MANY = { checkpoint: RUN, tasks, count: 384, samples: 2, sampling: { maxTurns: 3 } };
const GROUPS = 6;

let installation: TestInstallation;
let store: ObjectStore;
let stack: StackAddresses;
let folder: string;

beforeAll(async () => {
  installation = await startTestInstallation();
  const { settings, runs } = installation;
  const { temporalAddress: address, namespace } = settings;
  stack = { temporal: { address, namespace }, objectStore: { ...settings.store, useSSL: false } };
  store = await ObjectStore.connect(settings.store);
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-evaluate-'));
  await (await runs.start(RUN, briefSpec())).result();
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

const start = (workflowId: string, input: unknown): Promise<WorkflowHandle<() => Promise<EvaluateOutcome>>> =>
  installation.runs.client.workflow.start('evaluate', {
    args: [input],
    workflowId,
    taskQueue: QUEUES.orchestrator,
  });

const storedAs = async (run: string): Promise<StoredEvaluation> => (await findEvaluation(store, run))!;
const evaluated = async (id: string, input: unknown): Promise<StoredEvaluation> =>
  storedAs((await (await start(id, input)).result()).run!);

/** What an evaluation says, without the name that it has. */
const numbers = ({ spec, ...rest }: StoredEvaluation) => ({ ...rest, spec: { ...spec, run: undefined } });

const groupsStored = async (run: string): Promise<number> =>
  (await store.list(rolloutsPrefix(run, 'evaluate'))).length;

/** Groups that executions of this id have begun to roll out. */
async function groupsBegun(run: string): Promise<number> {
  const query = `WorkflowType = "rolloutGroup" AND WorkflowId STARTS_WITH "${run}/"`;
  let begun = 0;
  // What is listed lags behind a little.
  return until(
    async () => {
      begun = 0;
      for await (const _ of installation.runs.client.workflow.list({ query })) begun++;
      return begun >= GROUPS ? begun : undefined;
    },
    300_000,
    () => `${begun} groups of ${run} are listed`,
  );
}

let leftAlone: StoredEvaluation;

describe('what is measured', () => {
  test('is every sample of every task, added up by level', async () => {
    leftAlone = await evaluated('left-alone', MANY);
    const { tasks: of, measured } = leftAlone;
    expect(of).toHaveLength(384);
    expect(of.every(({ samples, split }) => samples.length === 2 && split === 'test')).toBe(true);
    for (const { arm, successes, trials } of measured.arms) {
      const samples = of.filter(({ level }) => level === arm.level).flatMap((task) => task.samples);
      expect(samples.filter(({ solved }) => solved === true)).toHaveLength(successes);
      expect(samples.filter(({ solved }) => solved !== null)).toHaveLength(trials);
    }
    expect(await groupsBegun('left-alone')).toBe(GROUPS);
  }, 600_000);

  test('within fewer turns and tokens is what an evaluation with these limits measures', async () => {
    const sampling = { maxTurns: 2, maxCompletionTokens: 24 };
    const limited = await evaluated('limited', { ...MANY, count: 64, sampling });
    const turns = await evaluated('two-turns', { ...MANY, count: 64, sampling: { maxTurns: 2 } });
    const tokens = await evaluated('few-tokens', {
      ...MANY,
      count: 64,
      sampling: { maxTurns: 3, maxCompletionTokens: 24 },
    });
    const first = leftAlone.tasks.slice(0, 64);
    const meanOf = (of: StoredEvaluation['tasks'], what: 'turns' | 'tokens', most: number) =>
      successWithin(of, what, [most], 0.95)[0]!.mean;
    expect(meanOf(first, 'turns', 2)).toBe(meanOf(turns.tasks, 'turns', 2));
    expect(meanOf(first, 'tokens', 24)).toBe(meanOf(tokens.tasks, 'tokens', 24));
    expect(meanOf(limited.tasks, 'turns', 2)).toBe(meanOf(turns.tasks, 'tokens', 24));
  }, 600_000);

  test('is the same of a checkpoint by its key, and of its Hugging Face folder', async () => {
    const { checkpoints } = await findCheckpoints(store, RUN);
    const key = checkpoints.at(-1)!.ref.manifest.key;
    const byKey = await evaluated('by-key', { ...MANY, count: 32, checkpoint: key });
    expect(byKey.tasks).toEqual(leftAlone.tasks.slice(0, 32));

    const gradus = gradusCommand(stack);
    const exported = path.join(folder, 'exported-model');
    expect(await gradus('export', RUN, '--to', exported)).toMatchObject({ code: 0 });
    const flags = '--environment calculator:1,2 --tasks 32 --samples 2 --max-turns 3 --max-tokens 40';
    const args = ['evaluate', exported, ...flags.split(' '), '--verifier', 'exact-match'];
    // Who only asks is told what would be brought into the store, and nothing is.
    const before = (await store.list('')).map(({ key }) => key);
    const dry = await gradus(...args, '--dry-run');
    expect(dry).toMatchObject({ code: 0 });
    expect(dry.stdout).toContain(`would import ${exported} as the run exported-model: `);
    expect(dry.stdout).toContain('would evaluate 32 tasks × 2');
    const taken = await gradus(...args, '--dry-run', '--as', RUN);
    expect(taken).toMatchObject({ code: 1 });
    expect(taken.stderr).toContain(`called "${RUN}"`);
    expect((await store.list('')).map(({ key }) => key)).toEqual(before);
    const { stdout, stderr, code } = await gradus(...args, '--json');
    expect({ code, stderr }).toMatchObject({ code: 0 });
    const { evaluation } = JSON.parse(stdout) as z.infer<typeof evaluateOutput>;
    expect(evaluation).toMatchObject({ successes: total(byKey), trials: 64, samples: 2 });
    expect(await storedAs(evaluation.run)).toMatchObject({ tasks: byKey.tasks });
  }, 600_000);
});

const total = ({ measured }: StoredEvaluation): number =>
  measured.arms.reduce((sum, { successes }) => sum + successes, 0);

/** An evaluation that was terminated when some of its groups were stored. One that was quicker is made again, by another name. */
async function terminatedInTheMiddle(): Promise<string> {
  for (let i = 1; i <= 5; i++) {
    const run = `terminated-${i}`;
    const handle = await start(run, MANY);
    await until(
      async () => ((await groupsStored(run)) >= 2 ? true : undefined),
      300_000,
      () => 'no group is stored',
    );
    const ended = await handle.terminate('by the test').then(
      () => false,
      (error: unknown) => {
        if (!(error instanceof WorkflowNotFoundError)) throw error;
        return true;
      },
    );
    if (!ended) return run;
  }
  throw new Error('each evaluation has ended before it could be terminated');
}

describe('whoever is killed', () => {
  test('workers of rollouts, verifiers and workflows: the numbers are the same', async () => {
    const handle = await start('killed-workers', MANY);
    await killInActivity(
      installation,
      (group) => ids.group('killed-workers', 'evaluate', 0, group),
      'advance',
      'rollout',
    );
    // One process, which serves the verifiers too.
    await killAndReplace(installation.workers, 'orchestrator');
    await handle.result();
    expect(numbers(await storedAs('killed-workers'))).toEqual(numbers(leftAlone));
  }, 600_000);

  test('an evaluation that was terminated goes on where it was, and rolls out nothing that is stored', async () => {
    const run = await terminatedInTheMiddle();
    const kept = await groupsStored(run);
    const before = await contents(run);
    const again = await evaluated(run, MANY);
    expect(numbers(again)).toEqual(numbers(leftAlone));
    expect(again.spec.run).toBe(run);
    const after = await contents(run);
    expect(before.every((one) => after.includes(one))).toBe(true);
    const { events } = await installation.runs.client.workflow
      .getHandle(`${run}/evaluation/evaluate/0`)
      .fetchHistory();
    const begun = (events ?? []).filter(
      (one) => one.startChildWorkflowExecutionInitiatedEventAttributes,
    ).length;
    expect(begun).toBeLessThanOrEqual(GROUPS - kept);
  }, 600_000);

  test('the command: given again it finds the evaluation that goes on, and prints the same', async () => {
    const flags = '--environment calculator:1,2 --tasks 384 --samples 2 --max-turns 3 --json --seed 3';
    const args = ['evaluate', RUN, ...flags.split(' ')];
    const command = spawn(process.execPath, [...COMMAND.split(' '), ...args], {
      cwd: ROOT,
      env: { ...process.env, ...stackEnvironment(stack) },
      stdio: ['ignore', 'ignore', 'pipe'],
    });
    let said = '';
    command.stderr.on('data', (text: Buffer) => (said += text.toString()));
    const id = await until(
      async () => /evaluate-[0-9a-f]{16}/.exec(said)?.[0],
      300_000,
      () => `it has not begun: ${said}`,
    );
    command.kill('SIGKILL');
    const gradus = gradusCommand(stack);
    const first = await gradus(...args);
    expect(first).toMatchObject({ code: 0 });
    const begun = await groupsBegun(id);
    const second = await gradus(...args);
    expect(second.stdout).toBe(first.stdout);
    expect(await groupsBegun(id)).toBe(begun);
    expect(begun).toBe(GROUPS);
  }, 600_000);
});

test('two models are compared task by task; the report is printed as tables, too', async () => {
  const gradus = gradusCommand(stack);
  const flags = '--environment calculator:1 --tasks 64 --samples 2 --max-turns 3'.split(' ');
  const [first] = (await findCheckpoints(store, RUN)).checkpoints;
  const args = ['evaluate', RUN, ...flags, '--against', `${RUN}@${first!.ref.step}`];
  const { stdout } = await gradus(...args, '--json');
  const { evaluation, against, difference } = JSON.parse(stdout) as z.infer<typeof evaluateOutput>;
  expect(difference!.all).toMatchObject({
    n: 64,
    mean: expect.closeTo(evaluation.success - against!.success, 9),
  });
  expect(against!.checkpoint).toEqual(first!.ref);
  // Both are stored now, and known by their names.
  const again = await gradus('evaluate', evaluation.run, '--against', against!.run, '--json');
  expect(JSON.parse(again.stdout)).toEqual(JSON.parse(stdout));
  const same = await gradus('evaluate', evaluation.run, '--against', evaluation.run, '--json');
  expect((JSON.parse(same.stdout) as z.infer<typeof evaluateOutput>).difference!.all).toMatchObject({
    mean: 0,
    equal: 64,
  });
  const tables = await gradus(...args);
  expect(tables.stdout).toMatch(/pass@2 \d/);
  expect(tables.stdout).toMatch(/success within turns: 1 /);
  expect(tables.stdout).toMatch(/points, 64 tasks/);
}, 600_000);

describe("from Temporal's own tools", () => {
  const temporal = (...args: string[]) =>
    runCommand(installation.stack.temporal.cliPath!, [
      ...args,
      '--address',
      installation.settings.temporalAddress,
    ]);
  const small = JSON.stringify({ checkpoint: RUN, tasks, count: 16 });

  test('temporal workflow start', async () => {
    const id = ['--workflow-id', 'by-hand', '--task-queue', 'gradus', '--input', small];
    const begun = await temporal('workflow', 'start', '--type', 'evaluate', ...id);
    expect(begun).toMatchObject({ code: 0 });
    await installation.runs.client.workflow.getHandle('by-hand').result();
    expect((await storedAs('by-hand')).tasks).toHaveLength(16);
  }, 600_000);

  test('a Schedule, each run of which has its own id and its own name in the store', async () => {
    const what = ['--type', 'evaluate', '--task-queue', 'gradus', '--input', small];
    const when = ['--interval', '2s', '--overlap-policy', 'AllowAll', '--remaining-actions', '2'];
    const schedule = ['--schedule-id', 'nightly', '--workflow-id', 'nightly', ...when];
    expect(await temporal('schedule', 'create', ...schedule, ...what)).toMatchObject({ code: 0 });
    const runs = await until(
      async () => {
        const { folders } = await store.listFolder('runs/');
        const names = folders.map((one) => one.split('/')[1]!).filter((one) => one.startsWith('nightly-'));
        const done = await Promise.all(names.map((name) => findEvaluation(store, name)));
        return done.length === 2 && done.every((one) => one !== null) ? done : undefined;
      },
      300_000,
      () => 'the schedule has not run twice',
    );
    expect(numbers(runs[0]!)).toEqual(numbers(runs[1]!));
  }, 600_000);
});

describe('bad input is refused before anything is spent', () => {
  test.each([
    [
      'an environment that nobody knows',
      { tasks: [{ environment: 'calculater' }] },
      'did you mean "calculator"',
    ],
    [
      'a level that is not there',
      { tasks: [{ environment: 'calculator', levels: [77] }] },
      'has no level 77',
    ],
    ['a run that is not there', { checkpoint: 'nobody' }, 'has no checkpoint in this store'],
    ['a step that is not there', { checkpoint: `${RUN}@99` }, 'has no checkpoint of step 99'],
    [
      'a key that is not there',
      { checkpoint: `runs/${RUN}/checkpoints/000001-abc` },
      'there is no checkpoint',
    ],
    ['no name at all', { checkpoint: '../x' }, 'is no checkpoint'],
    [
      'room that the model has not',
      { sampling: { maxCompletionTokens: 4096 } },
      'leaves no room for a prompt',
    ],
    ['a dialect that it cannot speak', { dialect: { name: 'hermes' } }, 'hermes needs a chat template'],
    ['nothing that could be read', null, 'the evaluation was refused'],
  ])('%s', async (what, input, why) => {
    const id = `refused-${what.replaceAll(' ', '-')}`;
    const handle = await start(id, input && { checkpoint: RUN, tasks, count: 8, ...input });
    const failure = await handle.result().then(
      () => 'it was taken',
      (error: Error) => rootOf(error).message,
    );
    expect(failure).toContain(why);
    expect(await store.head(runKey(id))).toBeUndefined();
  });

  test('a folder that is no model is refused, and nothing of it is stored', async () => {
    const gradus = gradusCommand(stack);
    const args = ['--environment', 'calculator:1', '--verifier', 'exact-match'];
    const { code, stderr } = await gradus('evaluate', folder, ...args);
    expect(code).toBe(1);
    expect(stderr).toContain('config.json');
    const other = await gradus(
      'evaluate',
      folder,
      '--environment',
      'calculater:1',
      '--verifier',
      'exact-match',
    );
    expect(other.stderr).toContain('did you mean "calculator"');
    const dry = await gradus('evaluate', folder, ...args, '--dry-run');
    expect(dry).toMatchObject({ code: 1 });
    expect(dry.stderr).toContain('config.json');
  });
});

function rootOf(error: Error): Error {
  let at = error;
  while (at.cause instanceof Error) at = at.cause;
  return at;
}

test('its checkpoint is held while it is measured and no longer, and it is no run in lists', async () => {
  await expect.poll(() => store.list(`runs/${RUN}/pins/`)).toEqual([]);
  const temporal = installation.runs.client;
  const { rows } = await readRuns({ store, temporal }, { patienceMs: 60_000 });
  expect(rows.find(({ run }) => run === 'by-hand')).toMatchObject({ status: 'evaluation' });
  await deleteRun({ store, temporal }, await planDeletion({ store, temporal }, 'by-hand'));
  expect(await store.list('runs/by-hand/')).toEqual([]);
}, 600_000);

/** Digests of the groups that are stored. */
async function contents(run: string): Promise<string[]> {
  const found = await store.list(rolloutsPrefix(run, 'evaluate'));
  return Promise.all(found.map(async ({ key }) => `${key} ${(await store.head(key))!.sha256}`));
}
