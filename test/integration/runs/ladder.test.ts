import { createHash } from 'node:crypto';
import { Client, Connection } from '@temporalio/client';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { addPairs, noCalibration, predict } from '../../../core/ladder/calibration.ts';
import { addEntries } from '../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../core/ladder/ledger.ts';
import type { WantedVerdict } from '../../../core/ladder/requests.ts';
import { candidateAt, ladderAt, reviewAt } from '../../../dashboard/address.ts';
import { createApp } from '../../../dashboard/app.tsx';
import { candidateLife } from '../../../runs/ladder/candidate.ts';
import { LadderObserver } from '../../../runs/ladder/ladder.ts';
import { Presenter } from '../../../runs/ladder/presenter.ts';
import { ReplayJobs } from '../../../runs/replay/jobs.ts';
import { spentInLedger } from '../../../runs/overview/spend.ts';
import { archiveKey, asksKey, calibrationKey, ledgerKey, runKey, verdictKey } from '../../../store/keys.ts';
import { calibrationLists, verdicts, wishes } from '../../../store/ladder/ladder-codecs.ts';
import { putChange } from '../../../store/run/changes.ts';
import { appendLedger } from '../../../store/ladder/ledger.ts';
import { runClaims } from '../../../store/run/run-claim.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';
import { openTestStore } from '../../support/test-store.ts';

const { store } = await openTestStore();
// Nobody listens there: what is known is from the store alone.
const temporal = new Client({ connection: Connection.lazy({ address: '127.0.0.1:1' }) });
afterAll(() => temporal.connection.close());
const observer = new LadderObserver({ store, temporal });

const digestOf = (text: string): string => createHash('sha256').update(text).digest('hex');
const [NEAR, EXACT, POOR] = ['near', 'exact', 'poor'].map(digestOf) as [string, string, string];
const CANDIDATE = 'rl/1/group-0002/0/3';

const decision = (
  over: Partial<Extract<LedgerEntry, { kind: 'decision' }>>,
): Extract<LedgerEntry, { kind: 'decision' }> => ({
  kind: 'decision',
  stage: 'rl',
  step: 1,
  candidate: CANDIDATE,
  verifier: 'near',
  decision: 'escalate',
  basis: { rung: 0, verifier: 'is-number', score: 0.6 },
  value: 0.6,
  uncertainty: 0.3,
  reason: 'is-number passed it with 0.6',
  digest: NEAR,
  ...over,
});
const verdict = (verifier: string, digest: string, late = false): LedgerEntry => ({
  kind: 'verdict',
  stage: 'rl',
  verifier,
  version: '1',
  digest,
  result: 'scored',
  spent: { seconds: 2, usd: 0.5 },
  late,
});
const wish = (verifier: string, digest: string, score: number): WantedVerdict => ({
  ask: {
    request: { format: 'gradus.verify/1', verifier, version: '1', digest, subject: { of: verifier } },
    environment: 'calculator-ladder',
    cost: { seconds: 1, usd: 1 },
    limits: { timeoutSeconds: 1, heartbeatSeconds: 1, maxAttempts: 1 },
    served: { by: 'queue', queue: 'q' },
  },
  value: score,
  basis: { rung: 0, score },
});
const tierSpec = (verifier: string, tier: string, budget = {}) => ({
  verifier,
  tier,
  passAtLeast: 0.5,
  budget,
});
const claim = (run: string, verification?: object) => ({
  spec: {
    run,
    ...(verification && { verification }),
    stages: [{ name: 'rl', budgets: { exact: { count: 7 } } }],
  },
});

const line = addPairs(noCalibration(), [{ cheap: 0.6, dear: 0.9, cheapPassed: true, dearPassed: true }]);

beforeAll(async () => {
  const verification = {
    counts: 'verdicts',
    rungs: [
      tierSpec('is-number', 'fast'),
      tierSpec('near', 'simulation', { seconds: 60 }),
      tierSpec('exact', 'high-fidelity'),
    ],
  };
  await store.putIfAbsent(runKey('climbs'), runClaims, claim('climbs', verification) as never);
  const page = (sequence: number, entries: LedgerEntry[]) =>
    appendLedger(store, 'climbs', { writer: 'run', sequence }, entries);
  await page(1, [
    decision({}),
    decision({ candidate: 'rl/1/group-0002/0/4', decision: 'defer', digest: POOR }),
  ]);
  await store.putIfAbsent(asksKey('climbs', 'run', 1), wishes, [wish('near', NEAR, 0.6)]);
  await store.putIfAbsent(archiveKey('climbs', 'run', 1), wishes, [
    wish('near', POOR, 0.2),
    wish('near', NEAR, 0.6),
  ]);
  await page(2, [verdict('near', NEAR)]);
  await store.putIfAbsent(calibrationKey('climbs', 'run', 3), calibrationLists, [line, noCalibration()]);
  await page(3, [
    decision({ verifier: 'exact', digest: EXACT, basis: { rung: 1, verifier: 'near', score: 0.9 } }),
  ]);
  await store.putIfAbsent(asksKey('climbs', 'run', 3), wishes, [wish('exact', EXACT, 0.9)]);
  await page(4, [
    decision({ decision: 'accept', basis: { rung: 1, verifier: 'near', score: 0.9 }, value: 0.9 }),
  ]);
  await page(5, [
    {
      kind: 'lost',
      stage: 'rl',
      verifier: 'exact',
      version: '1',
      digest: EXACT,
      attempts: 2,
      seconds: 9,
      reason: 'gone',
    },
    verdict('exact', EXACT, true),
  ]);
  await page(6, [
    decision({
      verifier: 'exact',
      decision: 'reject',
      digest: EXACT,
      basis: { rung: 2, verifier: 'exact', score: 0 },
    }),
    { kind: 'offered', stage: 'rl', step: 2, fromStep: 1, episodes: 4 },
  ]);
  const change = { update: 'u', at: '2026-11-23T00:00:00Z', stage: 'rl', step: 1 };
  // The second was undone by a reset: the third was made on the first.
  const budgets = [{ near: { count: 9 } }, { near: { usd: 1 } }, { near: { seconds: null } }];
  for (const [i, near] of budgets.entries()) {
    const made = { ...change, update: `u${i}`, number: i + 1, after: i === 0 ? 0 : 1, budgets: near };
    await putChange(store, 'climbs', made);
  }
  const answer = { format: 'gradus.verdict/1', version: '1', spent: { seconds: 2, usd: 0.5 } } as const;
  await store.putIfAbsent(verdictKey('near', '1', NEAR), verdicts, {
    ...answer,
    verifier: 'near',
    digest: NEAR,
    kind: 'scored',
    score: 0.9,
    evidence: 'off by one',
  });
});

describe('the ladder of a run that Temporal has forgotten', () => {
  test('has its funnel, its spend and its budgets from the ledger alone, and says that promises are not known', async () => {
    const view = (await observer.look('climbs'))!;
    expect(view).toMatchObject({
      budgetsFrom: 'ledger',
      waiting: null,
      stage: 'rl',
    });
    expect(view.rungs.map(({ verifier }) => verifier)).toEqual(['is-number', 'near', 'exact']);
    // Of both candidates the lowest tier said that they should go on, and one had no room.
    expect(view.ledger.episodes).toEqual({ judged: 2, climbed: 2 });
    const [, near, exact] = view.rungs;
    expect(near).toMatchObject({
      tier: 'simulation',
      asked: 1,
      answered: 1,
      totals: { escalated: 1, deferred: 1, accepted: 1, computed: 1, seconds: 2, usd: 0.5 },
      budget: { budget: { count: 9 }, account: { count: 1, seconds: 2, reserved: { count: 0 } } },
    });
    expect(near!.budget!.budget).toEqual({ count: 9 });
    expect(exact).toMatchObject({
      totals: { late: 1, lost: 2, lostSeconds: 9, rejected: 1 },
      // The stage's own, in place of the tier's.
      budget: { budget: { count: 7 } },
    });
    expect(view.ledger.offered).toMatchObject({ count: 1, episodes: 4 });
    expect(view.ledger.late).toMatchObject({ count: 1, newest: [{ digest: EXACT }] });
  });

  test('draws what neighbours said of the same candidate, beside the line that the ladder went by', async () => {
    const [first, second] = (await observer.look('climbs'))!.calibrations;
    expect(first).toMatchObject({
      from: 'is-number',
      to: 'near',
      points: [{ cheap: 0.6, dear: 0.9 }],
      known: { n: 1 },
    });
    expect(first!.line!.intercept + 0.6 * first!.line!.slope).toBeCloseTo(predict(line, 0.6).mean, 12);
    expect(second).toMatchObject({
      from: 'near',
      to: 'exact',
      points: [{ cheap: 0.9, dear: 0 }],
      line: null,
    });
  });

  test('lists what was deferred and not heard of since, by what it is worth now', async () => {
    const { deferred } = (await observer.look('climbs'))!;
    expect(deferred).toMatchObject({ count: 1, judged: 1, best: [{ digest: POOR, verifier: 'near' }] });
    expect(deferred.best[0]!.value).toBeCloseTo(predict(line, 0.2).mean, 12);
  });

  test('has none where none was asked for, and says where there is no run', async () => {
    await store.putIfAbsent(runKey('plain'), runClaims, claim('plain') as never);
    expect(await observer.look('plain')).toBeNull();
    await expect(observer.look('climps')).rejects.toMatchObject({ type: 'no-run' });
  });
});

test('a budget counts attempts that came to nothing, as the ladder does; what others spent is beside it; and of no pass none is said to hold', async () => {
  const tiers = [tierSpec('is-number', 'fast'), tierSpec('near', 'simulation', { count: 5 })];
  for (const counts of ['computations', 'verdicts']) {
    await store.putIfAbsent(runKey(counts), runClaims, claim(counts, { counts, rungs: tiers }) as never);
    const lost = {
      ...verdict('near', POOR),
      result: 'abstained',
      type: 'lost',
      spent: { seconds: 0, usd: 0 },
    };
    await appendLedger(store, counts, { writer: 'run', sequence: 1 }, [
      verdict('near', NEAR),
      lost as LedgerEntry,
      { ...verdict('near', EXACT), spent: null } as LedgerEntry,
    ]);
    const measured = { ...verdict('near', EXACT), stage: 'rl.held-out' };
    await appendLedger(store, counts, { writer: 'evaluation-1', sequence: 1 }, [measured]);
    const failed = { cheap: 0.2, dear: 0.1, cheapPassed: false, dearPassed: false };
    await store.putIfAbsent(calibrationKey(counts, 'run', 1), calibrationLists, [
      addPairs(noCalibration(), [failed]),
    ]);
    const view = (await observer.look(counts))!;
    const spent = counts === 'verdicts' ? 3 : 2;
    expect(view.rungs[1]!.budget!.account).toMatchObject({ count: spent, seconds: 2, usd: 0.5 });
    expect(view.calibrations[0]).toMatchObject({ known: { n: 1 }, holds: null });
    expect(await spentInLedger(store, counts)).toEqual({ seconds: 4, usd: 1, openSeconds: 0 });
    expect(await spentInLedger(store, counts, { beside: true })).toEqual({
      seconds: 2,
      usd: 0.5,
      openSeconds: 0,
    });
  }
});

test("a candidate's life has each decision, price and lateness in order, on all tiers, from any of its subjects", async () => {
  const book = await observer.ledgers.of('climbs');
  for (const [verifier, digest] of [
    ['near', NEAR],
    ['exact', EXACT],
  ] as const) {
    const life = await candidateLife(store, book, 'climbs', { verifier, digest });
    expect(
      life.events.map(({ entry }) =>
        entry.kind === 'decision'
          ? entry.decision
          : `${entry.kind} ${'verifier' in entry ? entry.verifier : ''}`,
      ),
    ).toEqual([
      'escalate',
      'verdict near',
      'escalate',
      'accept',
      'lost exact',
      'verdict exact',
      'offered ',
      'reject',
    ]);
    expect(life.proposals).toMatchObject([{ stage: 'rl', step: 1, group: 2, task: 0, sample: 3 }]);
    const of = (name: string) => life.subjects.find((one) => one.verifier === name);
    expect(of('near')).toMatchObject({
      ask: { request: { subject: { of: 'near' } } },
      answer: { score: 0.9, evidence: 'off by one' },
      spent: { seconds: 2, usd: 0.5 },
      late: false,
    });
    expect(of('exact')).toMatchObject({
      ask: { environment: 'calculator-ladder' },
      answer: null,
      late: true,
    });
  }
  await expect(
    candidateLife(store, book, 'climbs', { verifier: 'near', digest: digestOf('another') }),
  ).rejects.toMatchObject({ type: 'no-candidate' });
  await expect(
    candidateLife(store, book, 'climbs', { verifier: 'near', digest: '../../run' }),
  ).rejects.toMatchObject({ type: 'no-candidate' });
});

test('pages say that Temporal is away, and show what the store has', async () => {
  const presenter = new Presenter({ modules: [] });
  const app = createApp(
    {
      sources: { store, temporal },
      temporalUi: null,
      namespace: 'default',
      actions: true,
      formToken: 'token',
      presenter,
      replays: new ReplayJobs({ env: {} }),
      secrets: [],
    },
    { hosts: new Set(['here']), password: null },
  );
  const get = async (at: string): Promise<[status: number, body: string]> => {
    const response = await app.request(`http://here${at}`, { headers: { host: 'here' } });
    return [response.status, await response.text()];
  };
  try {
    const [status, page] = await get(ladderAt('climbs'));
    expect(status).toBe(200);
    expect(page).toContain('What is promised to computations under way is not known');
    const [found, life] = await get(candidateAt('climbs', 'near', NEAR));
    expect(found).toBe(200);
    expect(life).toContain('off by one');
    expect(life).toContain('2 attempts were lost');
    expect(await get('/reviews')).toEqual([200, expect.stringContaining('Temporal does not answer')]);
    const [away, why] = await get(reviewAt(`verdict/near/1/${NEAR}`));
    expect(away).toBe(503);
    expect(why).toContain('does not answer');
    // It is asked for again by itself, without scripts; who follows the page that would be there is told why, too.
    expect(why).toContain('<meta http-equiv="refresh" content="5"');
    expect(why).toMatch(/data-live="stale"><p class="stale" role="alert">[^<]*does not answer/);
    // What was sent is not sent again: it leads back.
    const sent = await app.request(`http://here${reviewAt(`verdict/near/1/${NEAR}`)}/submit`, {
      method: 'POST',
      headers: {
        host: 'here',
        origin: 'http://here',
        referer: 'http://here/reviews/from?here',
        'content-type': 'application/x-www-form-urlencoded',
      },
      body: 'token=token&reviewer=ann&score=1',
    });
    expect(sent.status).toBe(503);
    const failed = await sent.text();
    expect(failed).not.toContain('http-equiv="refresh"');
    expect(failed).toContain('href="/reviews/from?here"');
    // What is said of a run without a ladder is no failure.
    expect(await get(ladderAt('plain'))).toEqual([
      200,
      expect.stringContaining('has no verification ladder'),
    ]);
  } finally {
    await presenter.close();
  }
});

test('a ledger of a hundred thousand entries takes some megabytes, is read once, and gives a life in a few pages', async () => {
  await store.putIfAbsent(runKey('long'), runClaims, claim('long') as never);
  const entryOf = (i: number): LedgerEntry =>
    i % 2 === 0
      ? decision({ candidate: `rl/${i >> 9}/group-0001/0/${i}`, digest: digestOf(`subject ${i >> 1}`) })
      : verdict('near', digestOf(`subject ${i >> 1}`));
  const pages = Array.from({ length: 200 }, (_, n) =>
    Array.from({ length: 500 }, (_, i) => entryOf(500 * n + i)),
  );
  for (const [n, entries] of pages.entries()) {
    await appendLedger(store, 'long', { writer: 'run', sequence: n + 1 }, entries);
  }
  const totals = addEntries({}, pages.flat());
  pages.length = 0;
  const before = await heap();
  const book = await observer.ledgers.of('long');
  expect(((await heap()) - before) / 2 ** 20).toBeLessThan(40);
  expect(book.summary().rungs['near']).toEqual({ totals: totals['near'], asked: 50_000, answered: 50_000 });
  const { events } = await candidateLife(store, book, 'long', {
    verifier: 'near',
    digest: digestOf('subject 777'),
  });
  expect(events).toHaveLength(2);
  // One that is damaged hides no other.
  await store.putIfAbsent(ledgerKey('long', 'run', 999), calibrationLists, [line]);
  await book.refresh();
  expect(book.summary().unreadable).toHaveLength(1);
  expect(book.summary().entries).toBe(100_000);
}, 600_000);

async function heap(): Promise<number> {
  await collectGarbage();
  return process.memoryUsage().heapUsed;
}
