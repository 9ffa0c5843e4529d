import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { LadderStatus } from '../../../workflows/ladder/ladder-state.ts';
import type { ReviewState } from '../../../workflows/ladder/review-state.ts';
import type { SweepResult } from '../../../workflows/verification/verification-sweep.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { jsonIn, readmeCommands } from '../../support/readme-commands.ts';
import { until } from '../../support/run-client.ts';
import { DONE } from '../../support/ended.ts';

// The commands of docs/ladder.md, as they stand; only the verifier is another one. The run has two
// stages of a step each and is paused between them, while people judge and a schedule sweeps.

const RUN = 'my-run';
let folder: string;
let installation: LadderInstallation;
let shell: Awaited<ReturnType<typeof readmeCommands>>;
let digest: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-readme-ladder-'));
  installation = await startLadderInstallation();
  const usual = (block: string): string =>
    block.replaceAll('xtb', 'exact').replaceAll('DIGEST', digest ?? 'DIGEST');
  shell = await readmeCommands(
    { folder, stack: installation.stack, page: 'docs/ladder.md', prefix: 'ladder' },
    usual,
  );
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(async () => {
  await installation?.remove();
  await rm(folder, { recursive: true, force: true });
});

function spec() {
  const near = { verifier: 'near', passAtLeast: 0, budget: { count: 1 } };
  const expert = {
    verifier: 'expert',
    passAtLeast: 0.5,
    wait: false,
    reviewers: 2,
    budget: { count: 1 },
  };
  const whole = ladderSpec([near, expert], { seed: 90, maxSteps: 1, offer: 8 });
  const [warmStart, stage] = whole.stages;
  // What the second stage knows of the first one's candidates it has from people and sweeps.
  const budgets = { near: { count: 0 }, expert: { count: 0 } };
  return { ...whole, stages: [warmStart, stage, { ...stage, name: 'more', budgets }] };
}

const schedule = (id = 'nightly') => installation.runs.client.schedule.getHandle(id);

/** The result of the newest sweep that a schedule has started, once it has started so many. */
async function sweep(actions: number): Promise<SweepResult> {
  const last = await until(
    async () => {
      const { info } = await schedule().describe();
      const action = info.recentActions.at(-1)?.action;
      const started = info.numActionsTaken >= actions && info.runningActions.length === 0;
      return started && action?.type === 'startWorkflow' ? action.workflow : undefined;
    },
    300_000,
    () => `the schedule has not started ${actions} sweep(s) that are done`,
  );
  const { client } = installation.runs;
  return client.workflow
    .getHandle(last.workflowId, last.firstExecutionRunId)
    .result() as Promise<SweepResult>;
}

test('people judge, a schedule sweeps, and the next stage learns from it, by the commands of docs/ladder.md', async () => {
  const { runs, hold, computed, ledger, store } = installation;
  expect(await shell('review-list')).toContain('no review is open');
  const holdFirst = await hold('near');
  const run = await runs.start(RUN, spec());
  await until(
    async () => (await installation.status(RUN))?.waiting || undefined,
    300_000,
    () => 'nothing is waited for',
  );
  await run.signal('pause');
  await holdFirst();
  await runs.progress(run, ({ finished }) => finished.length === 1);

  // People.
  const review = await until(
    async () => /verdict\/expert\/1\/[0-9a-f]{64}/.exec(await shell('review-list'))?.[0],
    300_000,
    () => 'no review is open',
  );
  digest = review.split('/').at(-1)!;
  const shown = jsonIn(await shell('review-show')) as ReviewState;
  expect(shown).toMatchObject({ reviewers: 2, opinions: [], verdict: null });
  expect(shown.ask.request.subject).toHaveProperty('expected');
  expect(await shell('review-submit')).toContain('1 of 2');
  expect(await shell('review-withdraw')).toContain('0 of 2');
  await shell('review-submit');
  expect(await shell('submit-verdict')).toContain('reviewer:bob score:1');
  await expect(shell('review-submit')).rejects.toThrow('this review is closed: the verdict is 0.95');

  // A schedule.
  const deferred = new Set(
    (await ledger(RUN)).flatMap((entry) =>
      entry.kind === 'decision' && entry.decision === 'defer' ? [entry.digest] : [],
    ),
  );
  expect(deferred.size).toBeGreaterThan(1);
  await shell('schedule-create');
  expect((await schedule().describe()).policies.overlap).toBe('SKIP');
  const release = await hold('near');
  await shell('schedule-trigger');
  await until(
    async () => (await schedule().describe()).info.runningActions.length === 1 || undefined,
    300_000,
    () => 'nothing was started',
  );
  await shell('schedule-trigger');
  await until(
    async () => (await schedule().describe()).info.numActionsSkippedOverlap === 1 || undefined,
    300_000,
    () => 'a sweep beside a sweep was not skipped',
  );
  await release();
  expect(await sweep(1)).toMatchObject({ asked: deferred.size, arrived: deferred.size });
  const near = await computed('near');
  expect(near).toHaveLength(1 + deferred.size);
  expect((await ledger(RUN)).filter(({ stage }) => stage === 'sweep')).toHaveLength(deferred.size);
  // What has been found has left the archive.
  await shell('schedule-trigger');
  expect(await sweep(2)).toMatchObject({ asked: 0 });
  await shell('schedule-backfill');
  expect(await sweep(5)).toMatchObject({ asked: 0 });
  expect((await schedule().describe()).info.numActionsTaken).toBe(5);

  // One that would start every second starts nothing while it is paused, and another one does.
  const often = (id: string) => (block: string) =>
    block.replaceAll('nightly', id).replace("--cron '0 2 * * *'", '--interval 1s').replace(RUN, id);
  await shell('schedule-create', often('paused'));
  await shell('schedule-pause', often('paused'));
  expect((await schedule('paused').describe()).state).toMatchObject({
    paused: true,
    note: 'the cluster is busy',
  });
  const taken = async (id: string): Promise<number> => (await schedule(id).describe()).info.numActionsTaken;
  const before = await taken('paused');
  await shell('schedule-create', often('going'));
  await until(
    async () => (await taken('going')) >= 3 || undefined,
    300_000,
    () => 'the schedule beside it does not start either',
  );
  expect(await taken('paused')).toBe(before);
  await shell('schedule-resume', often('paused'));
  await until(
    async () => (await taken('paused')) > before || undefined,
    300_000,
    () => 'a schedule that goes on starts nothing',
  );
  for (const id of ['paused', 'going']) await shell('schedule-delete', often(id));
  await shell('schedule-delete');
  await expect(schedule().describe()).rejects.toThrow(/not found/);

  // The next stage: the calibration counts what was found, the first stage's episodes are offered again, and what
  // passed wants to climb on.
  await run.signal('resume');
  expect((await run.result()).end).toEqual(DONE);
  const status = jsonIn(await shell('status')) as { queryResult?: LadderStatus[] } & LadderStatus;
  expect(status.calibration['is-number → near']!.n).toBe(1 + deferred.size);
  expect(status.calibration['near → expert']!.n).toBe(1);
  expect(await computed('near')).toEqual(near);
  const entries = await ledger(RUN);
  const offered = entries.filter((entry) => entry.kind === 'offered');
  expect(offered.length).toBeGreaterThan(0);
  for (const entry of offered) expect(entry).toMatchObject({ stage: 'rl', fromStep: 1, step: 1 });
  const wanting = entries.filter(
    (entry) => entry.kind === 'decision' && entry.stage === 'rl' && entry.verifier === 'expert',
  );
  expect(
    new Set(
      wanting.flatMap((entry) =>
        entry.kind === 'decision' && deferred.has(entry.digest) ? [entry.digest] : [],
      ),
    ).size,
  ).toBe(deferred.size);

  // Looking at it afterwards.
  const table = await shell('ledger');
  const escalated = entries.filter(
    (entry) => entry.kind === 'decision' && entry.verifier === 'near' && entry.decision === 'escalate',
  );
  expect(escalated.length).toBeGreaterThan(0);
  expect(table).toMatch(new RegExp(`near\\t${escalated.length}\\t.*\\t${near.length}\\t0\\t`));
  const lines = (await shell('ledger', (block) => block.replace(RUN, `${RUN} --json`))).trim().split('\n');
  expect(lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line) as unknown)).toEqual(
    JSON.parse(JSON.stringify(entries)),
  );
  const reverified = await shell('reverify');
  const exact = await computed('exact');
  expect(exact.length).toBeGreaterThan(0);
  expect(reverified).toContain(`${exact.length} verdicts computed`);
  const key = /scores of all episodes are in (\S+)/.exec(reverified)![1]!;
  const scores = (await store.getJson((await store.head(key))!)) as { score: number | null }[];
  expect(scores.length).toBeGreaterThanOrEqual(exact.length);
  expect(scores.every(({ score }) => score === 0 || score === 1)).toBe(true);
  expect(await shell('reverify')).toContain('0 verdicts computed');
  await expect(shell('reverify', (block) => block.replace('--version 1', '--version 2'))).rejects.toThrow(
    'has version 1 of exact, not 2',
  );
});
