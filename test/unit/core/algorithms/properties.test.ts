import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  algorithmSchema,
  computeAdvantages,
  METHOD_KINDS,
  planAlgorithm,
} from '../../../../core/algorithms/index.ts';
import type { TaskGroup } from '../../../../core/algorithms/task-group.ts';
import type { SampleAdvantages } from '../../../../core/algorithms/advantage.ts';
import type { Sample } from '../../../../core/algorithms/sample.ts';
import { lossOf } from '../../../../engine/learner/losses/index.ts';
import { taskGroup } from '../../../support/task-group.ts';

const logprob = fc.double({ min: -8, max: -0.01, noNaN: true });
const small = fc.double({ min: -2, max: 2, noNaN: true });

const withRewards = (turns: readonly { start: number; end: number }[], paid: number[], states: string[]) =>
  turns.map((turn, k) => ({ ...turn, reward: paid[k]!, state: states[k]! }));

/** Turns of one to four tokens, observations of none to three between them; the last turn may be cut by a limit. */
const sample = fc
  .record({
    reward: fc.option(fc.double({ min: -1, max: 1, noNaN: true }), { freq: 4 }),
    shape: fc.array(fc.tuple(fc.integer({ min: 1, max: 4 }), fc.nat(3)), { minLength: 1, maxLength: 4 }),
    truncated: fc.boolean(),
    branched: fc.nat(3),
  })
  .chain(({ reward, shape, truncated, branched }) => {
    const mask: (0 | 1)[] = [];
    const turns: { start: number; end: number }[] = [];
    for (const [tokens, observed] of shape) {
      turns.push({ start: mask.length, end: mask.length + tokens });
      mask.push(...Array<1>(tokens).fill(1), ...Array<0>(observed).fill(0));
    }
    // What branched off has a turn of its own at least.
    const inherited = Math.min(branched, turns.length - 1);
    mask.fill(0, 0, turns[inherited]!.start);
    const stream = (of: fc.Arbitrary<number>) =>
      fc.array(of, { minLength: mask.length, maxLength: mask.length });
    return fc
      .record({
        tokens: stream(fc.constantFrom(1, 2)),
        samplerLogprobs: stream(logprob),
        values: stream(small),
        reference: stream(logprob),
        policy: stream(logprob),
        turnRewards: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), {
          minLength: turns.length,
          maxLength: turns.length,
        }),
        states: fc.array(fc.constantFrom('', 'a', 'b'), { minLength: turns.length, maxLength: turns.length }),
      })
      .map(({ tokens, samplerLogprobs, turnRewards, states, ...scores }): Sample => ({
        reward,
        success: reward === null ? null : reward > 0,
        tokens,
        mask,
        samplerLogprobs,
        scores,
        truncated,
        before: withRewards(turns, turnRewards, states).slice(0, inherited),
        turns: withRewards(turns, turnRewards, states).slice(inherited),
      }));
  });

const group: fc.Arbitrary<TaskGroup> = fc
  .record({
    environment: fc.constantFrom('calculator', 'molecules'),
    hindsight: fc.boolean(),
    samples: fc.array(sample, { minLength: 1, maxLength: 5 }),
    greedy: fc.option(fc.double({ min: 0, max: 1, noNaN: true })),
  })
  .map(({ samples, greedy, ...more }) => taskGroup(samples, { ...more, ...(greedy !== null && { greedy }) }));
const step = fc.array(group, { minLength: 1, maxLength: 4 });

/** As many pairs and successes as there are, so that none depends on its place. */
const WRITTEN: Record<string, object> = {
  rft: { mostPerTask: 4096, negatives: 0.5, distinct: false },
  hindsight: { mostPerTask: 4096 },
  dpo: { pairsPerTask: 2048 },
  agentq: { pairsPerTask: 2048, margin: 0, alpha: 0.5 },
  ppo: { klCoefficient: 0.1 },
  'starpo-s': { keepGroups: 1 },
  opd: {
    teachers: ['calculator', 'molecules'].map((name) => ({ from: name, environments: [name] })),
  },
  'reinforce++': { baseline: 'none', klCoefficient: 0.1 },
};
const SAMPLING = { temperature: 1, topK: 0, topP: 1, maxTurns: 8, maxCompletionTokens: 160 };
const specOf = (kind: string) => algorithmSchema.parse({ kind, ...WRITTEN[kind] });

/** Advantages by the sample that they are of. */
const said = (computed: readonly SampleAdvantages[], groups: readonly TaskGroup[]) =>
  new Map(
    computed
      .filter(({ label }) => label !== 0)
      .map((entry) => [groups[entry.group]!.samples[entry.sample]!, entry] as const),
  );

const close = (a: readonly number[] | undefined, b: readonly number[] | undefined): void => {
  expect(a?.length).toBe(b?.length);
  a?.forEach((value, t) => expect(value).toBeCloseTo(b![t]!, 8));
};

function sameAdvantages(
  [a, ofA]: [readonly SampleAdvantages[], readonly TaskGroup[]],
  [b, ofB]: [readonly SampleAdvantages[], readonly TaskGroup[]],
): void {
  const [one, other] = [said(a, ofA), said(b, ofB)];
  expect(one.size).toBe(other.size);
  for (const [of, entry] of one) {
    const same = other.get(of);
    expect(same).toBeDefined();
    close(entry.advantages, same!.advantages);
    close(entry.returns, same!.returns);
    expect(entry.label).toBe(same!.label);
    expect(entry.teacher).toBe(same!.teacher);
  }
}

describe.each(METHOD_KINDS.map((kind) => [kind] as const))('%s', (kind) => {
  const spec = specOf(kind);

  test('teaches finite numbers, and nothing where the policy sampled nothing', () => {
    fc.assert(
      fc.property(step, (groups) => {
        for (const { group: g, sample: s, advantages, returns } of computeAdvantages(spec, groups)) {
          const { mask, reward } = groups[g]!.samples[s]!;
          expect(reward).not.toBeNull();
          for (const stream of [advantages, ...(returns ? [returns] : [])]) {
            expect(stream).toHaveLength(mask.length);
            expect(stream.every((value, t) => Number.isFinite(value) && (mask[t] === 1 || value === 0))).toBe(
              true,
            );
          }
        }
      }),
    );
  });

  test('learns the same with and without samples that have no reward, wherever they stand', () => {
    fc.assert(
      fc.property(step, (groups) => {
        const without = groups.map(({ samples, ...rest }) => ({
          ...rest,
          samples: samples.filter(({ reward }) => reward !== null),
        }));
        sameAdvantages(
          [computeAdvantages(spec, groups), groups],
          [computeAdvantages(spec, without), without],
        );
      }),
    );
  });

  // Of samples that drew the same turn the first speaks for all: agentq.test.ts compares turns.
  if (kind !== 'agentq')
    test('learns the same in any order of tasks and samples', () => {
      fc.assert(
        fc.property(step, (groups) => {
          const rewards = groups.flatMap(({ samples }) => samples.map(({ reward }) => reward));
          // Of equal ones a pair takes those that stand first.
          fc.pre(new Set(rewards).size === rewards.length || kind !== 'dpo');
          const turned = groups
            .toReversed()
            .map(({ samples, ...rest }) => ({ ...rest, samples: samples.toReversed() }));
          sameAdvantages(
            [computeAdvantages(spec, groups), groups],
            [computeAdvantages(spec, turned), turned],
          );
        }),
      );
    });

  test('has the learner hold a reference where its loss reads one, and nowhere else', () => {
    const held = [spec, ...('beta' in spec ? [algorithmSchema.parse({ ...spec, beta: 0.5 })] : [])];
    for (const { objective, reference } of held.map((one) => planAlgorithm(one, SAMPLING))) {
      expect(reference).toBe(lossOf(objective).reads(true).includes('reference'));
    }
  });

  test('asks for what it reads: without the scores of its plan there are no advantages, and without others there are', () => {
    const { scores } = planAlgorithm(spec, SAMPLING);
    fc.assert(
      fc.property(step, (groups) => {
        fc.pre(groups.some(({ samples }) => samples.some(({ reward }) => reward !== null)));
        const only = (names: readonly string[]) =>
          groups.map(({ samples, ...rest }) => ({
            ...rest,
            samples: samples.map((of) => ({
              ...of,
              scores: Object.fromEntries(Object.entries(of.scores).filter(([name]) => names.includes(name))),
            })),
          }));
        expect(computeAdvantages(spec, only(scores))).toEqual(computeAdvantages(spec, groups));
        for (const missing of scores) {
          const rest = scores.filter((name) => name !== missing);
          expect(() => computeAdvantages(spec, only(rest))).toThrow(`the method needs ${missing}`);
        }
      }),
    );
  });
});
