import { callByCall } from '../../core/episode/call-by-call.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import type { ToolCall } from '../../core/episode/episode.ts';
import type { FastVerifier } from '../contract/environment.ts';

export interface ToolMatchOptions {
  /** What a call that nobody expected takes off, in parts of the match; 0 is the paper's: such a call costs nothing. */
  surplus?: number;
  /** Whether an argument is what was expected; by default where both are the same JSON. */
  same?: (expected: Json, given: Json, call: ToolCall) => boolean;
}

/**
 * The reward of ToolRL (Qian et al. 2025, section 3.3): right tools, right names of arguments, right values, and format,
 * against `task.calls`, by the best assignment of the episode's calls to them:
 *
 *     r_name  = |names expected ∩ given| / |names expected ∪ given|
 *     r_param = Σ over pairs |keys expected ∩ given| / |keys expected ∪ given|
 *     r_value = Σ over pairs, number of keys with the expected value
 *     ρ = (r_name + r_param + r_value) / (1 + |expected| + number of expected keys + surplus × calls too many)
 *
 * The paper's R_correct = 6ρ − 3 and R_format ∈ {0, 1} (no malformed turn, and an answer) add up to [−3, 4]; the score
 * is (R_correct + R_format + 3) / 7 = (6ρ + R_format) / 7. It deviates from the paper twice, lest idling be paid: calls
 * beyond those expected widen the denominator, and without a right tool the format is worth nothing.
 *
 * It says nothing about the answer, which is the outcome's. Abstains on a task that names no calls.
 */
export function toolMatch({ surplus = 1, same = sameJson }: ToolMatchOptions = {}): FastVerifier {
  return {
    name: 'tool-match',
    version: `1;surplus=${surplus}${same === sameJson ? '' : ';own comparison'}`,
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ task, episode, answer }) => {
      const expected = task.calls;
      if (expected === undefined) return { kind: 'abstain', reason: 'the task names no calls' };
      const given = episode.turns
        .flatMap(callByCall)
        .flatMap(({ action }) => (action.kind === 'call' ? [action.call] : []));
      const pairs = expected.map((one) => given.map((other) => pairScore(one, other, same)));
      const keys = expected.reduce((sum, call) => sum + keysOf(call).length, 0);
      const tooMany = Math.max(0, given.length - expected.length);
      const names = nameScore(expected, given);
      const match = (names + bestTotal(pairs)) / (1 + expected.length + keys + surplus * tooMany);
      const wellFormed = answer !== null && episode.turns.every(({ action }) => action.kind !== 'malformed');
      return {
        kind: 'score',
        score: names === 0 ? 0 : Math.min(1, (6 * match + (wellFormed ? 1 : 0)) / 7),
        evidence: `match ${match.toFixed(3)} of ${expected.length} calls by ${given.length}${wellFormed ? '' : ', bad format'}`,
      };
    },
  };
}

const sameJson = (expected: Json, given: Json): boolean => canonicalJson(expected) === canonicalJson(given);

function nameScore(expected: readonly ToolCall[], given: readonly ToolCall[]): number {
  const wanted = new Set(expected.map(({ name }) => name));
  const called = new Set(given.map(({ name }) => name));
  const union = new Set([...wanted, ...called]).size;
  return union === 0 ? 1 : [...wanted].filter((name) => called.has(name)).length / union;
}

/** r_param + r_value of a pair; calls of different tools have nothing in common. */
function pairScore(expected: ToolCall, given: ToolCall, same: NonNullable<ToolMatchOptions['same']>): number {
  if (expected.name !== given.name) return 0;
  const [wanted, written] = [keysOf(expected), keysOf(given)];
  const shared = wanted.filter((key) => written.includes(key));
  const union = wanted.length + written.length - shared.length;
  const values = shared.filter((key) => same(valueOf(expected, key), valueOf(given, key), expected)).length;
  return (union === 0 ? 1 : shared.length / union) + values;
}

/** Arguments are an object by the contract of tools; of anything else the whole is the one argument. */
const WHOLE = '';
const isObject = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const keysOf = ({ arguments: args }: ToolCall): string[] => (isObject(args) ? Object.keys(args) : [WHOLE]);
const valueOf = ({ arguments: args }: ToolCall, key: string): Json => (isObject(args) ? args[key]! : args);

/**
 * The largest sum of `scores[row][column]` in which no row and no column comes twice. The Hungarian algorithm with
 * potentials (Kuhn 1955, in the form of Jonker & Volgenant 1987), O(n² m) for the smaller side n.
 */
export function bestTotal(scores: readonly (readonly number[])[]): number {
  const [rows, columns] = [scores.length, scores[0]?.length ?? 0];
  if (rows === 0 || columns === 0) return 0;
  if (rows > columns) return bestTotal(scores[0]!.map((_, column) => scores.map((row) => row[column]!)));
  // Row and column 0 stand for "none"; costs are scores with the sign changed.
  const rowPotential = Array.from({ length: rows + 1 }, () => 0);
  const columnPotential = Array.from({ length: columns + 1 }, () => 0);
  const rowOf = Array.from({ length: columns + 1 }, () => 0);
  for (let row = 1; row <= rows; row++) {
    rowOf[0] = row;
    const slack = Array.from({ length: columns + 1 }, () => Infinity);
    const from = Array.from({ length: columns + 1 }, () => 0);
    const done = Array.from({ length: columns + 1 }, () => false);
    let at = 0;
    while (rowOf[at] !== 0) {
      done[at] = true;
      const current = rowOf[at]!;
      let [next, least] = [0, Infinity];
      for (let column = 1; column <= columns; column++) {
        if (done[column]) continue;
        const cost = -scores[current - 1]![column - 1]! - rowPotential[current]! - columnPotential[column]!;
        if (cost < slack[column]!) [slack[column], from[column]] = [cost, at];
        if (slack[column]! < least) [next, least] = [column, slack[column]!];
      }
      for (let column = 0; column <= columns; column++) {
        if (done[column]) {
          rowPotential[rowOf[column]!]! += least;
          columnPotential[column]! -= least;
        } else slack[column]! -= least;
      }
      at = next;
    }
    while (at !== 0) {
      const before = from[at]!;
      rowOf[at] = rowOf[before]!;
      at = before;
    }
  }
  return rowOf.reduce(
    (sum, row, column) => (column > 0 && row > 0 ? sum + scores[row - 1]![column - 1]! : sum),
    0,
  );
}
