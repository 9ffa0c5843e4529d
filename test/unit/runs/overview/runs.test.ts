import { expect, test } from 'vitest';
import { wilson } from '../../../../core/statistics/intervals.ts';
import { readExecution } from '../../../../runs/temporal/executions.ts';
import { byFacts, runsInOrder, runStatusOf, reportedBy } from '../../../../runs/overview/runs.ts';
import type { RunRow, RunStatus } from '../../../../runs/overview/runs.ts';
import { someStep } from '../../../support/some-step.ts';
import type { Progress } from '../../../../workflows/control/messages.ts';

const row = (run: string, status: RunStatus, more: Partial<RunRow> = {}): RunRow => ({
  run,
  workflowId: run,
  status,
  from: 'visibility',
  stage: null,
  step: null,
  stageStep: null,
  maxSteps: null,
  heldOut: null,
  question: null,
  concerns: [],
  retrying: null,
  startedAt: 0,
  endedAt: null,
  spend: null,
  ...more,
});

test('who waits for a person comes first, then what goes on, then what is over, the newest first', () => {
  const rows = [
    row('model', 'imported', { startedAt: null }),
    row('lost', 'forgotten', { startedAt: null }),
    row('old', 'completed', { endedAt: 5 }),
    row('newer', 'failed', { endedAt: 7 }),
    row('going', 'running', { startedAt: 1 }),
    row('paused', 'paused', { startedAt: 2 }),
    row('asks', 'waiting', { startedAt: 0 }),
  ];
  expect(runsInOrder(rows).map(({ run }) => run)).toEqual([
    'asks',
    'paused',
    'going',
    'newer',
    'old',
    'lost',
    'model',
  ]);
});

const json = (text: string) => ({
  metadata: { encoding: Buffer.from('json/plain') },
  data: Buffer.from(text),
});

const execution = (status: number, text?: string, run?: string) => {
  const indexedFields = {
    ...(text !== undefined && { GradusStatus: json(JSON.stringify(text)) }),
    ...(run !== undefined && { GradusRun: json(JSON.stringify(run)) }),
  };
  const searchAttributes = text === undefined && run === undefined ? null : { indexedFields };
  return readExecution({ execution: { workflowId: 'run', runId: 'id' }, status, searchAttributes });
};

test.each([
  [1, undefined, 'running'],
  [1, 'waiting', 'waiting'],
  // What no run says of itself is not repeated.
  [1, '<script>', 'running'],
  [2, 'no-success', 'no-success'],
  [2, 'running', 'completed'],
  // Temporal knows it better: it had no time to say so.
  [5, 'running', 'terminated'],
  [7, 'waiting', 'timed-out'],
] as const)('an execution of status %i that said %s is %s', (code, said, status) => {
  expect(runStatusOf(execution(code, said))).toBe(status);
});

test('a run that failed before it had a name was refused: it is no run that broke', () => {
  expect(runStatusOf(execution(3, 'running'))).toBe('refused');
  expect(runStatusOf(execution(3))).toBe('refused');
  expect(runStatusOf(execution(3, 'running', 'calculator'))).toBe('failed');
});

test('attributes that cannot be read are left out, and hide no others', () => {
  const indexedFields = { GradusRun: json('"a"'), GradusStep: json('{'), X: {} };
  const raw = { execution: { workflowId: 'run', runId: 'id' }, searchAttributes: { indexedFields } };
  expect(readExecution(raw as never).attributes).toEqual({ GradusRun: 'a' });
});

test('held-out success of which nothing could be judged is not known, and its interval is the one that pages have', () => {
  const told = (successes: number, trials: number) =>
    reportedBy({
      status: 'running',
      phase: 'rl',
      question: null,
      step: null,
      retrying: [],
      heldOut: { arms: [{ arm: { environment: 'a', level: 1 }, successes, trials }], step: 1 },
    } as unknown as Progress).heldOut;
  expect(told(0, 0)).toBeNull();
  expect(told(8, 10)).toEqual({
    successes: 8,
    trials: 10,
    success: 0.8,
    confidence: 0.95,
    ...wilson({ successes: 8, trials: 10 }, 0.95),
  });
});

test('a run that has come to its end is listed by its last step, and one that failed by what it was at', () => {
  const last = { step: someStep({ stage: 'rl', stageStep: 12, maxSteps: 12, step: 18 }), heldOut: null };
  const ended = row('ended', 'completed', { stage: 'report', step: 18, endedAt: 5 });
  expect(byFacts(ended, last, null)).toMatchObject({ stage: 'rl', step: 18, stageStep: 12, maxSteps: 12 });
  const failed = byFacts({ ...ended, status: 'failed' }, last, null);
  expect(failed).toMatchObject({ stage: 'report', step: 18 });
  expect(failed.stageStep).toBeUndefined();
});
