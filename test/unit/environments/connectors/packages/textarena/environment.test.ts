import { expect, test } from 'vitest';
import textArena from '../../../../../../environments/connectors/packages/textarena/environment.ts';
import { play, tasksOf, withPackages } from '../../../../../support/ready-environments.ts';

const environment = (game: string) => textArena.find(({ name }) => name === `textarena-${game}`)!;
const move = (text: string) => ({ name: 'play', arguments: { move: text } });
const ref = (game: string, index = 0) => ({
  environment: `textarena-${game}`,
  split: 'train' as const,
  level: 1,
  index,
});

await withPackages('textarena', () => {
  test('no task is in two splits, and every game can be begun at every level', async () => {
    for (const one of textArena) {
      for (const level of one.levels) {
        const splitOf = new Map<string, string>();
        for (const { split, task } of await tasksOf(one, level, 3)) {
          expect(task.prompt.length).toBeGreaterThan(50);
          const key = JSON.stringify(task.info);
          expect(splitOf.get(key) ?? split).toBe(split);
          splitOf.set(key, split);
        }
      }
    }
  });

  test('where games begin in few ways, none comes twice', async () => {
    const beginnings = await tasksOf(environment('mastermind'), 1, Infinity);
    expect(new Set(beginnings.map(({ task }) => (task.info as { seed: number }).seed)).size).toBe(350);
  });

  test('a number is guessed by halving', async () => {
    let [low, high] = [1, 20];
    const calls = [];
    let played;
    for (let n = 0; n < 6 && !played?.observations.at(-1)?.done; n++) {
      const guess = Math.floor((low + high) / 2);
      calls.push(move(String(guess)));
      played = await play(environment('guess-the-number'), ref('guess-the-number'), calls);
      const { text } = played.observations.at(-1)!;
      if (text.includes('higher')) low = guess + 1;
      else high = guess - 1;
    }
    expect(played?.observations.at(-1)).toMatchObject({ done: true });
    expect(played?.scores).toEqual([1]);
  });

  test('a game that a bad move ends near its goal is lost, and numbers are of no split', async () => {
    const guesses = ['10', '10', '10', '10', '10', '10', '10', '10', '10', '10'].map(move);
    for (let index = 0; index < 3; index++) {
      const { observations, scores } = await play(
        environment('guess-the-number'),
        ref('guess-the-number', index),
        guesses,
      );
      expect(observations.at(-1)).toMatchObject({ done: true });
      const won = /Congratulations/iu.test(observations.at(-1)!.text);
      expect(scores).toEqual([Number(won)]);
    }
    expect(environment('guess-the-number').taskCount('test', 1)).toBe(Infinity);
  });

  test('an opponent answers, alike when the session has to come back', async () => {
    const calls = ['4', '0', '8', '2', '6', '1', '3', '5', '7'].map(move);
    const straight = await play(environment('tic-tac-toe'), ref('tic-tac-toe'), calls);
    expect(straight.observations[0]!.text).toMatch(/X/);
    expect(await play(environment('tic-tac-toe'), ref('tic-tac-toe'), calls, [1, 2])).toEqual(straight);
    const nim = await play(environment('nim'), ref('nim'), ['0 3', '1 4', '2 5', '2 1', '1 1'].map(move));
    expect(nim.scores[0]).toBeGreaterThanOrEqual(0);
  });

  test.each(['2048', 'minesweeper', 'lights-out', 'frozen-lake', 'sudoku', 'mastermind'])(
    '%s brings the same to the same moves',
    async (game) => {
      const moves: Record<string, string[]> = {
        '2048': ['Up', 'Left', 'Down', 'Right', 'Up'],
        minesweeper: ['0 0', '4 4'],
        'lights-out': ['0 0', '1 1', '2 2'],
        'frozen-lake': ['right', 'down'],
        sudoku: ['1 1 1'],
        mastermind: ['1 2 3 4', '2 3 4 5'],
      };
      const calls = moves[game]!.map(move);
      const straight = await play(environment(game), ref(game, 1), calls);
      expect(await play(environment(game), ref(game, 1), calls, [1])).toEqual(straight);
    },
  );
});
