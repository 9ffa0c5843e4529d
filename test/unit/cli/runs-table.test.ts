import { expect, test } from 'vitest';
import { howLong } from '../../../core/time/how-long.ts';
import { runsTable } from '../../../cli/runs-table.ts';
import { shortened } from '../../../cli/shortened.ts';

test.each([
  [999, '0 s'],
  [59_999, '59 s'],
  [60_000, '1 min'],
  [7_300_000, '2 h'],
  [9e9, '104 d'],
  [-5, '0 s'],
])('%i ms are %s', (ms, text) => expect(howLong(ms)).toBe(text));

test('a text is cut between characters, and is one line', () => {
  expect(shortened('a\n b', 3)).toBe('a b');
  expect(shortened('abcd', 3)).toBe('ab…');
  expect(shortened('a\u{1f600}bc', 3)).toBe('a…');
});

test('a line a run, with what is strange in names and questions made visible', () => {
  const table = runsTable(
    [
      {
        run: 'my-run.2',
        workflowId: 'my-run\u001b[31m',
        status: 'waiting',
        from: 'progress',
        stage: 'rl',
        step: 12,
        stageStep: 2,
        maxSteps: 10,
        heldOut: { success: 0.5, low: 0.4, high: 0.6, successes: 5, trials: 10, confidence: 0.95 },
        question: { id: 'q', asker: 'a', reason: 'what\u202enow\nthen', answers: [] },
        concerns: [],
        retrying: 0,
        startedAt: 0,
        endedAt: null,
        spend: { seconds: 3, usd: 0.25, openSeconds: 0 },
      },
    ],
    120_000,
  );
  expect(table.split('\n')).toHaveLength(2);
  expect(table).toContain('my-run.2 (my-run\\u001b[31m)');
  expect(table).toContain('what\\u202enow then');
  for (const cell of ['2/10', '50.0 % [40.0, 60.0]', '2 min', '3 s, US$ 0.25']) {
    expect(table).toContain(cell);
  }
});

test('a run that completed with an alarm or below its goal is not said to have completed alone', () => {
  const row = {
    run: 'web-shop',
    workflowId: 'web-shop',
    status: 'completed',
    from: 'store',
    stage: 'rl',
    step: 12,
    stageStep: 12,
    maxSteps: 12,
    heldOut: null,
    question: null,
    concerns: [
      { kind: 'alarm', name: 'no-contrast', stage: 'rl' },
      { kind: 'below-goal', stage: 'rl', success: 0.02, high: 0.05, goal: 0.9 },
    ],
    retrying: null,
    startedAt: 0,
    endedAt: 1,
    spend: null,
  } as const;
  expect(runsTable([{ ...row, concerns: [...row.concerns] }], 2)).toContain(
    'completed, no-contrast, low success',
  );
});
