import { afterAll, beforeAll, expect, test } from 'vitest';
import { readArchive } from '../../../activities/archive.ts';
import { createLadder } from '../../../activities/ladder.ts';
import type { ObjectStore } from '../../../activities/store/object-store.ts';
import { keepVerdict } from '../../../activities/verdict-cache.ts';
import { readLedger } from '../../../activities/store/ledger.ts';
import { keepTrajectories } from '../../../activities/store/trajectories.ts';
import type { Episode } from '../../../core/episode.ts';
import { emptyAccount, reserve } from '../../../core/ladder/budget.ts';
import type { Budget } from '../../../core/ladder/budget.ts';
import { noCalibration } from '../../../core/ladder/calibration.ts';
import { LADDER } from '../../../core/ladder/requests.ts';
import type { PlanRequest, PlanResult } from '../../../core/ladder/requests.ts';
import type { RungSpec, VerificationSpec } from '../../../core/spec.ts';
import calculatorWithLadder from '../../support/ladder-calculator.ts';
import { TestServer } from '../store/server.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';

// More candidates than one plan may ask about, on a real store: five answers to a task, two asks a plan.

let server: TestServer;
let store: ObjectStore;
beforeAll(async () => {
  server = await TestServer.start();
  store = await server.connect();
});
afterAll(async () => {
  store?.close();
  await server?.remove();
});

const ANSWERS = [1, 2, 3, 4, 5];
const rung = (verifier: string, tier: RungSpec['tier']): RungSpec => ({
  verifier,
  tier,
  passAtLeast: 0,
  escalate: { valueAtLeast: 1, uncertaintyAtLeast: 1 },
  wait: true,
  deadlineSeconds: 60,
  missing: 'cheaper',
  abstains: 'zero',
  budget: {},
  concurrency: 4,
  reviewers: 1,
});

/** All plans of a rung, as the workflow makes them. */
async function planAll(
  run: string,
  budget: Budget,
  counts: VerificationSpec['counts'] = 'verdicts',
): Promise<PlanResult[]> {
  const ladder = createLadder(
    { store, environments: inThisProcess([calculatorWithLadder]) },
    { mostAsks: 2 },
  );
  const ref = { environment: calculatorWithLadder.name, split: 'train' as const, level: 1, index: 0 };
  const component = { verifier: LADDER, version: 'is-number@1', score: 0.6, contribution: 0.6 };
  const group = {
    id: 'group-0',
    weights: '0',
    temperature: 1,
    tasks: [{ ref, prompt: '', promptTokens: [1] }],
    episodes: ANSWERS.map((answer, sample): Episode => ({
      sample,
      task: 0,
      tokens: [2],
      mask: [1],
      logprobs: [-1],
      turns: [],
      status: { kind: 'answered', answer: String(answer) },
      outcome: { kind: 'scored', reward: 0.6, components: [component] },
    })),
  };
  const groups = [(await keepTrajectories(store, { run, stage: 'rl', step: 1 }, group)).ref];
  const rungs = [rung('is-number', 'fast'), rung('near', 'simulation')];
  let request: PlanRequest = {
    run,
    verification: { rungs, offerLateFor: 0, evaluateBy: 'is-number', counts },
    calibrations: [noCalibration()],
    steps: [{ stage: 'rl', step: 1, groups }],
    came: [[], []],
    ledger: { writer: 'run', sequence: 1 },
    rung: 1,
    again: false,
    budget,
    account: emptyAccount(),
    underWay: [],
  };
  const plans: PlanResult[] = [];
  for (;;) {
    const signal = new AbortController().signal;
    const plan = await ladder.planClimb(request, signal);
    // Another attempt at it plans and writes the same.
    expect(await ladder.planClimb(request, signal)).toEqual(plan);
    plans.push(plan);
    if (!plan.more) return plans;
    request = {
      ...request,
      again: true,
      account: plan.costs.reduce(reserve, request.account),
      underWay: [...request.underWay, ...plan.digests],
      ledger: { writer: 'run', sequence: request.ledger.sequence + 1 },
    };
  }
}

const decisions = async (run: string): Promise<string[]> =>
  (await readLedger(store, run)).flatMap((entry) => (entry.kind === 'decision' ? [entry.decision] : []));

test('what one plan has no place for the next one asks, and each candidate is decided about once', async () => {
  const plans = await planAll('crowded', {});
  expect(plans.map(({ digests }) => digests.length)).toEqual([2, 2, 1]);
  expect(new Set(plans.flatMap(({ digests }) => digests)).size).toBe(ANSWERS.length);
  expect(await decisions('crowded')).toEqual(ANSWERS.map(() => 'escalate'));
  expect(await readArchive(store, 'crowded')).toEqual([]);
});

test('what the budget has no room for is deferred by the last plan only', async () => {
  const plans = await planAll('crowded-and-poor', { count: 3 });
  expect(plans.map(({ digests }) => digests.length)).toEqual([2, 1]);
  const decided = await decisions('crowded-and-poor');
  expect(decided.toSorted()).toEqual(['defer', 'defer', 'escalate', 'escalate', 'escalate']);
  const asked = new Set(plans.flatMap(({ digests }) => digests));
  const archive = await readArchive(store, 'crowded-and-poor');
  expect(archive).toHaveLength(2);
  expect(archive.some(({ ask }) => asked.has(ask.request.digest))).toBe(false);
});

test('a budget that counts verdicts asks for the same, whatever others have computed', async () => {
  const asks = (plans: PlanResult[]) => plans.flatMap(({ digests }) => digests);
  const first = asks(await planAll('first', { count: 3 }));
  for (const digest of first) {
    const asked = { verifier: 'near', version: '1', digest };
    const spent = { seconds: 0, usd: 0 };
    await keepVerdict(store, asked, {
      format: 'gradus.verdict/1',
      ...asked,
      spent,
      kind: 'scored',
      score: 0.5,
    });
  }
  expect(asks(await planAll('second', { count: 3 }))).toEqual(first);
  // Where computations count, what is known is free, and the budget goes to the others.
  const others = asks(await planAll('free', { count: 3 }, 'computations'));
  expect(others).toHaveLength(ANSWERS.length - first.length);
  expect(others.some((digest) => first.includes(digest))).toBe(false);
});
