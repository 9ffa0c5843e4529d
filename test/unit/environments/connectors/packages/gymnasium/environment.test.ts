import { expect, test } from 'vitest';
import gymnasium from '../../../../../../environments/connectors/packages/gymnasium/environment.ts';
import { expertCalls, play, tasksOf, withPackages } from '../../../../../support/ready-environments.ts';

const environment = (game: string) => gymnasium.find(({ name }) => name === `gymnasium-${game}`)!;
const act = (action: string) => ({ name: 'act', arguments: { action } });
const ref = (game: string, index = 0, level = 1) => ({
  environment: `gymnasium-${game}`,
  split: 'train' as const,
  level,
  index,
});

await withPackages('gymnasium', () => {
  test('no task is in two splits', async () => {
    for (const one of gymnasium) {
      for (const level of one.levels) {
        const tasks = await tasksOf(one, level, 30);
        const splitOf = new Map<string, string>();
        for (const { split, task } of tasks) {
          const { seed: _, ...info } = task.info as { seed?: number };
          const key = JSON.stringify(one.name.endsWith('blackjack') ? task.info : info);
          expect(splitOf.get(key) ?? split, `${one.name}, level ${level}: ${key}`).toBe(split);
          splitOf.set(key, split);
        }
      }
    }
  });

  test('where there are few lakes, none comes twice', async () => {
    const lakes = await tasksOf(environment('frozen-lake'), 1, Infinity);
    expect(new Set(lakes.map(({ task }) => task.prompt)).size).toBe(50);
  });

  test('a lake is crossed, and a hole ends the episode', async () => {
    const lake = environment('frozen-lake');
    expect((await lake.task(ref('frozen-lake'))).prompt).toMatch(/\nPFF\nFHH\nFFG$/);
    const crossed = await play(lake, ref('frozen-lake'), ['down', 'down', 'right', 'right'].map(act));
    expect(crossed.observations[0]).toEqual({ text: 'SFF\nPHH\nFFG', reward: 0 });
    expect(crossed.observations.at(-1)).toMatchObject({ reward: 1, done: true });
    expect(crossed.scores).toEqual([1]);
    const drowned = await play(lake, ref('frozen-lake'), ['right', 'down', 'down'].map(act));
    expect(drowned.observations).toHaveLength(2);
    expect(drowned.scores).toEqual([0]);
  });

  test('a taxi brings its passenger', async () => {
    const calls = [
      'pickup',
      'south',
      'south',
      'east',
      'east',
      'east',
      'east',
      'north',
      'north',
      'dropoff',
    ].map(act);
    const { observations, ended, scores } = await play(environment('taxi'), ref('taxi'), calls);
    expect(observations[0]!.text).toContain('passenger in the taxi');
    expect(ended).toEqual({ reward: 1, info: { success: true, return: 11 } });
    expect(scores).toEqual([1]);
  });

  test('the expert goes the shortest way, and on slippery ice mostly comes through', async () => {
    const lengths: Record<string, number> = {};
    for (const [game, level] of [
      ['frozen-lake', 1],
      ['frozen-lake', 3],
      ['taxi', 1],
      ['cliff-walking', 1],
    ] as const) {
      const one = environment(game);
      for (const { task } of await tasksOf(one, level, 3)) {
        const calls = await expertCalls(one, task);
        expect((await play(one, task.ref, calls)).scores, JSON.stringify(task)).toEqual([1]);
        lengths[`${game} ${level}`] = Math.max(lengths[`${game} ${level}`] ?? 0, calls.length);
      }
    }
    // From corner to corner; two ways across the town, and along the cliff.
    expect(lengths).toMatchObject({ 'frozen-lake 1': 4, 'frozen-lake 3': 14 });
    expect(lengths['taxi 1']).toBeLessThanOrEqual(20);
    expect(lengths['cliff-walking 1']).toBeLessThanOrEqual(15);
    const slippery = await tasksOf(environment('frozen-lake'), 4, 10);
    const scores = await Promise.all(
      slippery.map(async ({ task }) => {
        const calls = await expertCalls(environment('frozen-lake'), task);
        return (await play(environment('frozen-lake'), task.ref, calls)).scores[0]!;
      }),
    );
    expect(scores.reduce((sum, score) => sum + score, 0)).toBeGreaterThan(15);
  });

  test('what slips slips alike when the session has to come back', async () => {
    const calls = ['down', 'right', 'down', 'right', 'up', 'left'].map(act);
    const slippery = ref('frozen-lake', 3, 4);
    const straight = await play(environment('frozen-lake'), slippery, calls);
    expect(await play(environment('frozen-lake'), slippery, calls, [1, 2, 4])).toEqual(straight);
    for (const game of ['cliff-walking', 'blackjack', 'taxi']) {
      const actions = { 'cliff-walking': ['right', 'down'], blackjack: ['hit'], taxi: ['south', 'pickup'] }[
        game
      ]!;
      const once = await play(environment(game), ref(game, 1), actions.map(act));
      expect(await play(environment(game), ref(game, 1), actions.map(act), [1])).toEqual(once);
    }
  });
});
