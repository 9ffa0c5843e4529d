import { expect, test } from 'vitest';
import { comparedSamples } from '../../../../runs/episodes/contrast.ts';
import type { EpisodeRow } from '../../../../runs/episodes/episode-rows.ts';

const row = (group: number, reward: number | null, more: Partial<EpisodeRow> = {}): EpisodeRow =>
  ({
    group,
    reward,
    environment: 'calculator',
    split: 'train',
    level: 1,
    index: group,
    outcome: reward === null ? 'abstained' : 'scored',
    inheritedTokens: 0,
    advantage: null,
    ...more,
  }) as EpisodeRow;

test('rewards that differ by rounding alone have no contrast, as training has it', () => {
  const rewards = [0.1, 0.1, 0.1];
  const [same] = comparedSamples(
    rewards.map((reward) => row(0, reward)),
    'train',
  );
  expect(same).toMatchObject({ deviation: 0, taught: false });
});

test('samples of a tree are compared with each other, whichever group they grew in', () => {
  const found = comparedSamples([row(0, 1), row(1, 0), row(4, 0, { index: 0, inheritedTokens: 3 })], 'train');
  expect(found.map(({ group, rows, taught }) => [group, rows.length, taught])).toEqual([
    [0, 2, true],
    [1, 1, false],
  ]);
  // A task that was asked again is another comparison.
  expect(comparedSamples([row(0, 1), row(4, 0, { index: 0 })], 'train')).toHaveLength(2);
});

test('what has taught is said by the advantages of the batch, where there are some', () => {
  const equal = [row(0, 1, { advantage: 0.5 }), row(0, 1, { advantage: 0.5 })];
  const dropped = [row(1, 1), row(1, 0)];
  const found = comparedSamples([...equal, ...dropped], 'train');
  expect(found.map(({ deviation, taught }) => [deviation === 0, taught])).toEqual([
    [true, true],
    [false, false],
  ]);
});

test('what was cut off has a part in it only where training gives it one', () => {
  const rows = [row(0, 1), row(0, 0, { outcome: 'truncated' })];
  expect(comparedSamples(rows, 'train')[0]).toMatchObject({ taught: true, mean: 0.5 });
  expect(comparedSamples(rows, 'mask')[0]).toMatchObject({ taught: false, deviation: null, mean: 1 });
});

test('a greedy sample that others are compared with is no group without contrast', () => {
  const rows = [row(0, 1), row(0, 0), row(1, 1, { index: 0 })];
  expect(comparedSamples(rows, 'train')).toHaveLength(2);
  expect(comparedSamples(rows, 'train', { greedy: true }).map(({ group }) => group)).toEqual([0]);
});
