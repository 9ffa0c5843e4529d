import { expect, test } from 'vitest';
import type { LedgerEntry } from '../../../../core/ladder/ledger.ts';
import { PairBook } from '../../../../runs/ladder/pairs.ts';

type Decision = Extract<LedgerEntry, { kind: 'decision' }>;
const NAMES = ['fast', 'near', 'exact'];

const decision = (candidate: string, tier: number | null, score = 0, digest = candidate): Decision => ({
  kind: 'decision',
  stage: 'rl',
  step: 1,
  candidate,
  verifier: 'near',
  decision: 'escalate',
  basis: tier === null ? null : { rung: tier, verifier: NAMES[tier]!, score },
  value: 0,
  uncertainty: 0,
  reason: '',
  digest,
});

function pairsOf(...decisions: Decision[]) {
  const book = new PairBook();
  for (const one of decisions) book.add(one);
  return book.all();
}

test('a candidate that two neighbours have judged is a point, for each pair of them', () => {
  expect(pairsOf(decision('a', 0, 0.6), decision('a', 1, 0.3), decision('a', 2, 1))).toEqual([
    { from: 'fast', to: 'near', count: 1, points: [{ cheap: 0.6, dear: 0.3 }] },
    { from: 'near', to: 'exact', count: 1, points: [{ cheap: 0.3, dear: 1 }] },
  ]);
});

test('what nobody judged between, or what was planned twice, is none', () => {
  expect(pairsOf(decision('a', 0, 0.6), decision('a', 0, 0.6), decision('a', 2, 1))).toEqual([]);
  expect(pairsOf(decision('a', null), decision('a', 1, 1))).toEqual([]);
});

test('the same answer to the same task is one point, whoever gave it', () => {
  const of = (candidate: string) => [decision(candidate, 0, 0.6, 'd'), decision(candidate, 1, 0.3, 'd')];
  expect(pairsOf(...of('a'), ...of('b'))).toMatchObject([{ count: 1 }]);
});

test('of many points the newest are kept, and all are counted', () => {
  const many = Array.from({ length: 5000 }, (_, i) => [
    decision(`c${i}`, 0, i / 5000),
    decision(`c${i}`, 1, 0.5),
  ]).flat();
  const [pair] = pairsOf(...many);
  expect(pair!.count).toBe(5000);
  expect(pair!.points).toHaveLength(2000);
  expect(pair!.points.at(-1)!.cheap).toBe(4999 / 5000);
});
