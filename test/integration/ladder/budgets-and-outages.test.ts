import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { readArchive } from '../../../activities/ladder/archive.ts';
import { predict } from '../../../core/ladder/calibration.ts';
import { addEntries } from '../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import type { WantedVerdict } from '../../../core/ladder/requests.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import calculatorWithLadder, { isLarge } from '../../support/ladder-calculator.ts';
import { ladderSpec, startLadderInstallation } from '../../support/ladder-installation.ts';
import type { LadderInstallation } from '../../support/ladder-installation.ts';
import { until } from '../../support/run-client.ts';
import { DONE, isDone } from '../../support/ended.ts';

let installation: LadderInstallation;
beforeAll(async () => {
  installation = await startLadderInstallation();
}, 600_000);
afterEach(() => installation.releaseAll());
afterAll(() => installation?.remove());

const NEAR = { verifier: 'near', passAtLeast: 0.3 };
const EXACT = { verifier: 'exact', passAtLeast: 0.9 };

const verdictsIn = (entries: readonly LedgerEntry[]) => entries.filter((entry) => entry.kind === 'verdict');

test('the same spec ends with the same weights in a store that knows its verdicts, though its budget runs out', async () => {
  const { runs, computed, ladderEnd, ledger } = installation;
  const tiers = [
    { ...NEAR, passAtLeast: 0.05, budget: { count: 5, perStep: 2 } },
    { ...EXACT, budget: { count: 2 } },
  ];
  const spec = ladderSpec(tiers, { seed: 86, maxSteps: 3 });
  const first = await (await runs.start('counted', spec)).result();
  const [near, exact] = [(await computed('near')).length, (await computed('exact')).length];
  const again = await (await runs.start('counted-again', spec)).result();
  expect(again.checkpoint.weights).toBe(first.checkpoint.weights);
  expect([(await computed('near')).length, (await computed('exact')).length]).toEqual([near, exact]);
  const [one, other] = [await ladderEnd('counted'), await ladderEnd('counted-again')];
  expect(other.calibration).toEqual(one.calibration);
  const { computed: made, shared } = one.totals['near']!;
  expect(made + shared).toBe(5);
  // The ledger says that all of them came from the store.
  expect(other.totals['near']).toMatchObject({ computed: 0, shared: 5, usd: 0 });
  const decided = async (run: string) =>
    (await ledger(run)).flatMap((entry) =>
      entry.kind === 'decision' ? [[entry.candidate, entry.decision, entry.verifier]] : [],
    );
  expect(await decided('counted-again')).toEqual(await decided('counted'));
});

test('a spent budget defers candidates to the archive, and training goes on with the cheaper verdict', async () => {
  const { runs, computed, ladderEnd, ledger, store } = installation;
  const before = (await computed('near')).length;
  const spec = ladderSpec([{ ...NEAR, budget: { count: 3 } }, EXACT], { seed: 77 });
  expect((await (await runs.start('poor', spec)).result()).end).toEqual(DONE);
  const totals = addEntries({}, await ledger('poor'));
  expect(totals['near']!.computed + totals['near']!.shared).toBe(3);
  expect((await computed('near')).length - before).toBe(totals['near']!.computed);
  expect(totals['near']!.deferred).toBeGreaterThan(0);
  // The first page was valued before anything was known of the tier; a reader gets what is known now.
  const [page] = await store.list('runs/poor/archive/');
  const first = (await store.getJson((await store.head(page!.key))!)) as unknown as WantedVerdict[];
  const archive = await readArchive(store, 'poor');
  const { calibration } = await ladderEnd('poor');
  // Other runs may have asked for some of the same.
  expect(calibration['is-number → near']!.n).toBeGreaterThanOrEqual(3);
  const known = archive.filter(({ ask }) =>
    first.some((one) => one.ask.request.digest === ask.request.digest),
  );
  expect(known).toHaveLength(first.length);
  for (const { ask, value, basis } of known) {
    const was = first.find((one) => one.ask.request.digest === ask.request.digest)!;
    expect(value).toBe(predict(calibration['is-number → near']!, basis!.score).mean);
    expect(value).not.toBe(was.value);
  }
});

test('a verifier that takes more than it declared passes its budget by no more than what was in flight', async () => {
  const { runs, computed, ladderEnd, ledger } = installation;
  // US$ 1 declared, 3 taken: of four that were planned the second is the last one that the budget still promises.
  const greedy = { verifier: 'greedy', passAtLeast: 0, budget: { usd: 4 }, concurrency: 1 };
  const spec = ladderSpec([greedy], { seed: 82, maxSteps: 1 });
  expect((await (await runs.start('greedy', spec)).result()).end).toEqual(DONE);
  const { budgets, totals, waiting } = await ladderEnd('greedy');
  expect(await computed('greedy')).toHaveLength(2);
  expect(budgets['greedy']!.account).toMatchObject({ count: 2, usd: 6, reserved: { count: 0, usd: 0 } });
  expect(totals['greedy']).toMatchObject({ computed: 2, usd: 6 });
  expect(waiting).toBe(0);
  expect((await ledger('greedy')).filter(({ kind }) => kind === 'withdrawn')).toHaveLength(2);
});

test('a tier whose worker is down delays only itself', async () => {
  const { runs, computed, ladderEnd, workers, status } = installation;
  const before = (await computed('exact')).length;
  process.kill(workers.pid('high-fidelity')!, 'SIGSTOP');
  const spec = ladderSpec(
    [
      { ...NEAR, passAtLeast: 0 },
      { ...EXACT, wait: false },
    ],
    { seed: 81 },
  );
  expect((await (await runs.start('lame', spec)).result()).end).toEqual(DONE);
  const meanwhile = await until(
    async () => (await status('lame')) ?? undefined,
    300_000,
    () => 'the ladder does not answer',
  );
  expect(meanwhile.totals['near']!.computed).toBeGreaterThan(0);
  expect(meanwhile.waiting).toBeGreaterThan(0);
  expect(await computed('exact')).toHaveLength(before);
  await killAndReplace(workers, 'high-fidelity');
  const final = await ladderEnd('lame');
  expect(final.totals['exact']).toMatchObject({
    computed: meanwhile.waiting,
    late: 0,
    afterRun: meanwhile.waiting,
  });
  expect((await computed('exact')).length - before).toBe(meanwhile.waiting);
});

test('what a tier does not say before its deadline is pending, is not trained on, and is when it has been said', async () => {
  const { runs, hold, startPaused, store, ledger, status } = installation;
  // Only tasks with a large answer have something to wait for.
  const large = { verifier: 'large', passAtLeast: 0.5, deadlineSeconds: 1, missing: 'pending' as const };
  const spec = ladderSpec([large], { seed: 83, offer: 4 });
  const release = await hold('large');
  const { handle: run, shown } = await startPaused('pending', spec);
  const { step } = shown;

  const outcomes = async (kind: string): Promise<{ large: boolean; outcome: string }[]> => {
    const refs = await Promise.all(
      (await store.list('runs/pending/rollouts/rl/000001/')).map(({ key }) => store.head(key)),
    );
    const groups = refs.flatMap((ref) => (ref?.key.includes(kind) ? [loadTrajectories(store, ref)] : []));
    return (await Promise.all(groups)).flatMap(({ episodes, tasks }) =>
      episodes.map((episode) => ({
        large: isLarge(calculatorWithLadder.task(tasks[episode.task]!.ref)),
        outcome: episode.outcome!.kind,
      })),
    );
  };
  const settled = await outcomes('.judged.');
  const pending = settled.filter(({ outcome }) => outcome === 'pending');
  expect(pending.length).toBeGreaterThan(0);
  expect(pending.length).toBeLessThan(settled.length);
  expect(pending).toEqual(settled.filter((episode) => episode.large));
  expect(step!.outcomes.pending).toBe(pending.length);
  const [trials] = Object.values(step!.estimates).map((arm) => arm.trials);
  expect(trials).toBe(settled.length - pending.length);

  await release();
  await until(
    async () => (await status('pending'))?.waiting === 0 || undefined,
    300_000,
    () => 'the verdicts did not come',
  );
  await run.signal('resume');
  expect((await run.result()).end).toEqual(DONE);
  const offered = (await ledger('pending')).filter((entry) => entry.kind === 'offered');
  expect(offered.every(({ step: at, fromStep }) => at === 2 && fromStep === 1)).toBe(true);
  expect(offered.reduce((sum, { episodes }) => sum + episodes, 0)).toBe(pending.length);
  // What was pending had moved no estimate; its verdict does, in the step that hears of it.
  const { step: last } = await runs.progress(run, (now) => isDone(now.status));
  const [moved] = Object.values(last!.estimates).map((arm) => arm.trials);
  const freshTrials = settled.length - last!.outcomes.pending;
  expect(moved).toBeCloseTo(0.9 * (trials! + pending.length) + freshTrials, 9);
  expect((await outcomes('.late-')).filter(({ outcome }) => outcome === 'pending')).toEqual([]);
});

test('lost attempts are in the ledger, and an abstention that says nothing of the subject is asked about again by the next run', async () => {
  const { runs, computed, ladderEnd, ledger, store } = installation;
  const tiers = [
    { verifier: 'frail', passAtLeast: 0 },
    // By the default nobody could be judged, and a person would be asked.
    { verifier: 'crashing', passAtLeast: 0.5, abstains: 'expected' as const },
  ];
  const spec = ladderSpec(tiers, { seed: 84, offer: 2, groupsPerStep: 2 });
  const result = await (await runs.start('frail', spec)).result();
  expect(result.end).toEqual(DONE);
  const { totals } = await ladderEnd('frail');
  const lost = (await ledger('frail')).filter((entry) => entry.kind === 'lost');
  const frail = await computed('frail');
  expect(lost).toHaveLength(frail.length);
  for (const { attempts, seconds, reason, verifier } of lost) {
    expect({ attempts, reason, verifier }).toEqual({
      attempts: 2,
      reason: expect.stringContaining('attempt 2 came to nothing') as string,
      verifier: 'frail',
    });
    // Temporal waits 0.2 s, and then 0.4 s, before it tries again.
    expect(seconds).toBeGreaterThan(0.5);
  }
  expect(totals['frail']).toMatchObject({ computed: frail.length, lost: 2 * frail.length });

  const crashed = await computed('crashing');
  const subjects = new Set(crashed.map(({ subject }) => JSON.stringify(subject)));
  // Once in a run, though the second step sees the candidates of the first again.
  expect(subjects.size).toBe(crashed.length);
  expect(crashed).toHaveLength(frail.length);
  expect(totals['crashing']).toMatchObject({ abstained: crashed.length, computed: crashed.length });
  expect(verdictsIn(await ledger('frail')).filter(({ type }) => type === 'crashed')).toHaveLength(
    crashed.length,
  );
  expect(await store.list('verdicts/crashing/')).toEqual([]);

  const again = await (await runs.start('frail-again', spec)).result();
  expect(again.checkpoint.weights).toBe(result.checkpoint.weights);
  expect(await computed('frail')).toHaveLength(frail.length);
  expect(await computed('crashing')).toHaveLength(2 * crashed.length);
});
