import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { algorithmSchema, computeAdvantages, refuseAlgorithm } from '../../../../core/algorithms/index.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import type { MethodContext } from '../../../../core/algorithms/method.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { taskGroup } from '../../../support/task-group.ts';

const specOf = (over: object = {}) => algorithmSchema.parse({ kind: 'agentq', margin: 0, ...over });

/** Turns of two tokens, which say the action, and observations of one; the first `inherited` are another sample's. */
function sample(actions: readonly number[], reward: number | null, inherited = 0, paid = 0): Sample {
  const tokens = actions.flatMap((action) => [action, action, 100]);
  const turns = actions.map((_, k) => ({ start: 3 * k, end: 3 * k + 2, reward: paid, state: '' }));
  return {
    reward,
    success: reward === null ? null : reward > 0.5,
    tokens,
    mask: tokens.map((token, at) => (token === 100 || at < 3 * inherited ? 0 : 1)),
    before: turns.slice(0, inherited),
    turns: turns.slice(inherited),
    samplerLogprobs: tokens.map(() => -1),
    scores: {},
    truncated: false,
  };
}
const group = (samples: Sample[]): TaskGroup => taskGroup(samples);

/** Each half of a pair as the turns that lead to it and are its own, with its label. */
const said = (groups: TaskGroup[], over: object = {}) =>
  computeAdvantages(specOf(over), groups).map(({ group: g, sample: s, mask, advantages, pair, label }) => {
    const { tokens } = groups[g]!.samples[s]!;
    expect(advantages).toEqual(mask!.map((bit) => bit * label!));
    const end = mask!.lastIndexOf(1) + 1;
    expect(mask!.slice(end - 2, end)).toEqual([1, 1]);
    expect(mask!.filter((bit) => bit === 1)).toHaveLength(2);
    return { pair, label, turns: tokens.slice(0, end).filter((token) => token !== 100) };
  });

test('of the actions of a state the better is preferred to the worse, and nothing else of the samples counts', () => {
  const samples = [sample([1, 2], 1), sample([1, 3], 0, 1), sample([1, 4], 1, 1), sample([5, 6], 0)];
  expect(said([group(samples)])).toEqual([
    // Of the second turn: 2 and 4 have 1, 3 has 0.
    { pair: 0, label: 1, turns: [1, 1, 2, 2] },
    { pair: 0, label: -1, turns: [1, 1, 3, 3] },
    // Of the first: three samples went through 1, two of them well.
    { pair: 1, label: 1, turns: [1, 1] },
    { pair: 1, label: -1, turns: [5, 5] },
  ]);
});

test('the largest gaps of a task come first, and only those above the margin', () => {
  const samples = [sample([1, 2], 1), sample([1, 3], 0, 1), sample([5], 0.2)];
  expect(said([group(samples)], { pairsPerTask: 1 }).map(({ turns }) => turns)).toEqual([
    [1, 1, 2, 2],
    [1, 1, 3, 3],
  ]);
  expect(said([group(samples)], { margin: 0.4 })).toHaveLength(2);
  expect(said([group(samples)], { margin: 1 })).toEqual([]);
});

test('two actions that were paid the same make no pair, in whatever order and however often they were', () => {
  const amount = fc.constantFrom(0, 0.1, 0.2, 0.3, 0.7, 0.9, 1);
  fc.assert(
    fc.property(
      fc
        .array(amount, { minLength: 1, maxLength: 12 })
        .chain((rewards) =>
          fc.tuple(
            fc.constant(rewards),
            fc.shuffledSubarray(rewards, { minLength: rewards.length }),
            fc.integer({ min: 1, max: 3 }),
          ),
        ),
      ([rewards, shuffled, times]) => {
        const samples = [
          ...rewards.map((reward) => sample([1], reward)),
          ...Array.from({ length: times }, () => shuffled.map((reward) => sample([2], reward))).flat(),
        ];
        expect(said([group(samples)])).toEqual([]);
      },
    ),
  );
  const paid = (action: number, rewards: number[]) => rewards.map((reward) => sample([action], reward));
  expect(said([group([...paid(1, [0, 1, 1]), ...paid(2, [1, 1, 0])])])).toEqual([]);
});

test('a gap that is the margin but for rounding makes no pair', () => {
  expect(said([group([sample([1], 0.3), sample([2], 0.1)])], { margin: 0.2 })).toEqual([]);
  expect(said([group([sample([1], 0.1 + 0.2), sample([2], 0)])], { margin: 0.3 })).toEqual([]);
});

test('with alpha the own rewards of turns count', () => {
  const samples = [sample([1], 1, 0, 0), sample([2], 0, 0, 1)];
  expect(said([group(samples)], { alpha: 0.75 })[0]).toMatchObject({ label: 1, turns: [1, 1] });
  expect(said([group(samples)], { alpha: 0.25 })[0]).toMatchObject({ label: 1, turns: [2, 2] });
});

test('turns behind different beginnings that were forced on them are no choice of the policy', () => {
  const forced = (of: Sample): Sample => ({
    ...of,
    mask: of.mask.map((bit, at) => (at === 0 ? 0 : bit)),
    turns: of.turns.map((turn, k) => (k === 0 ? { ...turn, start: 1 } : turn)),
  });
  const [a, b, c] = [sample([1, 2], 1), sample([5, 6], 0), sample([1, 3], 0)].map(forced);
  expect(computeAdvantages(specOf(), [group([a!, b!])])).toEqual([]);
  // The same beginning, and the same rest of the first turn: they part at the second.
  expect(computeAdvantages(specOf(), [group([a!, b!, c!])]).map(({ mask }) => mask!.indexOf(1))).toEqual([
    3, 3,
  ]);
});

test('a turn that nobody has drawn whose worth is known is in no pair', () => {
  // The sample that drew 1 waits for a verdict; only one that branched off it behind that turn is known.
  expect(said([group([sample([1, 2], null), sample([1, 3], 1, 1), sample([5, 6], 0)])])).toEqual([]);
});

test('the order of samples changes nothing where no two actions are worth the same', () => {
  const actions = fc.array(fc.integer({ min: 1, max: 3 }), { minLength: 1, maxLength: 3 });
  fc.assert(
    fc.property(fc.array(actions, { minLength: 2, maxLength: 6 }), (paths) => {
      // Sums of powers of two are exact, and no two are alike.
      const samples = paths.map((path, i) => sample(path, 2 ** i));
      const distinct = said([group(samples)], { pairsPerTask: 2048 });
      const turned = said([group(samples.toReversed())], { pairsPerTask: 2048 });
      const text = (computed: typeof distinct) =>
        computed.map(({ label, turns }) => `${label}: ${turns.join(' ')}`).toSorted();
      expect(text(turned)).toEqual(text(distinct));
    }),
  );
});

describe('refuses', () => {
  const context: MethodContext = {
    lora: false,
    late: false,
    stored: false,
    lags: null,
    tree: true,
    relabels: false,
    turnRewards: false,
    maxCompletionTokens: 160,
    environments: ['toy'],
  };
  test.each([
    ['no tree to prefer turns in', {}, { tree: false }, 'kind'],
    ['own rewards of turns that nobody pays', { alpha: 0.5 }, {}, 'alpha'],
  ])('%s', (_, over, differs, field) => {
    expect(refuseAlgorithm(specOf(over), { ...context, ...differs })).toMatchObject([{ field }]);
  });
  test('nothing else', () => {
    expect(refuseAlgorithm(specOf(), context)).toEqual([]);
    expect(refuseAlgorithm(specOf({ alpha: 0.5 }), { ...context, turnRewards: true })).toEqual([]);
    expect(refuseAlgorithm(specOf(), { ...context, tree: false, stored: true })).toEqual([]);
  });
});
