import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkpointsToDelete } from '../../../store/training/retention.ts';
import type { RetentionCandidate, RetentionRule } from '../../../store/training/retention.ts';

const candidate = (step: number, score?: number): RetentionCandidate => ({
  step,
  ref: { manifest: { key: `c/${step}`, sha256: 'x', bytes: 1 }, weights: 'w', step },
  ...(score !== undefined && { score }),
});
const nothing: RetentionRule = { keepLast: 0, keepBest: 0, keepEvery: 0, pinned: [] };
const deleted = (all: RetentionCandidate[], rule: Partial<RetentionRule>) =>
  checkpointsToDelete(all, { ...nothing, ...rule }).map(({ step }) => step);

test('each part of the rule keeps what it says', () => {
  const all = [1, 2, 3, 4, 5, 6].map((step) => candidate(step, step === 2 ? 0.9 : 0.1 * step));
  expect(deleted(all, {})).toEqual([1, 2, 3, 4, 5]);
  expect(deleted(all, { keepLast: 3 })).toEqual([1, 2, 3]);
  expect(deleted(all, { keepBest: 2 })).toEqual([1, 3, 4, 5]);
  expect(deleted(all, { keepEvery: 2 })).toEqual([1, 3, 5]);
  expect(deleted(all, { pinned: [all[0]!.ref] })).toEqual([2, 3, 4, 5]);
  expect(deleted([], { keepLast: 1 })).toEqual([]);
});

test('what comes after where a run that was reset is now stays', () => {
  const all = [1, 2, 3, 4, 5, 6].map((step) => candidate(step));
  expect(deleted(all, { pinned: [all[2]!.ref], upTo: 3 })).toEqual([1, 2]);
  expect(deleted(all, { pinned: [all[5]!.ref], upTo: 6 })).toEqual([1, 2, 3, 4, 5]);
});

test('of equal scores the later is the best, and one without a score is never among them', () => {
  expect(
    deleted([candidate(1, 0.5), candidate(2, 0.5), candidate(3), candidate(4)], { keepBest: 1 }),
  ).toEqual([1, 3]);
});

test('a base stays as long as an adapter that needs it, and no longer', () => {
  const base = candidate(0);
  const adapters = [1, 2, 3].map((step) => ({ ...candidate(step), needs: [base.ref] }));
  expect(deleted([base, ...adapters], { keepLast: 1 })).toEqual([1, 2]);
  expect(deleted([base, ...adapters, candidate(4)], { keepLast: 1 })).toEqual([0, 1, 2, 3]);
  expect(deleted([base, ...adapters, candidate(4)], { keepLast: 1, pinned: [adapters[1]!.ref] })).toEqual([
    1, 3,
  ]);
});

test('what makes moments again stays as long as a checkpoint without them', () => {
  const [zero, one, two, three] = [0, 1, 2, 3].map((step) => candidate(step));
  const chain = [zero!, { ...one!, needs: [zero!.ref] }, { ...two!, needs: [one!.ref] }, three!];
  expect(deleted(chain, { keepLast: 1 })).toEqual([0, 1, 2]);
  expect(deleted(chain, { keepLast: 2 })).toEqual([]);
});

test('the newest is never deleted, in whatever order they come', () => {
  const steps = fc.uniqueArray(fc.nat(1000), { minLength: 1 });
  fc.assert(
    fc.property(steps, fc.nat(5), fc.nat(5), (steps, keepLast, keepBest) => {
      const gone = deleted(
        steps.map((step) => candidate(step, step % 7)),
        { keepLast, keepBest },
      );
      expect(gone).not.toContain(Math.max(...steps));
      expect(steps.length - gone.length).toBeLessThanOrEqual(Math.max(1, keepLast) + keepBest);
      expect(gone).toEqual(gone.toSorted((a, b) => a - b));
    }),
  );
});
