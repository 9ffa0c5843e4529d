import { expect, test } from 'vitest';
import { batchKey, checkpointFolder, rolloutKey } from '../../../store/keys.ts';

const invalid = expect.objectContaining({ boundary: 'store', type: 'invalid-key', retryable: false });

test('folders of checkpoints sort by step and name their weights', () => {
  expect(checkpointFolder('run', 12, 'abcdef0123456789')).toBe('runs/run/checkpoints/000012-abcdef012345');
});

test('run and stage are one part of a key each, a group may have several', () => {
  expect(rolloutKey('run', 'rl', 3, 'task/4')).toBe('runs/run/rollouts/rl/000003/task/4.json');
  for (const name of ['a/b', '..', '', 'a b']) {
    expect(() => rolloutKey(name, 'rl', 3, 'g')).toThrow(invalid);
    expect(() => batchKey('run', name, 3)).toThrow(invalid);
  }
});
