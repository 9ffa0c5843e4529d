import { expect, test } from 'vitest';
import textworld from '../../../../../../environments/connectors/packages/textworld/environment.ts';
import { expertCalls, play, tasksOf, withPackages } from '../../../../../support/ready-environments.ts';

await withPackages('textworld', () => {
  test('a generated game is won by its walkthrough, alike when the session has to come back', async () => {
    const tasks = await tasksOf(textworld, 2, 1);
    expect(new Set(tasks.map(({ task }) => task.prompt)).size).toBe(3);
    const { task } = tasks[0]!;
    expect(task.prompt).toMatch(/-= [^]*\nYou can:\n[^]*look/);
    const look = { name: 'do', arguments: { command: 'look' } };
    const calls = [look, ...(await expertCalls(textworld, task))];
    const won = await play(textworld, task.ref, calls);
    expect(won.observations.at(-1)).toMatchObject({ reward: 1, done: true });
    expect(won.scores).toEqual([1]);
    expect(await play(textworld, task.ref, calls, [1, 2])).toEqual(won);
    const { scores } = await play(textworld, task.ref, [{ name: 'do', arguments: { command: 'dance' } }]);
    expect(scores).toEqual([0]);
  });

  test('what is said to the interpreter and not to the game is refused, wherever it stands', async () => {
    const [{ task } = {}] = await tasksOf(textworld, 1, 1);
    const odd = [
      'save',
      'RESTORE',
      'look. save',
      'look then "transcripts on"',
      'tw-trace-actions',
      '\0',
      '  ',
    ];
    const { observations } = await play(
      textworld,
      task!.ref,
      [...odd, 'look'].map((command) => ({ name: 'do', arguments: { command } })),
    );
    for (const [n, command] of odd.entries()) {
      expect(observations[n], command).toMatchObject({ error: 'tool-error' });
    }
    expect(observations.at(-1)!.text).toMatch(/You can:/u);
  });
});
