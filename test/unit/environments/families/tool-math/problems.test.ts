import { expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import { LEVELS, problemAt } from '../../../../../environments/families/tool-math/problems.ts';

const SPLITS: Split[] = ['train', 'heldout', 'test'];

test('no problem of one split is a problem of another, however it is asked', () => {
  const owner = new Map<string, Split>();
  for (const split of SPLITS) {
    for (const level of LEVELS) {
      for (let index = 0; index < 150; index++) {
        const { text, code } = problemAt(split, level, index);
        for (const key of [text.replace(/^\w+( is)? /u, ''), code]) {
          if ((owner.get(key) ?? split) !== split) expect.fail(`${key} is in ${owner.get(key)} and ${split}`);
          owner.set(key, split);
        }
      }
    }
  }
});

test('squares are asked for by digits in which squares end', () => {
  const ends = new Set<string>();
  for (let index = 0; index < 1_000; index++) {
    const [, end] = /square that ends in (\d)/u.exec(problemAt('train', 3, index).text) ?? [];
    if (end !== undefined) ends.add(end);
  }
  expect([...ends].toSorted()).toEqual(['0', '1', '4', '5', '6', '9']);
});

test('a problem is a function of its coordinates', () => {
  for (const level of LEVELS) expect(problemAt('train', level, 7)).toEqual(problemAt('train', level, 7));
});
