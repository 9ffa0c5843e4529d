import { beforeAll, describe, expect, test } from 'vitest';
import type { Split } from '../../../../../core/refs.ts';
import { atOnce } from '../../../../../engine/in-pieces.ts';
import type { Demonstration, Task } from '../../../../../environments/contract/environment.ts';
import { Bm25 } from '../../../../../environments/families/search-qa/bm25.ts';
import { searched, searchQaEnvironment } from '../../../../../environments/families/search-qa/environment.ts';
import { LEVELS } from '../../../../../environments/families/search-qa/levels.ts';
import { theLibrary } from '../../../../../environments/families/search-qa/library.ts';
import { normalizeSquad } from '../../../../../environments/verifiers/squad.ts';

const environment = searchQaEnvironment();
const SPLITS: Split[] = ['train', 'heldout', 'test'];
const taskAt = (split: Split, level: number, index: number): Task =>
  environment.task({ environment: 'search-qa', split, level, index }) as Task;

describe('BM25', () => {
  const index = atOnce(
    Bm25.of([
      { title: 'hound, hound dog', text: 'any of several breeds of dog used for hunting' },
      { title: 'dog show', text: 'a show of dogs' },
      { title: 'dog', text: 'a domestic animal that barks, and barks' },
      { title: 'cat', text: 'a domestic animal' },
    ]),
  );
  const titles = (query: string, most = 4): string[] => index.search(query, most).map(({ title }) => title);

  test('what bears the name comes first, then the more of the words, the rarer and the shorter', () => {
    expect(titles('dog')).toEqual(['dog', 'dog show', 'hound, hound dog']);
    expect(titles('Hound Dog!', 1)).toEqual(['hound, hound dog']);
    expect(titles('domestic animal barks')).toEqual(['dog', 'cat']);
    expect(titles('several animal', 1)).toEqual(['hound, hound dog']);
  });

  test('the score is that of Okapi with these constants', () => {
    // One passage of two words, one of four: idf · tf (k1 + 1) / (tf + k1 (1 − b + b length / mean)), mean 5.
    const two = atOnce(
      Bm25.of([
        { title: '', text: 'x y' },
        { title: '', text: 'x x z z z z z z' },
      ]),
    );
    const idf = Math.log(1 + 0.5 / 2.5);
    const gain = (tf: number, length: number): number =>
      (idf * tf * 1.9) / (tf + 0.9 * (0.6 + (0.4 * length) / 5));
    expect(gain(2, 8)).toBeGreaterThan(gain(1, 2));
    expect(two.search('x', 2).map(({ text }) => text)).toEqual(['x x z z z z z z', 'x y']);
  });

  test('words that are nowhere bring nothing', () => {
    expect(titles('zebra')).toEqual([]);
    expect(titles('')).toEqual([]);
  });
});

describe('questions', () => {
  beforeAll(() => environment.prepare!());

  test('are as many as is said before WordNet is read', () => {
    for (const split of SPLITS) {
      for (const level of environment.levels) {
        expect(theLibrary().questions[split].get(level)).toHaveLength(environment.taskCount(split, level));
      }
    }
  });

  test('no answer of one split is an answer of another, nor is any question', () => {
    const owner = new Map<string, Split>();
    for (const split of SPLITS) {
      for (const level of environment.levels) {
        for (let index = 0; index < environment.taskCount(split, level); index++) {
          const { prompt, info } = taskAt(split, level, index);
          for (const key of [...(info as { answers: string[] }).answers.map(normalizeSquad), prompt]) {
            if ((owner.get(key) ?? split) !== split)
              expect.fail(`${key} is in ${owner.get(key)} and ${split}`);
            owner.set(key, split);
          }
        }
      }
    }
  });

  test.each(LEVELS)(
    'of level $level follow from $hops passages, each of which is found by the name before',
    ({ level, hops }) => {
      const count = Math.min(200, environment.taskCount('test', level));
      expect(count).toBeGreaterThan(0);
      for (let index = 0; index < count; index++) {
        const task = taskAt('test', level, index);
        const { turns } = environment.demonstrate!(task, 0) as Demonstration;
        const calls = turns.slice(0, -1);
        expect(calls).toHaveLength(hops);
        expect(turns.at(-1)).toEqual({ answer: task.answer });
        const reads = [
          ...calls.map(({ call }) => (call!.arguments as { query: string }).query),
          task.answer!,
        ];
        expect(task.prompt).toContain(reads[0]!);
        for (const [hop, { observation }] of calls.entries()) {
          expect(observation!.toLowerCase()).toContain(reads[hop + 1]!.toLowerCase());
        }
      }
    },
  );

  test('of level 1 are answered by how their passage begins', () => {
    for (let index = 0; index < 200; index++) {
      const task = taskAt('test', 1, index);
      const [{ observation }] = (environment.demonstrate!(task, 0) as Demonstration).turns as [
        { observation: string },
      ];
      const [, gloss] = observation.split(': ') as [string, string];
      expect(gloss.replace(/^(?:\(.*?\) )?(?:an?|the) /iu, '').toLowerCase()).toMatch(
        new RegExp(`^${task.answer!.toLowerCase()}\\b`, 'u'),
      );
    }
  });

  test('cannot be answered from the question, which does not have the answer in it', () => {
    for (const { level, hops } of LEVELS) {
      if (hops === 1) continue;
      for (let index = 0; index < Math.min(300, environment.taskCount('train', level)); index++) {
        const { prompt, answer } = taskAt('train', level, index);
        const [start] = prompt.split(/ is an? /u);
        expect(normalizeSquad(start!)).not.toBe(normalizeSquad(answer!));
      }
    }
  });

  test('the same coordinates give the same question, and others are refused', () => {
    expect(taskAt('heldout', 2, 7)).toEqual(taskAt('heldout', 2, 7));
    expect(() => taskAt('heldout', 2, 100_000)).toThrow('no task 100000');
    expect(() => taskAt('heldout', 9, 0)).toThrow('levels are 1, 2, 3, 4, 5, 6');
  });

  test('a search without words is the policy’s mistake, one that finds nothing is not', () => {
    expect(() => searched('?!', LEVELS[0]!)).toThrow('no words');
    expect(searched('qqqzzz', LEVELS[0]!)).toBe('nothing found');
    expect(searched('beagle', LEVELS[0]!)).toBe('beagle: a small short-legged smooth-coated breed of hound');
    expect(searched('beagle', LEVELS[4]!).split('\n')).toHaveLength(3);
  });
});
