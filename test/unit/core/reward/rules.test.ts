import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ruleName, ruleVerdicts } from '../../../../core/reward/rules.ts';
import type { JudgedSample } from '../../../../core/reward/rule.ts';
import type { RewardRule } from '../../../../core/schema/reward-rules.ts';
import { sample, verdict } from './samples.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

const plain = { weight: 1, gatedBy: null };
const linear: RewardRule = { kind: 'linear-length', target: 10, limit: 20, ...plain };
const sigmoid: RewardRule = { kind: 'sigmoid-length', target: 10, scale: 4, ...plain };
const overlong: RewardRule = { kind: 'overlong', limit: 20, buffer: 5, ...plain };
const majority: RewardRule = { kind: 'agreement', by: 'majority', ...plain };
const share: RewardRule = { kind: 'agreement', by: 'share', ...plain };
const confidence: RewardRule = { kind: 'confidence', ...plain };
const diversity = (of: 'answer' | 'calls', by: 'count' | 'similarity'): RewardRule => ({
  kind: 'diversity',
  of,
  by,
  ...plain,
});
const process = (by: 'minimum' | 'product' | 'mean' | 'turns'): RewardRule => ({
  kind: 'process',
  verifier: 'prm',
  by,
  ...plain,
});

/** What one rule says of each sample; undefined where it does not speak of it. */
const scores = (rule: RewardRule, samples: readonly JudgedSample[]) =>
  ruleVerdicts([rule], samples).map(([said]) => said?.score);
const answers = (...all: (string | null)[]): JudgedSample[] => all.map((answer) => sample({ answer }));

describe('length', () => {
  test.each<[RewardRule, number, number]>([
    [linear, 0, 1],
    [linear, 10, 1],
    [linear, 11, 0.9],
    [linear, 19, 0.1],
    [linear, 20, 0],
    [linear, 500, 0],
    [sigmoid, 10, 0.5],
    [sigmoid, 14, 1 / (1 + Math.E)],
    [sigmoid, 6, 1 / (1 + 1 / Math.E)],
    // Equation 13 of DAPO plus 1, with L_max = 20 and L_cache = 5.
    [overlong, 15, 1],
    [overlong, 16, 0.8],
    [overlong, 19, 0.2],
    [overlong, 20, 0],
    [overlong, 21, 0],
  ])('%j of %i tokens scores %f', (rule, sampled, expected) => {
    expect(scores(rule, [sample({ sampled })])[0]).toBeCloseTo(expected, 12);
  });

  test('is what the policy wrote, but for the limit of everything after the prompt', () => {
    const observing = [sample({ sampled: 8, observed: 8 })];
    expect(scores(linear, observing)).toEqual([1]);
    expect(scores(overlong, observing)[0]).toBeCloseTo(0.8, 12);
  });

  test('leaves out what an agent has of a prompt of its own, before its first turn', () => {
    const said = sample({ sampled: 16, calls: [['add', '1']] });
    const { tokens, mask, turns } = said.episode;
    const read = Array.from({ length: 30 }, () => 7);
    const behind = {
      ...said.episode,
      tokens: [...read, ...tokens],
      mask: [...read.map(() => 0 as const), ...mask],
      turns: turns.map((turn) => ({ ...turn, start: 30, end: 46 })),
    };
    expect(scores(overlong, [{ ...said, episode: behind }])[0]).toBeCloseTo(0.8, 12);
  });

  test('never scores longer ones higher, and stays in [0, 1]', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(linear, sigmoid, overlong),
        fc.array(fc.nat(100_000), { minLength: 2, maxLength: 2 }),
        (rule, lengths) => {
          const [short, long] = lengths.toSorted((a, b) => a - b);
          const [one, other] = scores(rule, [sample({ sampled: short! }), sample({ sampled: long! })]);
          expect(one).toBeGreaterThanOrEqual(other!);
          expect(other).toBeGreaterThanOrEqual(0);
          expect(one).toBeLessThanOrEqual(1);
        },
      ),
      { numRuns: propertyRuns(50) },
    );
  });
});

describe('agreement', () => {
  test('by majority pays the answer that leads, and nothing where none does', () => {
    expect(scores(majority, answers('4', '4', '5', null))).toEqual([1, 1, 0, 0]);
    expect(scores(majority, answers('4', '4', '5', '5'))).toEqual([null, null, null, null]);
    expect(scores(majority, answers('1', '2', '3'))).toEqual([null, null, null]);
    expect(scores(majority, answers('1'))).toEqual([null]);
    expect(scores(majority, answers(null, null))).toEqual([null, null]);
  });

  test('by share pays each answer for the others that say the same', () => {
    expect(scores(share, answers('4', '4', '4', '5', null))).toEqual([0.5, 0.5, 0.5, 0, 0]);
    expect(scores(share, answers('4'))).toEqual([null]);
  });

  test('is of what answers come down to, as the first verifier says that knows', () => {
    const [half, same, other] = ['1/2', '0.5', '1/3'].map((answer, i) =>
      sample({
        answer,
        verdicts: [verdict('format'), verdict('math', { canonical: i === 2 ? '1/3' : '1/2' })],
      }),
    );
    expect(scores(majority, [half!, same!, other!])).toEqual([1, 1, 0]);
    expect(scores(majority, answers('a  b', ' a b', 'c'))).toEqual([1, 1, 0]);
    expect(scores(majority, answers('１９', '19', '1⁹'))).toEqual([1, 1, 0]);
  });

  test('pays nobody for an answer that comes down to nothing, however many samples give it', () => {
    for (const empty of ['', ' \n', '\u200b', '\u2060\u00ad']) {
      expect(scores(majority, answers(empty, empty, empty, '5'))).toEqual([null, null, null, null]);
      expect(scores(majority, answers(empty, empty, empty, '5', '5'))).toEqual([0, 0, 0, 1, 1]);
      expect(scores(share, answers(empty, empty, empty))).toEqual([0, 0, 0]);
    }
    const unread = sample({ answer: 'I do not know', verdicts: [verdict('math', { canonical: '' })] });
    expect(scores(majority, [unread, unread, unread])).toEqual([null, null, null]);
    expect(scores(diversity('answer', 'count'), [unread])).toEqual([0]);
  });

  test('that is unanimous pays all alike, also for what is wrong: nothing tells the two apart', () => {
    expect(scores(majority, answers('0', '0', '0'))).toEqual([1, 1, 1]);
  });
});

describe('confidence', () => {
  test('is exp of the mean log-prob of sampled tokens, observations left out', () => {
    const sure = sample({ answer: '4', logprob: -0.1, observed: 50 });
    const unsure = sample({ answer: '4', logprob: -2 });
    const [one, other] = scores(confidence, [sure, unsure]);
    expect(one).toBeCloseTo(Math.exp(-0.1), 12);
    expect(other).toBeCloseTo(Math.exp(-2), 12);
  });

  test('pays nothing for silence, and never more than 1 for rounding', () => {
    expect(scores(confidence, [sample({ answer: null, logprob: 0 })])).toEqual([0]);
    expect(scores(confidence, [sample({ answer: '4', sampled: 0 })])).toEqual([null]);
    expect(scores(confidence, [sample({ answer: '4', logprob: 1e-9 })])).toEqual([1]);
  });
});

describe('diversity', () => {
  test('by count is worth less, the more samples say the same', () => {
    const said = scores(diversity('answer', 'count'), answers('C', 'C', 'C', 'C', 'N', null));
    expect(said).toEqual([0.5, 0.5, 0.5, 0.5, 1, 0]);
  });

  test('by similarity is worth what others do not share', () => {
    const rule = diversity('answer', 'similarity');
    expect(scores(rule, answers('C', 'C', 'C'))).toEqual([0, 0, 0]);
    expect(scores(rule, answers('abc', 'xyz'))).toEqual([1, 1]);
    expect(scores(rule, answers('abc'))).toEqual([1]);
    const [one, other, far] = scores(rule, answers('CCCCO', 'CCCCN', 'N#N'));
    expect(one).toBeLessThan(far!);
    expect(one).toBe(other);
    // Two of three have the same text: of theirs the other half is shared by one.
    expect(scores(rule, answers('abc', 'abc', 'xyz'))).toEqual([0.5, 0.5, 1]);
  });

  test('of calls compares what was called, in its order, whatever was answered', () => {
    const rule = diversity('calls', 'count');
    const twice = sample({
      answer: '1',
      calls: [
        ['f', 'a'],
        ['f', 'b'],
      ],
    });
    const otherOrder = sample({
      answer: '1',
      calls: [
        ['f', 'b'],
        ['f', 'a'],
      ],
    });
    expect(scores(rule, [twice, twice, otherOrder, sample()])).toEqual([
      1 / Math.sqrt(2),
      1 / Math.sqrt(2),
      1,
      1,
    ]);
  });
});

describe('process', () => {
  const judged = (steps: number[] | undefined) =>
    sample({ verdicts: [verdict('prm', { score: 0.5, ...(steps && { steps }) })] });

  test.each<['minimum' | 'product' | 'mean' | 'turns', number]>([
    ['minimum', 0.5],
    ['product', 0.25],
    ['mean', 2 / 3],
    ['turns', 2 / 3],
  ])('by %s of the steps 0.5, 1, 0.5 is %f', (by, expected) => {
    expect(scores(process(by), [judged([0.5, 1, 0.5])])[0]).toBeCloseTo(expected, 12);
  });

  test('pays nothing where there was no step, and says nothing where none was scored', () => {
    expect(scores(process('product'), [judged([]), judged(undefined), sample()])).toEqual([0, null, null]);
  });
});

describe('rules', () => {
  const all = [linear, overlong, majority, confidence, diversity('answer', 'similarity'), process('minimum')];
  const arbitrarySample = fc.record({
    answer: fc.constantFrom(null, '1', '2', 'CCO', 'CCN'),
    sampled: fc.nat(30),
    logprob: fc.double({ min: -5, max: 0, noNaN: true }),
    steps: fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 4 }),
  });
  const made = (drawn: { answer: string | null; sampled: number; logprob: number; steps: number[] }) =>
    sample({ ...drawn, verdicts: [verdict('prm', { steps: drawn.steps })] });

  test('score in [0, 1] or say nothing, by a name, a version and evidence of their own', () => {
    fc.assert(
      fc.property(fc.array(arbitrarySample, { minLength: 1, maxLength: 6 }), (drawn) => {
        for (const said of ruleVerdicts(all, drawn.map(made))) {
          expect(said.map(({ verifier }) => verifier)).toEqual(all.map(ruleName));
          for (const { score, version, evidence } of said) {
            expect(version).toMatch(/^1;\{"kind":/);
            expect(evidence).not.toBe('');
            if (score !== null) expect(score >= 0 && score <= 1).toBe(true);
          }
        }
      }),
    );
  });

  test('say the same in any order of the samples', () => {
    fc.assert(
      fc.property(fc.array(arbitrarySample, { minLength: 1, maxLength: 6 }), (drawn) => {
        const samples = drawn.map(made);
        const turned = ruleVerdicts(all, samples.toReversed()).toReversed();
        ruleVerdicts(all, samples).forEach((said, i) =>
          said.forEach(({ score }, r) => {
            const other = turned[i]![r]!.score;
            if (score === null) expect(other).toBeNull();
            else expect(other).toBeCloseTo(score, 12);
          }),
        );
      }),
    );
  });
});
