import { expect, test } from 'vitest';
import { readArchive } from '../../../activities/ladder/archive.ts';
import { createLadder } from '../../../activities/ladder/ladder.ts';
import { readLedger } from '../../../store/ladder/ledger.ts';
import { reserve } from '../../../core/ladder/budget.ts';
import type { Budget } from '../../../core/ladder/budget.ts';
import type { PlanRequest, PlanResult } from '../../../core/ladder/requests.ts';
import type { VerificationSpec } from '../../../core/schema/verification.ts';
import { keepNear, numbers, planRequest } from '../../support/escalating-numbers.ts';
import calculatorWithLadder from '../../support/ladder-calculator.ts';
import { inThisProcess } from '../../../environments/host/hosted-environment.ts';
import { openTestStore } from '../../support/test-store.ts';

// More candidates than one plan may ask about, on a real store: five answers to a task, two asks a plan.

const { store } = await openTestStore();

const ANSWERS = [1, 2, 3, 4, 5];
/** All plans of a tier, as the workflow makes them. */
async function planAll(
  run: string,
  budget: Budget,
  counts: VerificationSpec['counts'] = 'verdicts',
): Promise<PlanResult[]> {
  const ladder = createLadder(
    { store, environments: inThisProcess([calculatorWithLadder]) },
    { mostAsks: 2 },
  );
  const base = planRequest(run, [await numbers(store, run, ANSWERS, 0)]);
  let request: PlanRequest = { ...base, verification: { ...base.verification, counts }, budget };
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
  for (const digest of first) await keepNear(store, digest, 0.5);
  expect(asks(await planAll('second', { count: 3 }))).toEqual(first);
  // Where computations count, what is known is free, and the budget goes to the others.
  const others = asks(await planAll('free', { count: 3 }, 'computations'));
  expect(others).toHaveLength(ANSWERS.length - first.length);
  expect(others.some((digest) => first.includes(digest))).toBe(false);
});
