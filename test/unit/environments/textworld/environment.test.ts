import { expect, test } from 'vitest';
import textworld from '../../../../environments/textworld/environment.ts';
import { play, tasksOf, withPackages } from '../../../support/ready-environments.ts';

await withPackages('textworld', () => {
  test('a generated game is won by its walkthrough, alike when the session has to come back', async () => {
    const tasks = await tasksOf(textworld, 2, 1);
    expect(new Set(tasks.map(({ task }) => task.prompt)).size).toBe(3);
    const { task } = tasks[0]!;
    expect(task.prompt).toMatch(/-= [^]*\nYou can:\n[^]*look/);
    const { walkthrough } = task.info as { walkthrough: string[] };
    const calls = ['look', ...walkthrough].map((command) => ({ name: 'do', arguments: { command } }));
    const won = await play(textworld, task.ref, calls);
    expect(won.observations.at(-1)).toMatchObject({ reward: 1, done: true });
    expect(won.scores).toEqual([1]);
    expect(await play(textworld, task.ref, calls, [1, 2])).toEqual(won);
    const { scores } = await play(textworld, task.ref, [{ name: 'do', arguments: { command: 'dance' } }]);
    expect(scores).toEqual([0]);
  }, 120_000);
});
