import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Action, ToolCall } from '../../../../core/episode/episode.ts';
import { bestTotal, toolMatch } from '../../../../environments/verifiers/tool-match.ts';
import type { ToolMatchOptions } from '../../../../environments/verifiers/tool-match.ts';
import { bad, call, candidateOf, judged, says } from './candidates.ts';

const calls: ToolCall[] = [
  { name: 'f', arguments: { x: 1, y: 'two' } },
  { name: 'g', arguments: { z: [3] } },
];
const f = call('f', { y: 'two', x: 1 });
const g = call('g', { z: [3] });
const both: Action = { kind: 'calls', calls };

const score = async (actions: Action[], options?: ToolMatchOptions): Promise<number> =>
  (await judged(toolMatch(options), candidateOf({ calls }, actions))).score;

describe('the match of calls', () => {
  // Of 2 calls and 3 keys: S_max = 1 + 2 + 3 = 6. The score is (6 ρ + R_format) / 7.
  const of = (match: number, format: 0 | 1, denominator = 6): number =>
    ((6 * match) / denominator + format) / 7;
  test.each<[string, Action[], number]>([
    ['both calls', [f, g, says('ok')], 1],
    ['both in the other order', [g, f, says('ok')], 1],
    ['both in one turn', [both, says('ok')], 1],
    ['no answer', [f, g], of(6, 0)],
    ['a malformed turn', [f, bad, g, says('ok')], of(6, 0)],
    ['one call', [f, says('ok')], of(0.5 + 1 + 2, 1)],
    ['a wrong value', [call('f', { x: 2, y: 'two' }), g, says('ok')], of(5, 1)],
    ['a text for a number', [call('f', { x: '1', y: 'two' }), g, says('ok')], of(5, 1)],
    ['a key too few', [call('f', { x: 1 }), g, says('ok')], of(1 + 0.5 + 1 + 2, 1)],
    ['a key too many', [call('f', { x: 1, y: 'two', q: 0 }), g, says('ok')], of(1 + 2 / 3 + 2 + 2, 1)],
    ['arguments that are no object', [call('f', 'x'), g, says('ok')], of(1 + 0 + 2, 1)],
    ['a tool too many', [f, g, call('h', {}), says('ok')], of(2 / 3 + 5, 1, 7)],
    ['a call twice', [f, g, g, says('ok')], of(6, 1, 7)],
    ['nothing but an answer', [says('ok')], 0],
    ['only wrong tools', [call('h', { x: 1 }), says('ok')], 0],
    ['nothing', [], 0],
  ])('of %s', async (_, actions, expected) => {
    expect(await score(actions)).toBeCloseTo(expected, 12);
  });

  test('pairs repeated tools with what was expected of them as well as can be', async () => {
    const twice: ToolCall[] = [
      { name: 'f', arguments: { x: 1, y: 1 } },
      { name: 'f', arguments: { x: 1, y: 2 } },
    ];
    // The first given call would do for either; the second only for the first.
    const given = [call('f', { x: 1, y: 2 }), call('f', { x: 1, y: 1 }), says('ok')];
    expect((await judged(toolMatch(), candidateOf({ calls: twice }, given))).score).toBeCloseTo(1, 12);
  });

  test('without calls to make is of making none', async () => {
    const none = candidateOf({ calls: [] }, [says('ok')]);
    expect((await judged(toolMatch(), none)).score).toBe(1);
    expect((await judged(toolMatch(), candidateOf({ calls: [] }, [f, says('ok')]))).score).toBe(0);
  });

  test('by an own comparison of values', async () => {
    const loose = [call('f', { x: '1', y: 'two' }), g, says('ok')];
    expect(
      await score(loose, {
        same: (one, other) =>
          JSON.stringify(one).replaceAll('"', '') === JSON.stringify(other).replaceAll('"', ''),
      }),
    ).toBeCloseTo(1, 12);
  });

  test('with surplus 0 counts calls too many as the paper does: not at all', async () => {
    expect(await score([f, g, g, g, says('ok')], { surplus: 0 })).toBeCloseTo(1, 12);
  });

  test('abstains on a task that names no calls', async () => {
    const verdict = await toolMatch().verify(candidateOf({}, [f]), { signal: new AbortController().signal });
    expect(verdict).toMatchObject({ kind: 'abstain' });
  });

  test('stays in [0, 1], and a call more that nobody expected never pays', async () => {
    const arbitraryCall = fc
      .record({
        name: fc.constantFrom('f', 'g', 'h'),
        arguments: fc.dictionary(
          fc.constantFrom('x', 'y', 'z', '__proto__'),
          fc.constantFrom(1, 'two', null),
        ),
      })
      .map(({ name, arguments: args }) => call(name, args));
    await fc.assert(
      fc.asyncProperty(fc.array(arbitraryCall, { maxLength: 5 }), async (given) => {
        const before = await score([...given, says('ok')]);
        expect(before >= 0 && before <= 1).toBe(true);
        const idle = [...given, f, g, call('idle', {}), says('ok')];
        expect(await score(idle)).toBeLessThanOrEqual(await score([...given, f, g, says('ok')]));
      }),
    );
  });
});

test('the best total is that of the best of all assignments', () => {
  const cell = fc.double({ min: 0, max: 5, noNaN: true });
  fc.assert(
    fc.property(
      fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 })).chain(([rows, columns]) =>
        fc.array(fc.array(cell, { minLength: columns, maxLength: columns }), {
          minLength: rows,
          maxLength: rows,
        }),
      ),
      (scores) => {
        expect(bestTotal(scores)).toBeCloseTo(bruteForce(scores, new Set()), 9);
      },
    ),
  );
  expect(bestTotal([])).toBe(0);
  expect(bestTotal([[], []])).toBe(0);
});

/** Every row takes a free column, or none. */
function bruteForce([row, ...rest]: readonly (readonly number[])[], taken: ReadonlySet<number>): number {
  if (!row) return 0;
  const without = bruteForce(rest, taken);
  return row.reduce(
    (best, value, column) =>
      taken.has(column) ? best : Math.max(best, value + bruteForce(rest, new Set([...taken, column]))),
    without,
  );
}
