import { expect, test } from 'vitest';
import { signalsFor } from '../../../dashboard/pages/run/steer.tsx';
import type { Progress } from '../../../workflows/control/messages.ts';

test.each([
  ['running', null, ['pause']],
  ['waiting', null, ['pause']],
  ['paused', null, ['resume']],
  ['stopping', null, []],
  // It was so when the run last answered.
  ['paused', 'nobody answers', ['pause', 'resume']],
] as const)('a run that is %s (problem: %s) can be told to %j', (status, problem, signals) => {
  const value = { status } as Progress;
  expect(signalsFor({ progress: { value, asOf: 1, problem } })).toEqual(signals);
});

test('of a run that has never answered it is not known which of them does something', () => {
  expect(signalsFor({ progress: { value: null, asOf: null, problem: null } })).toEqual(['pause', 'resume']);
});
