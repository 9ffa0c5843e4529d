import { expect, test } from 'vitest';
import { Reported, Success } from '../../../dashboard/parts/numbers.tsx';
import type { EvaluationResult } from '../../../core/requests/evaluation.ts';
import { noneSolved } from '../../../core/training/how-solved.ts';
import { wilson } from '../../../core/statistics/intervals.ts';

test('an interval is that of as many trials as there are tasks: samples of one are not independent', () => {
  const shown = (of: Parameters<typeof Success>[0]['of']): string =>
    (Success({ of }) as { toString: () => string }).toString();
  const { low, high } = wilson({ successes: 5, trials: 10 }, 0.95);
  const interval = `[${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`;
  expect(shown({ successes: 5, trials: 10 }).replaceAll(/<[^>]*>/g, '')).toBe(`50.0 % ${interval}`);
  expect(shown({ successes: 40, trials: 80, samples: 8 })).toContain(interval);
});

test('a report has the same interval on a page as in the terminal, however often it samples a task', () => {
  const report = {
    arms: [{ arm: { environment: 'calculator', level: 1 }, successes: 40, trials: 80 }],
    conduct: [{ ...noneSolved(), arm: { environment: 'calculator', level: 1 }, tries: { '4/8': 10 } }],
  } as unknown as EvaluationResult;
  const { low, high } = wilson({ successes: 5, trials: 10 }, 0.95);
  const text = (Reported({ of: report }) as { toString: () => string }).toString();
  expect(text).toContain(`[${(100 * low).toFixed(1)}, ${(100 * high).toFixed(1)}]`);
});
