import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { emptyAccount, hasRoom, overdrawn, reserve, settle } from '../../../../core/ladder/budget.ts';
import type { Budget } from '../../../../core/ladder/budget.ts';
import type { Spent } from '../../../../core/tier-contract.ts';

interface Computation {
  declared: Spent;
  taken: Spent;
}

/**
 * Plans as much as the budget promises, computes so many at a time in some order, and takes back from the end what the
 * budget no longer holds, as the ladder does. Gives what was spent, and by how much those in flight passed what was
 * reserved for them, at the worst start of one.
 */
function spend(budget: Budget, all: readonly Computation[], concurrency: number, order: readonly number[]) {
  let account = emptyAccount();
  const queue: Computation[] = [];
  for (const one of all) {
    if (!hasRoom(budget, account, one.declared)) break;
    account = reserve(account, one.declared);
    queue.push(one);
  }
  const planned = queue.length;
  const inFlight: Computation[] = [];
  const worst: Spent = { seconds: 0, usd: 0 };
  for (let turn = 0; queue.length > 0 || inFlight.length > 0; turn++) {
    while (queue.length > 0 && overdrawn(budget, account)) {
      account = settle(account, queue.pop()!.declared, null);
    }
    if (queue.length > 0 && inFlight.length < concurrency) {
      inFlight.push(queue.shift()!);
      for (const unit of ['seconds', 'usd'] as const) {
        const above = inFlight.map(({ taken, declared }) => Math.max(0, taken[unit] - declared[unit]));
        worst[unit] = Math.max(
          worst[unit],
          above.reduce((sum, one) => sum + one, 0),
        );
      }
      continue;
    }
    if (inFlight.length === 0) break;
    const [done] = inFlight.splice((order[turn % order.length] ?? 0) % inFlight.length, 1);
    account = settle(account, done!.declared, done!.taken);
  }
  return { account, planned, worst };
}

const spent = (most: number) =>
  fc.record({
    seconds: fc.double({ min: 0, max: most, noNaN: true }),
    usd: fc.double({ min: 0, max: most, noNaN: true }),
  });
const budgets = fc.record({
  count: fc.option(fc.integer({ min: 0, max: 20 }), { nil: undefined }),
  seconds: fc.option(fc.double({ min: 0, max: 30, noNaN: true }), { nil: undefined }),
  usd: fc.option(fc.double({ min: 0, max: 30, noNaN: true }), { nil: undefined }),
});
const concurrency = fc.integer({ min: 1, max: 5 });
const order = fc.array(fc.nat(100), { minLength: 1 });
const ROUNDING = 1e-6;

test('spending passes a budget by no more than what those in flight took above what was reserved for them', () => {
  const computations = fc.array(fc.record({ declared: spent(3), taken: spent(12) }), { maxLength: 40 });
  fc.assert(
    fc.property(budgets, computations, concurrency, order, (budget, all, most, some) => {
      const { account, worst } = spend(budget, all, most, some);
      expect(account.count).toBeLessThanOrEqual(budget.count ?? Infinity);
      expect(account.seconds).toBeLessThanOrEqual((budget.seconds ?? Infinity) + worst.seconds + ROUNDING);
      expect(account.usd).toBeLessThanOrEqual((budget.usd ?? Infinity) + worst.usd + ROUNDING);
    }),
  );
});

test('what takes no more than it declared never passes a budget, and everything that was planned is computed', () => {
  const computations = fc.array(
    fc
      .record({ declared: spent(3), part: fc.double({ min: 0, max: 1, noNaN: true }) })
      .map(({ declared, part }) => ({
        declared,
        taken: { seconds: declared.seconds * part, usd: declared.usd * part },
      })),
    { maxLength: 40 },
  );
  fc.assert(
    fc.property(budgets, computations, concurrency, order, (budget, all, most, some) => {
      const { account, planned } = spend(budget, all, most, some);
      expect(account.count).toBe(planned);
      expect(account.seconds).toBeLessThanOrEqual((budget.seconds ?? Infinity) + ROUNDING);
      expect(account.usd).toBeLessThanOrEqual((budget.usd ?? Infinity) + ROUNDING);
      expect(account.reserved.count).toBe(0);
    }),
  );
});

test('three times what was declared: of four that were planned two are computed', () => {
  const one = { declared: { seconds: 0, usd: 1 }, taken: { seconds: 0, usd: 3 } };
  const { account, planned } = spend({ usd: 4 }, [one, one, one, one, one], 1, [0]);
  expect(planned).toBe(4);
  expect(account).toMatchObject({ count: 2, usd: 6 });
});
