import { describe, expect, test } from 'vitest';
import {
  normalizeSquad,
  researchReward,
  squadExactMatch,
  squadF1,
  squadF1Of,
} from '../../../../environments/verifiers/squad.ts';
import { bad, candidateOf, judged, says } from './candidates.ts';

test.each([
  ['The  Beatles!', 'beatles'],
  ['a cat, an owl and the dog', 'cat owl and dog'],
  ["world's end", 'worlds end'],
  ['theatre', 'theatre'],
  ['U.S.A.', 'usa'],
  ['the', ''],
  ['Bahía', 'bahía'],
  ['the île à an café', 'île à café'],
  // As the original: only ASCII punctuation goes.
  ['Zürich – “Altstadt”', 'zürich – “altstadt”'],
])('%j is %j by the rules of SQuAD', (text, normalized) => {
  expect(normalizeSquad(text)).toBe(normalized);
});

test.each([
  ['hound', 'hound', 1],
  ['a hunting dog', 'dog', 2 / 3],
  ['dog dog', 'dog', 2 / 3],
  ['cat', 'dog', 0],
  ['the', 'a', 0],
])('F1 of %j for %j', (given, wanted, f1) => {
  expect(squadF1Of(given, wanted)).toBeCloseTo(f1, 12);
});

describe('the verifiers', () => {
  const either = squadExactMatch(() => ['grain', 'food grain']);
  test('any of several answers is right', async () => {
    const scores = await Promise.all(
      ['Grain.', 'the food grain', 'food', 'grain food'].map((answer) =>
        judged(either, candidateOf({}, [says(answer)])),
      ),
    );
    expect(scores.map(({ score }) => score)).toEqual([1, 1, 0, 0]);
  });

  test('F1 takes the best of several, and no answer is worth nothing', async () => {
    const f1 = squadF1(() => ['grain', 'food grain']);
    expect((await judged(f1, candidateOf({}, [says('food')]))).score).toBeCloseTo(2 / 3, 12);
    expect((await judged(f1, candidateOf({}, []))).score).toBe(0);
  });

  test('ReSearch pays a wrong answer for its form, and nothing without one', async () => {
    const paid = async (...actions: Parameters<typeof candidateOf>[1]) =>
      (
        await judged(
          researchReward(() => ['food grain']),
          candidateOf({}, actions),
        )
      ).score;
    expect(await paid(says('the food grain'))).toBe(1);
    expect(await paid(says('food'))).toBeCloseTo(2 / 3, 12);
    expect(await paid(says('dog'))).toBe(0.1);
    expect(await paid(bad, says('dog'))).toBe(0);
    expect(await paid(bad, says('food grain'))).toBe(0);
    expect(await paid()).toBe(0);
  });

  test('a task without an expected answer is not judged', async () => {
    const verdict = await squadExactMatch().verify(candidateOf({}, [says('x')]), {
      signal: new AbortController().signal,
    });
    expect(verdict.kind).toBe('abstain');
  });
});
