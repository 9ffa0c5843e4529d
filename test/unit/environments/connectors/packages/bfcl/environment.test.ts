import { expect, test } from 'vitest';
import bfcl from '../../../../../../environments/connectors/packages/bfcl/environment.ts';
import { checkArguments } from '../../../../../../environments/host/arguments.ts';
import { expertCalls, play, tasksOf, withPackages } from '../../../../../support/ready-environments.ts';

await withPackages('bfcl', () => {
  test('no call of its own answers is refused', async () => {
    for (const level of bfcl.levels) {
      for (const { task } of await tasksOf(bfcl, level, Infinity)) {
        const tools = new Map(task.tools!.map((tool) => [tool.name, tool]));
        for (const call of await expertCalls(bfcl, task)) {
          const checked = await checkArguments(tools.get(call.name)!, call.arguments);
          expect(checked, JSON.stringify([task.info, call])).toEqual({ value: call.arguments });
        }
      }
    }
  });

  test('the calls of its own answers score 1, and those without one of them mostly do not', async () => {
    for (const level of bfcl.levels) {
      const tasks = await tasksOf(bfcl, level, 4);
      expect(new Set(tasks.map(({ task }) => JSON.stringify(task.info))).size).toBe(tasks.length);
      let missed = 0;
      for (const { task } of tasks) {
        const calls = await expertCalls(bfcl, task);
        expect((await play(bfcl, task.ref, calls)).scores, JSON.stringify(task.ref)).toEqual([1]);
        const { scores } = await play(bfcl, task.ref, calls.toSpliced(calls.length - 2, 1));
        if (scores[0] === 0) missed++;
      }
      expect(missed).toBeGreaterThan(tasks.length / 2);
    }
  });

  test('what is called where something is missing shows in the states after the next request, as in BFCL', async () => {
    const finish = { name: 'finish_request', arguments: {} };
    const isEmpty = (calls: readonly { name: string }[], n: number) =>
      calls[n]!.name === finish.name && (n === 0 || calls[n - 1]!.name === finish.name);
    const played: (number | null)[] = [];
    for (const { task } of await tasksOf(bfcl, 2, 4)) {
      if (!task.tools?.some(({ name }) => name === 'pwd')) continue;
      const calls = await expertCalls(bfcl, task);
      const empty = calls.findIndex((_, n) => isEmpty(calls, n));
      if (empty < 0) continue;
      const looked = calls.toSpliced(empty, 0, { name: 'pwd', arguments: {} });
      played.push(...(await play(bfcl, task.ref, looked)).scores);
    }
    expect(played.length).toBeGreaterThan(0);
    expect(new Set(played)).toEqual(new Set([1]));
  });

  test('requests come one after the other, alike when the session has to come back', async () => {
    const [{ task } = {}] = await tasksOf(bfcl, 1, 1);
    const calls = await expertCalls(bfcl, task!);
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
