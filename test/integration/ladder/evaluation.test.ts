import type { WorkflowHandle } from '@temporalio/client';
import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ledgerPrefix, rolloutsPrefix } from '../../../store/keys.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import { QUEUES } from '../../../core/names.ts';
import { findEvaluation } from '../../../store/run/evaluation.ts';
import type { StoredEvaluation } from '../../../store/run/evaluation.ts';
import type { EvaluateOutcome } from '../../../workflows/training/evaluate.ts';
import type { Computation } from '../../support/ladder-calculator.ts';
import { gradusCommand } from '../../support/gradus-command.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { until } from '../../support/run-client.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { DONE } from '../../support/ended.ts';

const TASKS = 24;

let installation: TestInstallation;
let store: ObjectStore;
let verdicts: string;

beforeAll(async () => {
  verdicts = path.join(process.env['TMPDIR'] ?? '/tmp', `gradus-verdicts-${process.pid}`);
  installation = await startTestInstallation({
    processes: [['orchestrator', 'verifier', 'tool', 'simulation'], ['rollout'], ['learner']],
    env: {
      GRADUS_ENVIRONMENTS: path.resolve('test/support/ladder-calculator.ts'),
      GRADUS_TEST_VERDICTS: verdicts,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 600_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(verdicts, { force: true });
});

async function objects<T>(prefix: string): Promise<T[]> {
  const keys = (await store.list(prefix)).map(({ key }) => key);
  return Promise.all(keys.map(async (key) => (await store.getJson((await store.head(key))!)) as T));
}

/** Computations so far, by what was asked. */
async function computed(verifier: string): Promise<string[]> {
  const lines = (await readFile(verdicts, 'utf8')).split('\n').filter((line) => line !== '');
  return lines
    .map((line) => JSON.parse(line) as Computation)
    .filter(({ name }) => name === verifier)
    .map(({ subject }) => JSON.stringify(subject));
}

test('a checkpoint is measured by the highest tier that all can have, at a price that the ledger shows', async () => {
  const brief = briefSpec({ environment: 'calculator-ladder' });
  const [warmStart, stage] = brief.stages;
  const spec = {
    ...brief,
    stages: [{ ...warmStart, tasks: [{ environment: 'calculator-ladder', levels: [1] }] }, stage],
    reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
    verification: {
      rungs: [
        { verifier: 'is-number', passAtLeast: 0.5 },
        { verifier: 'near', passAtLeast: 0.3, concurrency: 4 },
        // No worker serves it here; what its budget of none defers must not hold the run up.
        { verifier: 'exact', passAtLeast: 0.9, budget: { count: 0 } },
      ],
    },
    evaluation: { ...brief.evaluation, count: TASKS },
  };
  const { end, before, after } = await (await installation.runs.start('measured', spec)).result();
  expect(end).toEqual(DONE);

  const entries = (await objects<LedgerEntry[]>(ledgerPrefix('measured'))).flat();
  for (const [name, report] of Object.entries({ before, after })) {
    const prefix = rolloutsPrefix('measured', name);
    const keys = (await store.list(prefix)).map(({ key }) => key).filter((key) => key.includes('.judged'));
    const groups = await Promise.all(
      keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
    );
    const outcomes = groups.flatMap(({ episodes }) => episodes.map(({ outcome }) => outcome!));
    expect(outcomes).toHaveLength(TASKS);
    const said = outcomes.flatMap((outcome) => ('components' in outcome ? outcome.components : []));
    // What is a number has been judged by the tier, the rest stays with what the lowest one said of it.
    const passing = said.filter(({ version }) => version === 'near@1');
    const failing = said.filter(({ version }) => version === 'is-number@1');
    expect(passing.length).toBeGreaterThan(0);
    expect(failing.every(({ score }) => score === 0)).toBe(true);
    expect(passing.length + failing.length).toBe(said.length);
    const successes = passing.filter(({ score }) => score! >= 0.3).length;
    const trials = report!.arms[0]!.trials;
    expect(report!.arms).toMatchObject([{ successes }]);
    expect(trials).toBeGreaterThanOrEqual(passing.length);
    expect(entries.some((entry) => entry.kind === 'verdict' && entry.stage === name)).toBe(true);
  }

  const ran = (await readFile(verdicts, 'utf8')).trim().split('\n');
  const paid = entries.filter((entry) => entry.kind === 'verdict' && entry.spent !== null);
  expect(paid).toHaveLength(ran.length);
});

describe('without a run', () => {
  const tasks = [{ environment: 'calculator-ladder', levels: [1] }];
  const rungs = (verifier: string, more: object = {}) => [
    { verifier: 'is-number', passAtLeast: 0.5 },
    { verifier, passAtLeast: 0.3, ...more },
  ];
  const evaluate = (
    workflowId: string,
    input: object,
  ): Promise<WorkflowHandle<() => Promise<EvaluateOutcome>>> =>
    installation.runs.client.workflow.start('evaluate', {
      args: [{ checkpoint: 'measured', tasks, count: TASKS, split: 'heldout', ...input }],
      workflowId,
      taskQueue: QUEUES.orchestrator,
    });
  const evaluated = async (id: string, input: object): Promise<StoredEvaluation> =>
    (await findEvaluation(store, (await (await evaluate(id, input)).result()).run!))!;
  const gradus = (...args: string[]) => {
    const { temporalAddress: address, namespace, store: of } = installation.settings;
    return gradusCommand({ temporal: { address, namespace }, objectStore: { ...of, useSSL: false } })(
      ...args,
    );
  };
  test('a tier of the run judges, and the result says what its verdicts cost', async () => {
    const asked = [
      'evaluate',
      'measured',
      '--environment',
      'calculator-ladder:1',
      '--tasks',
      '20',
      '--evaluate-by',
      'near',
    ];
    const before = await computed('near');
    const dry = await gradus(...asked, '--dry-run');
    expect(dry.stdout).toContain('would evaluate 20 tasks × 1');
    expect(dry.stdout).toContain('up to 20 verdicts of near');
    expect(dry.stdout).toContain('0.2 s of its computation and to cost US$ 0.20');
    expect(await computed('near')).toEqual(before);
    const { stdout, code } = await gradus(...asked, '--seed', '7', '--json');
    expect(code).toBe(0);
    const { evaluation } = JSON.parse(stdout) as {
      evaluation: { run: string; evaluateBy: string; verdicts: NonNullable<StoredEvaluation['verdicts']> };
    };
    const after = await computed('near');
    expect(evaluation.evaluateBy).toBe('near');
    expect(evaluation.verdicts.computed).toBe(after.length - before.length);
    expect(evaluation.verdicts.usd).toBeCloseTo(0.01 * evaluation.verdicts.computed, 9);
    expect(evaluation.verdicts.asked).toBeGreaterThan(0);
    const { tasks: of, measured } = (await findEvaluation(store, evaluation.run))!;
    expect(of).toHaveLength(20);
    const prefix = rolloutsPrefix(evaluation.run, 'evaluate');
    const keys = (await store.list(prefix)).map(({ key }) => key).filter((key) => key.includes('.judged'));
    const groups = await Promise.all(
      keys.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
    );
    const said = groups.flatMap(({ episodes }) =>
      episodes.flatMap(({ outcome }) => ('components' in outcome! ? outcome.components : [])),
    );
    const successes = said.filter(({ version, score }) => version === 'near@1' && score! >= 0.3).length;
    expect(measured.arms).toMatchObject([{ successes, trials: 20 }]);
    expect(of.filter(({ samples }) => samples[0]!.solved)).toHaveLength(successes);
    // The same command finds what is stored, and asks nobody.
    const again = await gradus(...asked, '--seed', '7', '--json');
    expect(JSON.parse(again.stdout)).toEqual(JSON.parse(stdout));
    expect(await computed('near')).toEqual(after);
  }, 600_000);

  test('killed and terminated while a verdict is computed, it goes on, and no verdict is computed twice', async () => {
    const verification = { rungs: rungs('stern') };
    await writeFile(`${verdicts}.hold-stern`, '');
    const first = await evaluate('held', { verification });
    await until(
      async () => (await installation.runs.running('verdict/stern', 'verifySubject')).length > 0 || undefined,
      300_000,
      () => 'no verdict was asked for',
    );
    await killAndReplace(installation.workers, 'orchestrator');
    await first.terminate();
    await rm(`${verdicts}.hold-stern`);
    const groups = async () =>
      (await store.list(rolloutsPrefix('held', 'evaluate'))).filter(({ key }) => !key.includes('.judged'))
        .length;
    const rolledOut = await groups();
    const { verdicts: paid, measured, spec } = await evaluated('held', { verification });
    expect(spec.run).toBe('held');
    expect(await groups()).toBe(rolledOut);
    const stern = await computed('stern');
    expect(new Set(stern).size).toBe(stern.length);
    expect(stern.length).toBeGreaterThan(0);
    expect(paid!.computed).toBeLessThanOrEqual(stern.length);
    // It says 0.4 of every number, which passes.
    expect(measured.arms[0]!.successes).toBeGreaterThan(0);
  }, 600_000);

  test('what a tier cannot judge is no success, and what crashed says nothing, as in runs', async () => {
    const mute = await evaluated('mute', { verification: { rungs: rungs('mute') } });
    expect(mute.measured.arms).toMatchObject([{ successes: 0, trials: TASKS }]);
    expect(mute.measured.outcomes.abstained).toBeGreaterThan(0);
    expect(mute.tasks.every(({ samples }) => samples[0]!.solved === false)).toBe(true);
    const crashed = await evaluated('crashed', { verification: { rungs: rungs('crashing') } });
    const { abstained } = crashed.measured.outcomes;
    const trials = TASKS - abstained;
    // Where every answer is a number, all of them come to the tier that crashes, and nothing is known.
    expect(crashed.measured.arms).toMatchObject(trials === 0 ? [] : [{ successes: 0, trials }]);
    expect(crashed.tasks.filter(({ samples }) => samples[0]!.solved === null)).toHaveLength(abstained);
  }, 600_000);

  test('a budget that it could pass is refused before anything is spent', async () => {
    const before = await computed('near');
    const dear = { verification: { rungs: rungs('near', { budget: { usd: 0.1 } }), evaluateBy: 'near' } };
    await expect(evaluated('dear', dear)).rejects.toMatchObject({
      cause: {
        cause: {
          message: expect.stringContaining(
            '24 answers judged by near may take 0.24 of usd, and its budget is 0.1: lower count or samples, or raise the budget',
          ) as string,
        },
      },
    });
    expect(await store.list('runs/dear/')).toEqual([]);
    expect(await computed('near')).toEqual(before);
    const enough = { verification: { rungs: rungs('near', { budget: { usd: 0.25 } }), evaluateBy: 'near' } };
    const { verdicts: paid } = await evaluated('enough', enough);
    expect(paid!.usd).toBeLessThanOrEqual(0.25);
  }, 600_000);
});
