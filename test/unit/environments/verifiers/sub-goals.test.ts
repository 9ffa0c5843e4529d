import { expect, test } from 'vitest';
import type { Action, ToolCall } from '../../../../core/episode/episode.ts';
import { callsThenAnswer, subGoals } from '../../../../environments/verifiers/sub-goals.ts';
import { bad, call, candidateOf, judged, says } from './candidates.ts';

const verifier = subGoals({
  version: '1',
  goals: (task) => callsThenAnswer(task, (answer, expected) => answer === expected),
});
const task = {
  answer: '19',
  calls: [
    { name: 'f', arguments: { x: 1, y: 2 } },
    { name: 'g', arguments: {} },
  ],
};
const first = call('f', { y: 2, x: 1 });
const second = call('g', {});
const together = (calls: ToolCall[]): Action => ({ kind: 'calls', calls });

test.each([
  ['the whole way', [first, second, says('19')], 1, [1, 1, 1]],
  ['a detour', [first, bad, call('g', { z: 1 }), second, says('19')], 1, [1, 0, 0, 1, 1]],
  ['going in circles', [first, first, first], 1 / 3, [1, 0, 0]],
  ['the second before the first', [second, first], 1 / 3, [0, 1]],
  ['the answer alone', [says('19')], 0, [0]],
  ['a wrong answer', [first, second, says('18')], 2 / 3, [1, 1, 0]],
  ['both in one turn', [together(task.calls), says('19')], 1, [1, 1]],
  ['one turn the wrong way round', [together(task.calls.toReversed()), says('19')], 1 / 3, [1, 0]],
  ['nothing', [], 0, []],
])('%s is scored step by step', async (_, actions, score, steps) => {
  expect(await judged(verifier, candidateOf(task, actions))).toMatchObject({ score, steps });
});

test('what names no sub-goals is abstained from', async () => {
  const { signal } = new AbortController();
  expect(await verifier.verify(candidateOf({}, [first]), { signal })).toMatchObject({ kind: 'abstain' });
});
