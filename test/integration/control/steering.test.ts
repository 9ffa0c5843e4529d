import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { readChanges } from '../../../store/run/changes.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import type { RunChange } from '../../../core/run-change.ts';
import type { TierAnswer } from '../../../core/tier-contract.ts';
import { change } from '../../../workflows/control/messages.ts';
import type { ReviewState } from '../../../workflows/ladder/review-state.ts';
import { DONE } from '../../support/ended.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';

let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation();
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(() => installation?.remove());

const waits = (run: string): Promise<number> =>
  until(
    async () => (await installation.status(run))?.waiting || undefined,
    300_000,
    () => `${run} waits for no verdict`,
  );

const refusal = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'it was taken',
    (error: Error) => (error.cause as Error).message,
  );

const NEAR = { verifier: 'near', passAtLeast: 0, budget: { count: 1, usd: 9 } };
const EXPERT = { verifier: 'expert', passAtLeast: 0.5, wait: false, reviewers: 3, budget: { count: 1 } };
const CHANGE: RunChange = { budgets: { near: { count: 6 } }, maxSteps: { rl: 3 }, reason: 'there is room' };

test('two runs that are changed at the same step end the same, though the orchestrator is killed right after one of the changes', async () => {
  const { runs, store, hold, status, ladderEnd, workers } = installation;
  const spec = ladderSpec([NEAR, EXPERT], { seed: 91, maxSteps: 4, offer: 4 });
  const letGo = await hold('near');
  const names = ['steered', 'steered-too'];
  const both = await Promise.all(names.map((name) => runs.start(name, spec)));
  // Both are in their first step.
  for (const name of names) expect(await waits(name)).toBe(1);
  const [one, other] = both;
  const wrong = { budgets: { nera: { count: 2 } } };
  expect(await refusal(one!.executeUpdate(change, { args: [wrong] }))).toContain('did you mean "near"?');
  await other!.executeUpdate(change, { args: [CHANGE] });
  const kept = await one!.executeUpdate(change, { args: [CHANGE], updateId: 'by-ann' });
  await killAndReplace(workers, 'orchestrator');
  // The same update again is the same change.
  expect(await one!.executeUpdate(change, { args: [CHANGE], updateId: 'by-ann' })).toEqual(kept);
  expect(kept).toMatchObject({ number: 1, after: 0, update: 'by-ann', stage: 'rl', step: null, ...CHANGE });
  expect((await status('steered'))!.budgets['near']).toMatchObject({ budget: NEAR.budget });
  await letGo();

  const [first, second] = await Promise.all(both.map((run) => run.result()));
  expect(first!.end).toEqual(DONE);
  expect(first!.checkpoint.weights).toBe(second!.checkpoint.weights);
  expect(await readChanges(store, 'steered')).toEqual([kept]);
  expect(await readChanges(store, 'steered-too')).toMatchObject([{ number: 1, ...CHANGE }]);
  for (const [i, name] of names.entries()) {
    const { changes } = await runs.progress(both[i]!, () => true);
    expect(changes).toEqual(await readChanges(store, name));
    const steps = (await readSteps(store, name)).filter(({ stage }) => stage === 'rl');
    expect(steps.map(({ stageStep, maxSteps, change: held }) => [stageStep, maxSteps, held])).toEqual([
      [1, 4, undefined],
      [2, 3, 1],
      [3, 3, 1],
    ]);
    // What is spent stays spent, and what was deferred is asked for after all.
    const { budget, account } = (await status(name))!.budgets['near']!;
    expect(budget).toEqual({ count: 6, usd: 9 });
    expect(account.count).toBeGreaterThan(1);
  }
  await expect(one!.executeUpdate(change, { args: [CHANGE] })).rejects.toThrow(/not found|completed/);

  await withdrawn(names);
  for (const name of names) {
    expect(await ladderEnd(name)).toMatchObject({ waiting: 0, totals: { expert: { abstained: 1 } } });
  }
});

/** The review that both runs wait for, which is found by its attributes; people think better of it. */
async function withdrawn(names: string[]): Promise<void> {
  const { runs, store, ledger } = installation;
  const query = `WorkflowType = 'review' AND GradusVerifier = 'expert' AND ExecutionStatus = 'Running'`;
  const found = await until(
    async () => {
      const ids: string[] = [];
      for await (const { workflowId } of runs.client.workflow.list({ query })) ids.push(workflowId);
      return ids.length > 0 ? ids : undefined;
    },
    300_000,
    () => 'no review is listed',
  );
  expect(found).toHaveLength(1);
  const review = runs.client.workflow.getHandle(found[0]!);
  const { run, ask } = await review.query<ReviewState>('review');
  expect(names).toContain(run);
  expect((await runs.client.workflow.count(`WorkflowType = 'review' AND GradusRun = '${run}'`)).count).toBe(
    1,
  );
  const verdicts = `WorkflowType = 'verdict' AND GradusVerifier = 'near' AND GradusRun STARTS_WITH 'steered'`;
  expect((await runs.client.workflow.count(verdicts)).count).toBeGreaterThan(1);
  expect(ask.cheaper).toEqual([
    { verifier: 'is-number', version: '1', score: 0.6 },
    { verifier: 'near', version: '1', score: expect.any(Number) as number },
  ]);

  const update = (name: string, input: object): Promise<ReviewState> =>
    review.executeUpdate<ReviewState, [object]>(name, { args: [input] });
  await update('submitVerdict', { reviewer: 'ann', score: 0.9 });
  expect(await refusal(update('withdraw', { reviewer: 'bob' }))).toContain('given were those of ann');
  expect(await update('withdraw', { reviewer: 'ann', reason: 'misread' })).toMatchObject({
    opinions: [],
    withdrawn: [{ reviewer: 'ann', reason: 'misread' }],
  });
  await update('submitVerdict', { reviewer: 'ann', score: 0.1 });
  await update('withdraw', { reviewer: 'cho', all: true, reason: 'the task is wrong' });
  await review.result();
  const { verdict, opinions } = await review.query<ReviewState>('review');
  expect(opinions).toEqual([{ reviewer: 'ann', score: 0.1 }]);
  expect(verdict).toMatchObject({
    kind: 'abstained',
    type: 'withdrawn',
    reason: 'cho took it back: the task is wrong',
    evidence: 'ann: 0.1',
  } satisfies Partial<TierAnswer>);
  // It says nothing of the subject: whoever asks next is not told so.
  expect(await store.list('verdicts/expert/')).toEqual([]);
  for (const name of names) {
    const heard = async () =>
      (await ledger(name)).some((entry) => entry.kind === 'verdict' && entry.type === 'withdrawn');
    await expect.poll(heard, { timeout: 120_000 }).toBe(true);
  }
}
