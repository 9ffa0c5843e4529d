import { array, assert, asyncProperty, constantFrom, property, record, option, integer } from 'fast-check';
import type { Arbitrary } from 'fast-check';
import { expect, test } from 'vitest';
import { OBSERVED_ERRORS } from '../../../../core/episode/facts.ts';
import type { EpisodeIndex, IndexedStep, Scanned } from '../../../../runs/find/episode-index.ts';
import { searchEpisodes } from '../../../../runs/find/find.ts';
import {
  HINT,
  matches,
  ORDERS,
  OUTCOMES,
  readQuery,
  SORTS,
  SPLITS,
  SUCCESS,
  queryWords,
} from '../../../../runs/find/find-query.ts';
import type { Query } from '../../../../runs/find/find-query.ts';
import { someStep } from '../../../support/some-facts.ts';

const some = <T>(...of: T[]): Arbitrary<T[]> => array(constantFrom(...of), { maxLength: 2 });
const bound = option(integer({ min: -2, max: 45 }), { nil: undefined });

const someQuery: Arbitrary<Query> = record({
  stage: some('rl', 'before'),
  environment: some('calculator', 'house', 'another'),
  level: some(1, 2.5),
  split: some(...SPLITS),
  outcome: some(...OUTCOMES),
  success: some(...SUCCESS),
  hint: some(...HINT),
  'from-step': bound,
  'to-step': bound,
  'min-reward': bound,
  'max-reward': bound,
  'min-tokens': bound,
  'max-tokens': option(integer({ min: 0, max: 40_000 }), { nil: undefined }),
  'min-turns': bound,
  'max-turns': bound,
  tool: option(constantFrom('search', '__proto__', 'constructor'), { nil: undefined }),
  error: option(constantFrom('any', ...OBSERVED_ERRORS), { nil: undefined }),
  sort: constantFrom(...SORTS),
  order: constantFrom(...ORDERS),
});

const indexedStep = ({ stage, step, rows }: { stage: string; step: number; rows: never[] }): IndexedStep => ({
  stage,
  step,
  groups: [],
  unreadable: [],
  closed: true,
  facts: rows,
});

/** Steps that are there, without a store. */
const indexOf = (steps: readonly IndexedStep[]): EpisodeIndex =>
  ({
    stages: [...new Set(steps.map(({ stage }) => stage))],
    scan: async (visit: (step: IndexedStep) => void): Promise<Scanned> => {
      for (const step of steps) visit(step);
      return Promise.resolve({ steps: steps.length, missing: 0, unreadable: [] });
    },
  }) as never;

test('a page is a part of all that match, sorted, with what is not known at its end', async () => {
  const page = record({ offset: integer({ min: 0, max: 20 }), limit: integer({ min: 1, max: 7 }) });
  await assert(
    asyncProperty(
      array(someStep, { maxLength: 6 }),
      someQuery,
      page,
      async (steps, query, { offset, limit }) => {
        const index = indexOf(steps.map((step) => indexedStep(step as never)));
        const all = steps.flatMap(({ stage, step, rows }) =>
          rows
            .filter((facts) => matches(query, { stage, step, facts }))
            .map((facts) => ({ stage, step, ...facts })),
        );
        const key = ({
          step,
          reward,
          sampledTokens,
          turns,
          toolSeconds,
        }: (typeof all)[number]): number | null =>
          ({ step, reward, tokens: sampledTokens, turns, 'tool-seconds': toolSeconds })[query.sort];
        const sorted = all.toSorted((a, b) => {
          const [x, y] = [key(a), key(b)];
          if (x === null || y === null) return Number(x === null) - Number(y === null);
          return query.order === 'descending' ? y - x : x - y;
        });
        const found = await searchEpisodes(index, query, { offset, limit });
        expect(found.total).toBe(all.length);
        expect(found.rows).toEqual(sorted.slice(offset, offset + limit));
        expect(found.success.trials).toBe(all.filter(({ success }) => success !== null).length);
      },
    ),
  );
});

test('words say a query, and a query is said by words', () => {
  assert(
    property(someQuery, (query) => {
      const words: Record<string, string[]> = {};
      for (const [name, word] of queryWords(query)) (words[name] ??= []).push(word);
      expect(readQuery(words)).toEqual(query);
    }),
  );
  expect(readQuery({ tool: [''], level: [' 2 ', ''], 'min-reward': [] })).toMatchObject({ level: [2] });
});

test.each([
  [{ tol: ['x'] }, /Unrecognized key: "tol"\. There is stage, /],
  [{ level: ['two'] }, /level cannot be looked for: it is no number/],
  [{ outcome: ['won'] }, /outcome cannot be looked for.*scored[^.]*$/],
  [{ tool: ['a', 'b'] }, /tool cannot be looked for: it is given more than once/],
  [{ 'min-reward': ['Infinity'] }, /min-reward/],
  [{ text: ['x'.repeat(201)] }, /text/],
])('%j is refused by its name', (words, why) => {
  expect(() => readQuery(words as never)).toThrow(why);
});
