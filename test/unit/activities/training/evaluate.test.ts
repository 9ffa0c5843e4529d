import { expect, test } from 'vitest';
import { expectedVerdicts } from '../../../../activities/training/evaluate.ts';
import { inThisProcess } from '../../../../environments/host/hosted-environment.ts';
import { parseEvaluate } from '../../../../spec/parse-evaluate.ts';
import ladder from '../../../support/ladder-calculator.ts';

const environments = inThisProcess([ladder]);

/** Three answers, of which each verdict is declared to cost 0.01 US$ and 0.01 s. */
const expected = (budget: object) => {
  const rungs = [
    { verifier: 'is-number', passAtLeast: 0.5 },
    { verifier: 'near', passAtLeast: 0.5, budget },
  ];
  const tasks = [{ environment: ladder.name, levels: [1] }];
  const written = { checkpoint: 'base', tasks, count: 3, verification: { rungs, evaluateBy: 'near' } };
  return expectedVerdicts(parseEvaluate(written, 'named', null, environments), environments)!;
};

test('a budget holds what comes to it exactly, though sums of doubles are a hair above it', () => {
  const { usd, seconds, count } = expected({});
  expect(usd).toBeCloseTo(0.03, 12);
  expect(count).toBe(3);
  expect(() => expected({ usd: usd * (1 - 1e-12), seconds: seconds * (1 - 1e-12), count: 3 })).not.toThrow();
  for (const less of [{ usd: 0.0299 }, { seconds: seconds * 0.99 }, { count: 2 }, { perStep: 2 }])
    expect(() => expected(less)).toThrow('lower count or samples, or raise the budget');
});
