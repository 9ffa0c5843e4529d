import { expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { BeamSearch } from '../../../../engine/decoder/beam-search.ts';
import type { Alternative } from '../../../../engine/policy.ts';

// What is searched here has no model: log-probs of the next token are a table, and a seat is what it has fed.

/** A search whose seats are paths of tokens, to its end. Says what each group took at each position. */
function searched(
  next: (path: string) => Record<string, number>,
  settings: { width: number; groups: number; diversity: number },
  { stop = 'z', limit = 8, logprobOf = Math.log } = {},
) {
  const id = (letter: string) => letter.charCodeAt(0);
  const search = new BeamSearch(settings, { stopTokens: [id(stop)], limit, root: '' });
  const text = (tokens: readonly number[]) => String.fromCharCode(...tokens);
  const steps: string[][] = [];
  while (!search.over) {
    const likeliest = new Map<string, Alternative[]>();
    for (const { seat } of search.open) {
      const tokens = Object.entries(next(seat)).map(([letter, p]) => ({
        token: id(letter),
        logprob: logprobOf(p),
      }));
      const sorted = tokens.toSorted((a, b) => b.logprob - a.logprob);
      likeliest.set(seat, sorted.slice(0, settings.width));
    }
    search.grow(likeliest);
    for (const beam of search.open) beam.seat = text(beam.tokens);
    steps.push(search.open.map(({ seat }) => seat));
  }
  const of = (group?: number) => {
    const { tokens, finish, total } = search.chosen(group);
    return { text: text(tokens), finish, total };
  };
  return { steps, best: of(), groups: Array.from({ length: settings.groups }, (_, group) => of(group)) };
}

const same = (table: Record<string, number>) => () => table;

test('a token costs λ for each beam of an earlier group that has it at the position', () => {
  const table = same({ a: 0.6, b: 0.3, c: 0.1 });
  // ln 0.6 − ln 0.3 = 0.69, ln 0.6 − ln 0.1 = 1.79: three groups, each of one beam.
  const of = (diversity: number) =>
    searched(table, { width: 3, groups: 3, diversity }, { limit: 1 }).groups.map(({ text }) => text);
  expect(of(0.3)).toEqual(['a', 'a', 'a']);
  expect(of(0.8)).toEqual(['a', 'b', 'a']);
  // The third finds `a` and `b` once each.
  expect(of(2)).toEqual(['a', 'b', 'c']);
  // Two beams of the first group count twice where they agree.
  const { steps } = searched((path) => ({ a: 0.6, b: path === '' ? 0.3 : 0.2, c: 0.1 }), {
    width: 4,
    groups: 2,
    diversity: 0.35,
  });
  expect(steps[0]).toEqual(['a', 'b', 'a', 'b']);
  expect(steps[1]).toEqual(['aa', 'ba', 'aa', 'ab']);
});

test('the penalty decides where it is taken, and is no part of what a beam is worth', () => {
  const { groups, best } = searched(
    same({ a: 0.6, b: 0.4 }),
    { width: 2, groups: 2, diversity: 1 },
    { limit: 2 },
  );
  expect(groups.map(({ text }) => text)).toEqual(['aa', 'bb']);
  expect(groups[1]!.total).toBe(Math.log(0.4) + Math.log(0.4));
  expect(best).toEqual(groups[0]);
});

test('the first group is searched as if it were alone', () => {
  const next = (path: string) =>
    path.endsWith('b') ? { z: 0.9, a: 0.1 } : { a: 0.5, b: 0.3, c: 0.15, z: 0.05 };
  const alone = searched(next, { width: 2, groups: 1, diversity: 0 });
  const together = searched(next, { width: 6, groups: 3, diversity: 3 });
  expect(together.groups[0]).toEqual(alone.groups[0]);
});

test('a beam that ends gives its place up, and a turn that ended comes before one that was cut', () => {
  const next = (path: string): Record<string, number> =>
    path === '' ? { a: 0.6, z: 0.4 } : { a: 0.999, z: 0.001 };
  const { steps, best } = searched(next, { width: 2, groups: 1, diversity: 0 }, { limit: 3 });
  expect(steps).toEqual([['a'], ['aa'], []]);
  // Its mean log-prob is lower than that of `aaa`.
  expect(best).toEqual({ text: 'z', finish: 'stop', total: Math.log(0.4) });
});

test('of turns of different lengths the one with the higher log-prob a token is taken', () => {
  const next = (path: string): Record<string, number> =>
    path === '' ? { z: 0.5, a: 0.4, b: 0.1 } : { z: 0.9, a: 0.1 };
  // −0.69 for one token, against −1.02 for two.
  expect(searched(next, { width: 2, groups: 1, diversity: 0 }).best).toEqual({
    text: 'az',
    finish: 'stop',
    total: Math.log(0.4) + Math.log(0.9),
  });
});

test('equal candidates rank by their beam, then by the order in which their tokens are told', () => {
  const { steps } = searched(same({ a: 0.25, b: 0.25, c: 0.25, d: 0.25 }), {
    width: 3,
    groups: 1,
    diversity: 0,
  });
  expect(steps.slice(0, 2)).toEqual([
    ['a', 'b', 'c'],
    ['aa', 'ab', 'ac'],
  ]);
});

test('is algorithm 1 over the whole vocabulary: with ties, impossible tokens, and more beams than tokens', () => {
  interface Turn {
    text: string;
    total: number;
  }
  const random = new RandomStream('by the book');
  for (let trial = 0; trial < 600; trial++) {
    const letters = 'abcdefz'.split('').slice(-random.int(1, 7));
    const groups = random.int(1, 4);
    const places = random.int(1, 4);
    const [limit, diversity] = [random.int(1, 5), groups > 1 ? random.int(1, 6) / 4 : 0];
    const settings = { width: groups * places, groups, diversity };
    // Quarters of a nat, so that sums are exact and many are equal.
    const rows = new Map<string, Record<string, number>>();
    const next = (path: string): Record<string, number> => {
      const row = rows.get(path) ?? {};
      if (!rows.has(path))
        for (const letter of letters)
          if (letter === 'z' || random.uniform() < 0.85) row[letter] = -random.int(0, 8) / 4;
      rows.set(path, row);
      return row;
    };

    const isOver = ({ text }: Turn): boolean => text.endsWith('z') || text.length === limit;
    const state = Array.from({ length: groups }, () => ({
      open: [{ text: '', total: 0 }],
      over: [] as Turn[],
    }));
    for (let position = 0; position < limit; position++) {
      let earlier = '';
      for (const group of state) {
        const all = group.open.flatMap(({ text, total }, beam) =>
          Object.entries(next(text)).map(([letter, logprob]) => {
            const cost = diversity * (earlier.split(letter).length - 1);
            return {
              text: text + letter,
              total: total + logprob,
              rank: total + logprob - cost,
              beam,
              logprob,
            };
          }),
        );
        const kept = all
          .toSorted(
            (a, b) =>
              b.rank - a.rank || a.beam - b.beam || b.logprob - a.logprob || (a.text < b.text ? -1 : 1),
          )
          .slice(0, places - group.over.length);
        group.open = kept.filter((turn) => !isOver(turn));
        group.over.push(...kept.filter(isOver));
        earlier += kept.map(({ text }) => text.at(-1)).join('');
      }
    }
    const worth = ({ text, total }: Turn): number => total / text.length + (text.endsWith('z') ? 1e6 : 0);
    const best = (turns: readonly Turn[]): Turn =>
      turns.reduce((first, turn) => (worth(turn) > worth(first) ? turn : first));
    const expected = state.map(({ over }) => best(over));
    const found = searched(next, settings, { limit, logprobOf: (logprob) => logprob });
    expect(found.groups, JSON.stringify({ trial, ...settings })).toMatchObject(
      expected.map(({ text, total }) => ({ text, total })),
    );
    expect(found.best.text).toBe(best(expected).text);
  }
});
