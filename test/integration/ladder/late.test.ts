import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { stackEnvironment } from '../../../infra/dev/stack-addresses.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import type { ReviewState } from '../../../workflows/ladder/review-state.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { ROOT } from '../../support/markdown.ts';
import { until } from '../../support/run-client.ts';
import { DONE, isDone } from '../../support/ended.ts';

// Verdicts that come days later, on a server that lets histories grow to a few steps only, so that everything
// continues as new as often as in a run of weeks.

let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation({
    dynamicConfig: {
      'limit.historyCount.suggestContinueAsNew': 60,
      'frontend.WorkflowTimeSkippingEnabled': true,
    },
  });
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(() => installation?.remove());

/** The server lets the time pass that a workflow waits. */
async function skipTime(workflowId: string): Promise<void> {
  await installation.runs.client.workflowService.updateWorkflowExecutionOptions({
    namespace: 'default',
    workflowExecution: { workflowId },
    workflowExecutionOptions: { timeSkippingConfig: { enabled: true } },
    updateMask: { paths: ['time_skipping_config'] },
  });
}

const ARM = 'calculator-ladder:1';
const DAY = 24 * 3600;

test('verdicts that come after everything was killed move estimates, ledger and batch by exactly what they changed', async () => {
  const { runs, hold, startPaused, status, ledger, store, stack, workers, roles, ladderEnd } = installation;
  // The fast tier passes everything and this one nothing: each late verdict takes a success back.
  const stern = { verifier: 'stern', passAtLeast: 0.5, wait: false };
  const letFirstGo = await hold('stern');
  const spec = ladderSpec([stern], { seed: 78, offer: 8 });
  const { handle: run, shown } = await startPaused('late', spec);
  const { step: first } = shown;
  // Some of what is asked is being computed.
  await until(
    async () => (await runs.running('verdict/stern', 'verifySubject')).length > 0 || undefined,
    300_000,
    () => 'nothing is computed',
  );
  const asked = (await status('late'))!.waiting;
  expect(asked).toBeGreaterThan(0);
  const { scored } = first!.outcomes;
  expect(scored).toBeGreaterThan(0);
  expect(first!.estimates).toEqual({ [ARM]: { successes: scored, trials: 16 } });

  process.kill(stack.temporal.pid, 'SIGKILL');
  process.kill(stack.objectStore.pid, 'SIGKILL');
  await killAndReplace(workers, ...roles);
  await letFirstGo();
  await until(
    async () => (await status('late'))?.waiting === 0 || undefined,
    300_000,
    () => 'the verdicts did not come',
  );

  const letSecondGo = await hold('stern');
  await run.signal('resume');
  expect((await run.result()).end).toEqual(DONE);
  const { step: second } = await runs.progress(run, (now) => isDone(now.status));
  expect(second!.estimates).toEqual({
    [ARM]: {
      // What the first step counted is forgotten in part, and so is what its verdicts take back.
      successes: expect.closeTo(second!.outcomes.scored, 9) as number,
      trials: expect.closeTo(0.9 * 16 + 16, 9) as number,
    },
  });
  const entries = await ledger('late');
  expect(entries.filter((entry) => entry.kind === 'verdict' && entry.late)).toHaveLength(asked);
  // The kill took the computations in flight with it, and what is known of that is written down.
  const lost = entries.filter((entry) => entry.kind === 'lost');
  expect(lost.length).toBeGreaterThan(0);
  expect(lost.every(({ attempts, seconds }) => attempts >= 1 && seconds > 0)).toBe(true);
  const offered = entries.filter((entry) => entry.kind === 'offered');
  expect(offered.reduce((sum, { episodes }) => sum + episodes, 0)).toBe(16);
  expect(offered.every((entry) => entry.fromStep === 1 && entry.step === 2)).toBe(true);
  const superseded = entries.filter((entry) => entry.kind === 'decision' && entry.decision === 'reject');
  expect(superseded).toHaveLength(16);
  const keys = (await store.list('runs/late/rollouts/rl/000001/')).map(({ key }) => key);
  const anew = keys.filter((key) => key.includes('.late-rl-2'));
  expect(anew).toHaveLength(4);
  const { events } = await runs.client.workflow.getHandle('late/rl').fetchHistory();
  const inputs = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: task }) =>
    task?.activityType?.name === 'buildBatch' ? (task.input?.payloads ?? []) : [],
  );
  const batch = Buffer.from(inputs.at(-1)!.data!).toString();
  for (const key of anew) expect(batch).toContain(key);

  // The run is over, and its ladder still waits, through as many histories as it takes.
  expect((await status('late'))!.waiting).toBeGreaterThan(0);
  await letSecondGo();
  const end = await ladderEnd('late');
  expect(end.waiting).toBe(0);
  const { late, afterRun, computed } = end.totals['stern']!;
  expect(late + afterRun).toBe(computed);
  expect(afterRun).toBeGreaterThan(0);
  expect(computed).toBeGreaterThan(asked);
  expect(end.continued).toBeGreaterThan(0);
});

/** A run that asks three people about one candidate; resolves to the review when it is over. */
async function reviewed(name: string, seed: number): Promise<string> {
  const { runs, store } = installation;
  const expert = {
    verifier: 'expert',
    passAtLeast: 0.5,
    wait: false,
    reviewers: 3,
    budget: { count: 1 },
  };
  const spec = ladderSpec([expert], { seed, maxSteps: 1 });
  expect((await (await runs.start(name, spec)).result()).end).toEqual(DONE);
  const [asks] = await store.list(`runs/${name}/asks/`);
  const [wish] = (await store.getJson((await store.head(asks!.key))!)) as {
    ask: { request: { digest: string } };
  }[];
  return `verdict/expert/1/${wish!.ask.request.digest}`;
}

const refusal = (answer: Promise<unknown>): Promise<string> =>
  answer.then(
    () => 'it was taken',
    (error: Error) => (error.cause as Error).message,
  );

test('people judge by majority; what they may not say is refused, and the run goes on meanwhile', async () => {
  const { runs, ladderEnd, store } = installation;
  const review = runs.client.workflow.getHandle(await reviewed('reviewed', 79));
  const say = (reviewer: string, score: number, comment?: string) =>
    review.executeUpdate('submitVerdict', { args: [{ reviewer, score, comment }] });
  expect(await refusal(say('ann', 1.5))).toContain('1.5 is not in [0, 1]');
  await say('ann', 0.9, 'right');
  expect(await refusal(say('ann', 0.8))).toContain('ann has given a verdict already');
  await say('bob', 0.2);
  await say('cho', 0.7);
  await review.result();
  await expect(say('dan', 1)).rejects.toThrow(/not found|completed/);

  expect((await ladderEnd('reviewed')).totals['expert']).toMatchObject({
    computed: 1,
    late: 0,
    afterRun: 1,
    seconds: 0,
    usd: 5,
  });
  const [kept] = await store.list('verdicts/expert/');
  expect(await store.getJson((await store.head(kept!.key))!)).toMatchObject({
    kind: 'scored',
    score: 0.8,
    evidence: 'ann: 0.9, right; bob: 0.2; cho: 0.7',
  });
});

test('a run whose ladder is terminated while a step waits for it fails, and says so', async () => {
  const { runs, hold, status } = installation;
  const letGo = await hold('near');
  const spec = ladderSpec([{ verifier: 'near', passAtLeast: 0.3 }], { seed: 87 });
  const run = await runs.start('orphaned', spec);
  await until(
    async () => (await status('orphaned'))?.waiting || undefined,
    300_000,
    () => 'nothing is waited for',
  );
  await runs.client.workflow.getHandle('orphaned/ladder').terminate('by mistake');
  await skipTime('orphaned/rl');
  const failure = await run.result().then(
    () => 'ended well',
    () => runs.progress(run, (now) => now.status === 'failed'),
  );
  expect(failure).toMatchObject({
    failure: expect.stringContaining('the ladder orphaned/ladder has ended before its run') as string,
  });
  await letGo();
});

test('seven days without a majority are an abstention; who comes later is told so, and the next run asks again', async () => {
  const { runs, ladderEnd, ledger, store, stack } = installation;
  const { client } = runs;
  const id = await reviewed('abandoned', 85);
  const review = client.workflow.getHandle(id);
  const { deadline } = await review.executeUpdate<ReviewState, [object]>('submitVerdict', {
    args: [{ reviewer: 'ann', score: 0.9 }],
  });
  const begun = (await review.describe()).startTime.getTime();
  // From its first workflow task on, for which a busy machine takes its time.
  const from = (Date.parse(deadline) - begun) / 1000 - 7 * DAY;
  expect(from).toBeGreaterThan(-1);
  expect(from).toBeLessThan(120);
  await skipTime(id);
  await review.result();

  const { verdict } = await review.query<ReviewState>('review');
  expect(verdict).toMatchObject({
    kind: 'abstained',
    type: 'deadline',
    reason: '1 of 3 reviewers had answered when the time was up, without a majority',
    evidence: 'ann: 0.9',
  });
  expect(verdict!.spent.seconds).toBeGreaterThanOrEqual(7 * DAY);
  const { totals } = await ladderEnd('abandoned');
  expect(totals['expert']).toMatchObject({ abstained: 1, late: 0, afterRun: 1 });
  expect(await ledger('abandoned')).toContainEqual(
    expect.objectContaining({ kind: 'verdict', result: 'abstained', type: 'deadline', late: true }),
  );
  await expect(
    review.executeUpdate('submitVerdict', { args: [{ reviewer: 'bob', score: 1 }] }),
  ).rejects.toThrow(/not found|completed/);
  const { code, stderr } = await runCommand(
    process.execPath,
    ['--import', 'tsx', 'cli/gradus.ts', 'review', 'submit', id, '--reviewer', 'bob', '--score', '1'],
    { env: { ...process.env, ...stackEnvironment(stack) }, cwd: ROOT },
  );
  expect(code).not.toBe(0);
  expect(stderr).toContain('closed without a verdict: 1 of 3 reviewers had answered when the time was up');

  const digest = id.split('/').at(-1)!;
  expect((await store.list('verdicts/expert/')).map(({ key }) => key).join()).not.toContain(digest);
  expect(await reviewed('abandoned-again', 85)).toBe(id);
  const open = await client.workflow.getHandle(id).describe();
  expect(open.status.name).toBe('RUNNING');
  expect(open.startTime.getTime()).toBeGreaterThan(begun);
});
