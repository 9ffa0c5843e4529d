import { expect, test } from 'vitest';
import type { RunDivergence, Parting } from '../../../../runs/comparison/divergence.ts';
import { divergenceText } from '../../../../runs/comparison/divergence-words.ts';

const parted = (parting: Partial<Parting>): string[] =>
  divergenceText({
    runs: ['one', 'other'],
    spec: [],
    unreadable: [],
    common: 3,
    further: [0, 0],
    facts: null,
    parting: {
      at: { stage: 'warm-start', stageStep: 2, step: 2 },
      what: 'batch',
      environments: null,
      evaluation: null,
      group: null,
      episode: null,
      counts: null,
      batch: null,
      ...parting,
    },
    looked: 'facts',
    unlooked: 0,
    clocks: false,
  } satisfies RunDivergence);

test('of a supervised step nothing is said to have been sampled', () => {
  expect(parted({ what: 'demonstrations', batch: 'tokens of sequence 1, token 4: 7 and 8' })).toEqual([
    'one and other part at step 2 (warm-start/2): nothing is sampled for it, and its batches are not the same.',
    'First of the batch: tokens of sequence 1, token 4: 7 and 8.',
  ]);
});

test('steps of two environments are told by their environments', () => {
  const environments: [string, string] = ['calculator', 'molecules'];
  expect(parted({ what: 'demonstrations', environments })[0]).toBe(
    'one and other part at step 2 (warm-start/2), which is supervised: its demonstrations are of other environments: calculator and molecules.',
  );
  expect(parted({ what: 'tasks', environments, group: 'group-0000' })[0]).toMatch(
    /group-0000: its tasks are of other environments: calculator and molecules\.$/,
  );
});

test('where no group was compared nothing is said to have been sampled alike', () => {
  const counts = { groups: 0, other: 0, otherTokens: 0, otherLogprobs: 0, otherVerdicts: 0 };
  for (const none of [null, counts]) expect(parted({ counts: none })[0]).not.toContain('sampled alike');
  expect(parted({ counts: { ...counts, groups: 2 } })[0]).toContain('sampled alike');
});
