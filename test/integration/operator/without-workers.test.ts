import { defineSearchAttributeKey } from '@temporalio/common';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { QUEUES } from '../../../core/names.ts';
import { readRuns } from '../../../observe/runs.ts';
import { whyOf } from '../../../observe/why.ts';
import type { Sources } from '../../../observe/sources.ts';
import { jsonCodec } from '../../../store/codec.ts';
import { runKey } from '../../../store/keys.ts';
import { runClaims } from '../../../store/run-claim.ts';
import { keepStepFacts } from '../../../store/step-facts.ts';
import { ObjectStore } from '../../../store/object-store.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { builtInEnvironments } from '../../../environments/index.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { until } from '../../support/run-client.ts';
import { someHeldOut, someStep } from '../../support/some-step.ts';
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

const environments = new Map(builtInEnvironments.map((environment) => [environment.name, environment]));

/** A run that only the store knows, after `steps` steps. */
async function forgottenRun(run: string, steps: number): Promise<void> {
  const { model: _, ...spec } = parseSpec(tinySpec(), run, environments);
  const claim = { execution: run, spec: { ...spec, model: { kind: 'scratch' } } as never };
  await store.keep(runKey(run), runClaims, claim);
  for (let step = 1; step <= steps; step++) {
    const heldOut = step % 2 === 0 ? someHeldOut(step, 32) : null;
    await keepStepFacts(store, run, someStep({ stageStep: step, step: step + 2, heldOut }));
  }
}

const gradus = gradusCommand(installation.stack);

beforeAll(async () => {
  const names = Array.from({ length: MANY }, (_, i) => `many-${i}`);
  for (let i = 0; i < MANY; i += 25) {
    await Promise.all(names.slice(i, i + 25).map((name) => start(name, name)));
  }
  await forgottenRun('forgotten', 3);
  await store.keep(runKey('brought'), runClaims, { import: 'x'.repeat(64), spec: null });
  const text = jsonCodec<{ nothing: string }>('nothing', undefined as never);
  await store.keep(
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
    60_000,
    () => 'visibility does not list what was started',
  );
}, 240_000);

test('hundreds of runs are listed as far as they are known, without waiting for workers', async () => {
  const begun = performance.now();
  const { rows, total, problems, away } = await readRuns(sources, { limit: 1000, patienceMs: 20_000 });
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
  const { rows, problems } = await readRuns(sources, { limit: 1000, patienceMs: 300 });
  expect(rows).toHaveLength(MANY + 3 + 3);
  expect(problems.join()).toMatch(/in time/);
});

test('the command lists them with what is strange made visible, and says how many there are', async () => {
  await gradus('runs', '--help');
  const { code, stdout, stderr, seconds } = await gradus('runs');
  expect({ code, stderr }).toMatchObject({ code: 0 });
  console.info(`gradus runs with ${MANY} runs: ${seconds.toFixed(2)} s`);
  expect(stderr).toContain(`50 of ${MANY + 6}; --limit ${MANY + 6} shows all`);
  expect(stdout).not.toContain('\u001b');
  const lines = stdout.trim().split('\n');
  expect(lines).toHaveLength(50 + 3);
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
    problems: ['no worker answers for the run itself'],
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
