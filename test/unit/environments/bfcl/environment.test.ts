import { expect, test } from 'vitest';
import type { ToolCall } from '../../../../core/episode/episode.ts';
import bfcl, { multiTurn } from '../../../../environments/bfcl/environment.ts';
import type { Task } from '../../../../environments/contract.ts';
import { play, tasksOf, withPackages } from '../../../support/ready-environments.ts';

const solution = async ({ ref, info }: Task): Promise<ToolCall[]> =>
  (await multiTurn.call('demonstrate', [{ ref: { ...ref }, info: info! }])) as unknown as ToolCall[];

await withPackages('bfcl', () => {
  test('the calls of its own answers score 1, and those without one of them mostly do not', async () => {
    for (const level of bfcl.levels) {
      const tasks = await tasksOf(bfcl, level, 4);
      expect(new Set(tasks.map(({ task }) => JSON.stringify(task.info))).size).toBe(tasks.length);
      let missed = 0;
      for (const { task } of tasks) {
        const calls = await solution(task);
        expect((await play(bfcl, task.ref, calls)).scores, JSON.stringify(task.ref)).toEqual([1]);
        const { scores } = await play(bfcl, task.ref, calls.toSpliced(calls.length - 2, 1));
        if (scores[0] === 0) missed++;
      }
      expect(missed).toBeGreaterThan(tasks.length / 2);
    }
  }, 60_000);

  test('requests come one after the other, alike when the session has to come back', async () => {
    const [{ task } = {}] = await tasksOf(bfcl, 1, 1);
    const calls = await solution(task!);
    const straight = await play(bfcl, task!.ref, calls);
    const finishes = calls.flatMap(({ name }, n) => (name === 'finish_request' ? [n] : []));
    expect(straight.observations[finishes[0]!]!.text).toMatch(/^Perform a detailed search/);
    expect(straight.observations.at(-1)).toMatchObject({ text: 'That was all.', done: true });
    expect(await play(bfcl, task!.ref, calls, [1, 3])).toEqual(straight);
    const { observations, scores } = await play(bfcl, task!.ref, [{ name: 'finish_request', arguments: {} }]);
    expect(observations.at(-1)).toMatchObject({ done: true });
    expect(scores).toEqual([0]);
  });
});
