import { readFile, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ObjectStore } from '../../../activities/store/object-store.ts';
import { ledgerPrefix } from '../../../activities/store/keys.ts';
import { addEntries } from '../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import { ids } from '../../../core/names.ts';
import type { LadderStatus } from '../../../workflows/ladder-state.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { until } from '../../support/run-client.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';

let installation: TestInstallation;
let store: ObjectStore;
let verdicts: string;

beforeAll(async () => {
  verdicts = path.join(process.env['TMPDIR'] ?? '/tmp', `gradus-verdicts-${process.pid}`);
  installation = await startTestInstallation({
    processes: [
      ['orchestrator', 'verifier', 'tool'],
      ['simulation'],
      ['high-fidelity'],
      ['rollout'],
      ['learner'],
    ],
    env: {
      GRADUS_ENVIRONMENTS: path.resolve('test/support/ladder-calculator.ts'),
      GRADUS_TEST_VERDICTS: verdicts,
    },
  });
  store = await ObjectStore.connect(installation.settings.store);
}, 240_000);
afterAll(async () => {
  store?.close();
  await installation?.remove();
  await rm(verdicts, { force: true });
});

interface RungOptions {
  wait?: boolean;
  budget?: object;
  deadlineSeconds?: number;
  missing?: 'cheaper' | 'pending';
}

function spec(
  near: RungOptions = {},
  exact: RungOptions = {},
  options: { maxSteps?: number; offer?: number } = {},
) {
  const brief = briefSpec({ environment: 'calculator-ladder', maxSteps: options.maxSteps ?? 2 });
  return {
    ...brief,
    warmStart: { ...brief.warmStart, tasks: [{ environment: 'calculator-ladder', levels: [1] }] },
    reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
    verification: {
      rungs: [
        { verifier: 'is-number', passAtLeast: 0.5 },
        { verifier: 'near', passAtLeast: 0.3, ...near },
        { verifier: 'exact', passAtLeast: 0.9, ...exact },
      ],
      offerLateFor: options.offer ?? 0,
    },
    stages: brief.stages.map((stage) => ({ ...stage, algorithm: { ...stage.algorithm, importanceCap: 2 } })),
  };
}

async function counted(name: string): Promise<number> {
  const text = await readFile(verdicts, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '' && (JSON.parse(line) as { name: string }).name === name).length;
}

async function ledgerOf(run: string): Promise<LedgerEntry[]> {
  const pages = await store.list(ledgerPrefix(run));
  const entries: LedgerEntry[] = [];
  for (const { key } of pages) {
    entries.push(...((await store.getJson((await store.head(key))!)) as unknown as LedgerEntry[]));
  }
  return entries;
}

const statusOf = (run: string): Promise<LadderStatus> =>
  installation.runs.client.workflow.getHandle(ids.ladder(run)).query<LadderStatus>('ladder');

test('candidates climb, the ledger adds up to what the verifiers counted, and nothing is computed twice', async () => {
  const run = await installation.runs.start('climbs', spec());
  const result = await run.result();
  expect(result.end).toBe('completed');
  const ladder = installation.runs.client.workflow.getHandle(ids.ladder('climbs'));
  const final = (await ladder.result()) as LadderStatus;
  expect(final.waiting).toBe(0);

  const [near, exact] = [await counted('near'), await counted('exact')];
  expect(near).toBeGreaterThan(0);
  expect(final.totals['near']!.computed).toBe(near);
  expect(final.totals['exact']?.computed ?? 0).toBe(exact);
  const entries = await ledgerOf('climbs');
  expect(addEntries({}, entries)).toEqual(
    Object.fromEntries(
      Object.entries(final.totals).map(([name, totals]) => [
        name,
        {
          ...totals,
          seconds: expect.closeTo(totals.seconds, 9) as number,
          usd: expect.closeTo(totals.usd, 9) as number,
        },
      ]),
    ),
  );
  const lines = (await readFile(verdicts, 'utf8')).trim().split('\n');
  expect(new Set(lines).size).toBe(lines.length);
  expect(final.calibration['is-number → near']!.n).toBeGreaterThan(0);

  // The same run again: everything is known, so nothing is computed and nothing is charged.
  const again = await (await installation.runs.start('climbs-again', spec())).result();
  expect(again.checkpoint.weights).toBe(result.checkpoint.weights);
  expect(await counted('near')).toBe(near);
  expect(await counted('exact')).toBe(exact);
});

test('a spent budget defers candidates to the archive, and training goes on with the cheaper verdict', async () => {
  const before = await counted('near');
  const other = { ...spec({ budget: { count: 3 } }), seed: 77 };
  const result = await (await installation.runs.start('poor', other)).result();
  expect(result.end).toBe('completed');
  const totals = addEntries({}, await ledgerOf('poor'));
  expect(totals['near']!.computed + totals['near']!.shared).toBeLessThanOrEqual(3);
  expect((await counted('near')) - before).toBe(totals['near']!.computed);
  expect(totals['near']!.deferred).toBeGreaterThan(0);
  expect((await store.list('runs/poor/archive/')).length).toBeGreaterThan(0);
});

test('a verdict that comes late, with workers and server killed in between, is booked and offered to the learner', async () => {
  await writeFile(`${verdicts}.hold-near`, '');
  const other = { ...spec({ wait: false }, {}, { maxSteps: 40, offer: 8 }), seed: 78 };
  const run = await installation.runs.start('late', other);
  await until(
    async () => ((await statusOf('late').catch(() => null))?.waiting ?? 0) > 0 || undefined,
    120_000,
    () => 'nothing is waited for',
  );
  await killAndReplace(installation.workers, 'orchestrator', 'simulation');
  process.kill(installation.stack.temporal.pid, 'SIGKILL');
  await rm(`${verdicts}.hold-near`);
  const ledger = await until(
    async () => {
      const entries = await ledgerOf('late');
      return entries.some(({ kind }) => kind === 'offered') ? entries : undefined;
    },
    200_000,
    () => 'nothing was offered again',
  );
  expect(ledger.some((entry) => entry.kind === 'verdict' && entry.late)).toBe(true);
  await run.signal('stop');
  expect((await run.result()).end).toBe('stopped');
});

test('people judge by majority; what they may not say is refused, and the run goes on meanwhile', async () => {
  const base = spec({}, { wait: false, missing: 'cheaper' });
  const [fast, near] = base.verification.rungs;
  const expert = { verifier: 'expert', passAtLeast: 0.5, wait: false, reviewers: 3, budget: { count: 1 } };
  // Whatever `near` says, the expert is asked: what this test shows must not hang on how well the policy guesses.
  const rungs = [fast, { ...near, passAtLeast: 0 }, expert];
  const other = { ...base, seed: 79, verification: { ...base.verification, rungs } };
  expect((await (await installation.runs.start('reviewed', other)).result()).end).toBe('completed');

  const { client } = installation.runs;
  const id = await until(
    async () => {
      const query = `WorkflowType = 'review' AND ExecutionStatus = 'Running'`;
      for await (const { workflowId } of client.workflow.list({ query })) return workflowId;
      return undefined;
    },
    30_000,
    () => 'nobody is asked',
  );
  const review = client.workflow.getHandle(id);
  const say = (reviewer: string, score: number, comment?: string) =>
    review.executeUpdate('submitVerdict', { args: [{ reviewer, score, comment }] });
  const refusal = async (said: Promise<unknown>): Promise<string> =>
    said.then(
      () => 'it was taken',
      (error: Error) => (error.cause as Error).message,
    );
  expect(await refusal(say('ann', 1.5))).toContain('1.5 is not in [0, 1]');
  await say('ann', 0.9, 'right');
  expect(await refusal(say('ann', 0.8))).toContain('ann has given a verdict already');
  await say('bob', 0.2);
  await say('cho', 0.7);
  await review.result();
  await expect(say('dan', 1)).rejects.toThrow(/not found|completed/);

  const final = (await client.workflow.getHandle(ids.ladder('reviewed')).result()) as LadderStatus;
  expect(final.totals['expert']).toMatchObject({ computed: 1, late: 1, usd: 5 });
  const [kept] = await store.list('verdicts/expert/');
  expect(await store.getJson((await store.head(kept!.key))!)).toMatchObject({
    kind: 'scored',
    score: 0.8,
    evidence: 'ann: 0.9, right; bob: 0.2; cho: 0.7',
  });
});

test('a sweep works through the archive, best value first, under its own budget; a schedule starts it', async () => {
  const before = await counted('near');
  const { client } = installation.runs;
  const schedule = await client.schedule.create({
    scheduleId: 'nightly',
    spec: { intervals: [{ every: '1 day' }] },
    policies: { overlap: 'SKIP' },
    action: {
      type: 'startWorkflow',
      workflowType: 'verificationSweep',
      taskQueue: 'gradus',
      workflowId: 'sweep-poor',
      args: [{ run: 'poor', budget: { count: 2 }, concurrency: 1 }],
    },
    state: { paused: true },
  });
  await schedule.trigger();
  const done = await until(
    async () => {
      const { info } = await schedule.describe();
      const [last] = info.recentActions;
      if (last?.action.type !== 'startWorkflow') return undefined;
      const { workflowId, firstExecutionRunId } = last.action.workflow;
      return (await client.workflow.getHandle(workflowId, firstExecutionRunId).result()) as unknown;
    },
    60_000,
    () => 'the schedule started nothing',
  );
  await schedule.delete();
  expect(done).toMatchObject({ asked: 2, arrived: 2, spent: { usd: 0.02 } });
  expect((await counted('near')) - before).toBe(2);
  const sweeps = (await ledgerOf('poor')).filter(({ stage }) => stage === 'sweep');
  expect(sweeps).toHaveLength(2);
});

test('stored episodes are judged anew, without rolling them out again', async () => {
  const before = await counted('exact');
  const { client } = installation.runs;
  const anew = (version: string) =>
    client.workflow.execute('reverify', {
      workflowId: `poor/reverify/exact/${version}`,
      taskQueue: 'gradus',
      args: [{ run: 'poor', verifier: 'exact', version }],
    }) as Promise<{ computed: number; scores: string }>;
  const { computed, scores } = await anew('1');
  expect(computed).toBeGreaterThan(0);
  expect((await counted('exact')) - before).toBe(computed);
  const kept = (await store.getJson((await store.head(scores))!)) as { score: number | null }[];
  expect(kept.length).toBeGreaterThanOrEqual(computed);
  expect(kept.every(({ score }) => score === 0 || score === 1)).toBe(true);
  expect((await anew('1')).computed).toBe(0);
  await expect(anew('2')).rejects.toMatchObject({
    cause: { cause: { message: expect.stringContaining('has version 1 of it, not exact 2') as string } },
  });
});
