import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { stepAdvantages } from '../../../../core/algorithms/step-advantages.ts';
import { taskGroups } from '../../../../core/algorithms/task-group.ts';
import { METHOD_KINDS } from '../../../../core/algorithms/index.ts';
import { reweigh } from '../../../../core/algorithms/reweigh.ts';
import type { ReweighableStep } from '../../../../core/algorithms/reweigh.ts';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';
import { composeReward } from '../../../../core/episode/reward.ts';
import type { VerdictOfVerifier } from '../../../../core/episode/reward.ts';
import { ensembleVerdict } from '../../../../core/reward/ensemble.ts';
import { ruleVerdicts } from '../../../../core/reward/rules.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';
import { algorithmWith } from '../../../support/algorithm.ts';
import { propertyRuns } from '../../../support/property-runs.ts';

// Episodes with what verifiers said of them are drawn; a reward composes them, as the verification of a group does. What
// another reward would have composed is then known without any recomposition.

const score = fc.option(fc.constantFrom(0, 0.25, 0.5, 1), { freq: 8 });
const weight = fc.constantFrom(0, 0.1, 0.25, 0.5, 1, 2);
const gate = fc.constantFrom(null, 'right');

/** What was said of an episode, whatever it is worth. */
interface Judged {
  episode: Omit<Episode, 'outcome' | 'task' | 'sample'>;
  said: Record<'right' | 'form' | 'shape' | 'one' | 'two', number | null>;
  steps: number[];
  ends: 'scored' | 'truncated' | 'failed';
}

const judged: fc.Arbitrary<Judged> = fc
  .record({
    lengths: fc.array(fc.integer({ min: 1, max: 4 }), { minLength: 1, maxLength: 3 }),
    said: fc.record({
      right: fc.option(fc.constantFrom(0, 1), { freq: 10 }),
      form: score,
      shape: score,
      one: score,
      two: score,
    }),
    step: fc.constantFrom(0, 0.5, 1),
    ends: fc.constantFrom('scored' as const, 'scored' as const, 'truncated' as const, 'failed' as const),
    logprob: fc.constantFrom(-0.5, -1, -2),
  })
  .map(({ lengths, said, step, ends, logprob }) => {
    const mask: (0 | 1)[] = [];
    const turns: Episode['turns'] = [];
    for (const length of lengths) {
      const start = mask.length;
      mask.push(...Array<1>(length).fill(1));
      turns.push({
        start,
        end: mask.length,
        text: 'a turn',
        action: { kind: 'answer', answer: String(length) },
        observation: { text: 'seen' },
      });
      mask.push(0);
    }
    return {
      episode: {
        tokens: mask.map((_, i) => i),
        mask,
        samplerLogprobs: mask.map((bit) => bit * logprob),
        turns,
        status:
          ends === 'truncated' ? { kind: 'truncated', limit: 'tokens' } : { kind: 'answered', answer: 'x' },
      },
      said,
      steps: lengths.map((_, i) => (i % 2 === 0 ? step : 1)),
      ends,
    };
  });

const reward: fc.Arbitrary<RewardSpec> = fc
  .record({
    weights: fc.tuple(fc.constantFrom(0.5, 1, 2), weight, weight, weight),
    gates: fc.tuple(gate, gate, gate),
    role: fc.constantFrom('bonus' as const, 'penalty' as const),
    by: fc.constantFrom('minimum' as const, 'mean-deviation' as const),
    deviations: fc.constantFrom(0.5, 1),
    target: fc.constantFrom(1, 3, 6),
    ofTurns: fc.constantFrom('minimum' as const, 'mean' as const, 'turns' as const),
    truncated: fc.constantFrom('train' as const, 'mask' as const),
    normalized: fc.boolean(),
    rule: fc.constantFrom(0.1, 0.4),
  })
  .map(({ weights, gates, role, by, deviations, target, ofTurns, truncated, normalized, rule }) => ({
    components: [
      { verifier: 'right', role: 'outcome' as const, weight: weights[0], gatedBy: null },
      { verifier: 'form', role, weight: weights[1], gatedBy: gates[0] },
      { verifier: 'shape', role: 'penalty' as const, weight: weights[2], gatedBy: gates[1] },
      { verifier: 'both', role: 'bonus' as const, weight: weights[3], gatedBy: null },
    ],
    ensembles: [{ name: 'both', verifiers: ['one', 'two'], by, deviations }],
    rules: [
      { kind: 'linear-length' as const, target, limit: target + 6, weight: rule, gatedBy: gates[2] },
      { kind: 'process' as const, verifier: 'shape', by: ofTurns, weight: rule, gatedBy: null },
      { kind: 'confidence' as const, weight: rule, gatedBy: gates[2] },
    ],
    truncated,
    ...(normalized && { normalization: 'environment' as const }),
  }));

function outcomeBy(spec: RewardSpec, { episode, said, steps, ends }: Judged): Outcome {
  if (ends === 'failed') return { kind: 'failed', boundary: 'infra', reason: 'a machine was lost' };
  const verdictOf = (verifier: string): VerdictOfVerifier => ({
    verifier,
    version: '1',
    score: said[verifier as keyof Judged['said']],
    ...(verifier === 'shape' && { steps }),
  });
  const verdicts = spec.components.map(({ verifier }) => {
    const ensemble = spec.ensembles?.find(({ name }) => name === verifier);
    return ensemble ? ensembleVerdict(ensemble, ensemble.verifiers.map(verdictOf)) : verdictOf(verifier);
  });
  const composed = composeReward(spec, [
    ...verdicts,
    ...ruleVerdicts(spec.rules ?? [], [{ episode, verdicts }])[0]!,
  ]);
  return composed.kind === 'scored' && ends === 'truncated'
    ? { ...composed, kind: 'truncated', limit: 'tokens' }
    : composed;
}

const groupsBy = (spec: RewardSpec, drawn: readonly (readonly Judged[])[]): RolloutGroup[] =>
  drawn.map((samples, group) => ({
    id: `group-000${group}`,
    weights: 'w',
    temperature: 1,
    tasks: [
      {
        ref: { environment: group % 2 === 0 ? 'even' : 'odd', split: 'train', level: 1, index: group },
        prompt: 'task',
        promptTokens: [1, 2],
      },
    ],
    episodes: samples.map((one, sample) => ({
      ...one.episode,
      sample,
      task: 0,
      outcome: outcomeBy(spec, one),
    })),
  })) as RolloutGroup[];

/** What models would have scored: some number a token. */
function scoresOf(groups: readonly RolloutGroup[], { truncated }: RewardSpec) {
  const credited = taskGroups(groups)
    .flatMap(({ samples }) => samples)
    .filter(
      ({ outcome }) => outcome?.kind === 'scored' || (outcome?.kind === 'truncated' && truncated === 'train'),
    );
  const values = (times: number) =>
    Float32Array.from(credited.flatMap(({ tokens }) => tokens.map((token) => times * (token + 1))));
  return { values: values(0.1), reference: values(-0.2), policy: values(-0.3) };
}

const stepOf = (
  spec: RewardSpec,
  drawn: readonly (readonly Judged[])[],
  kind: (typeof METHOD_KINDS)[number],
): ReweighableStep => {
  const groups = groupsBy(spec, drawn);
  const written = kind === 'opd' ? { kind, teachers: [{ from: 'other' }] } : { kind };
  return {
    groups,
    greedy: groupsBy(
      spec,
      drawn.map(([first]) => [first!]),
    ),
    scores: scoresOf(groups, spec),
    algorithm: algorithmWith(written).algorithm,
    keepGroups: 1,
  };
};

const drawn = fc.array(fc.array(judged, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 3 });

describe.each(METHOD_KINDS)('%s', (kind) => {
  test('a step that is re-weighed by its own reward stays as it is', () => {
    fc.assert(
      fc.property(drawn, reward, (samples, spec) => {
        const done = reweigh(stepOf(spec, samples, kind), { from: spec, to: structuredClone(spec) });
        expect([done.otherwiseComposed, done.unscored]).toEqual([0, 0]);
        for (const { deviation, teaches, episodes } of done.tasks) {
          expect([deviation.after, teaches.after]).toEqual([deviation.before, teaches.before]);
          for (const one of episodes) {
            expect([one.reward.after, one.advantage.after, one.outcome.after, one.flipped]).toEqual([
              one.reward.before,
              one.advantage.before,
              one.outcome.before,
              0,
            ]);
          }
        }
      }),
      { numRuns: propertyRuns(40) },
    );
  });

  test('by another reward it is what it would have been, had it been judged by that one', () => {
    fc.assert(
      fc.property(drawn, reward, reward, (samples, from, to) => {
        // What was masked has no scores: those are another test's.
        fc.pre(from.truncated === 'train');
        const before = stepOf(from, samples, kind);
        const after = stepOf(to, samples, kind);
        const done = reweigh(before, { from, to });
        // An abstention keeps nothing of what else was said; it is one by any reward with a weight for the outcome.
        const anew = reweigh(
          {
            ...after,
            // As they were scored, for those that are still learnt from.
            scores: scoresOf(after.groups, to),
          },
          { from: to, to },
        );
        expect(done.tasks.map(({ deviation, teaches }) => [deviation.after, teaches.after])).toEqual(
          anew.tasks.map(({ deviation, teaches }) => [deviation.before, teaches.before]),
        );
        expect(
          done.tasks.flatMap(({ episodes }) =>
            episodes.map((one) => [one.reward.after, one.advantage.after]),
          ),
        ).toEqual(
          anew.tasks.flatMap(({ episodes }) =>
            episodes.map((one) => [one.reward.before, one.advantage.before]),
          ),
        );
      }),
      { numRuns: propertyRuns(60) },
    );
  });
});

/** All weights times a number. */
const scaledBy = (spec: RewardSpec, factor: number): RewardSpec => ({
  ...spec,
  components: spec.components.map((one) => ({ ...one, weight: factor * one.weight })),
  rules: spec.rules!.map((rule) => ({ ...rule, weight: factor * rule.weight })),
});

test.each(['grpo', 'rloo', 'dapo'] as const)('no sign of %s depends on the unit of rewards', (kind) => {
  fc.assert(
    fc.property(drawn, reward, (samples, from) => {
      const { tasks } = reweigh(stepOf(from, samples, kind), { from, to: scaledBy(from, 4) });
      for (const { teaches, episodes } of tasks) {
        expect(teaches.after).toBe(teaches.before);
        expect(episodes.reduce((sum, { flipped }) => sum + flipped, 0)).toBe(0);
      }
    }),
  );
});

test('a bonus of more weight takes nothing off any reward, and a penalty of more adds nothing', () => {
  fc.assert(
    fc.property(drawn, reward, fc.constantFrom(1, 2), (samples, from, at) => {
      const to = structuredClone(from);
      to.components[at]!.weight += 0.75;
      const { tasks } = reweigh(stepOf(from, samples, 'grpo'), { from, to });
      const sign = from.components[at]!.role === 'penalty' ? -1 : 1;
      for (const { reward: one } of tasks.flatMap(({ episodes }) => episodes)) {
        if (one.before !== null) expect(sign * (one.after! - one.before)).toBeGreaterThanOrEqual(-1e-12);
      }
    }),
  );
});

const plain = (weight: number): RewardSpec => ({
  components: [
    { verifier: 'right', role: 'outcome', weight: 1, gatedBy: null },
    { verifier: 'form', role: 'bonus', weight, gatedBy: null },
  ],
  truncated: 'train',
});
const [sampleOne] = fc.sample(judged, { numRuns: 1, seed: 1 });
const said = (right: number, form: number, ends: Judged['ends'] = 'scored'): Judged => ({
  ...sampleOne!,
  said: { right, form, shape: 1, one: 1, two: 1 },
  ends,
});

test('a group whose samples differ in a bonus alone stops teaching when that is worth nothing, and begins when it is', () => {
  const samples = [[said(0, 0), said(0, 1)]];
  const stops = reweigh(stepOf(plain(0.5), samples, 'grpo'), { from: plain(0.5), to: plain(0) });
  expect(stops.tasks[0]!.teaches).toEqual({ before: true, after: false });
  expect(stops.tasks[0]!.deviation).toEqual({ before: Math.sqrt(0.125), after: 0 });
  const begins = reweigh(stepOf(plain(0), samples, 'grpo'), { from: plain(0), to: plain(0.5) });
  expect(begins.tasks[0]!.teaches).toEqual({ before: false, after: true });
});

test('advantages flip where the bonus outweighs what decided, on all tokens that were sampled', () => {
  const samples = [[said(1, 0), said(0, 1)]];
  const { tasks } = reweigh(stepOf(plain(0.5), samples, 'grpo'), { from: plain(0.5), to: plain(2) });
  const taught = sampleOne!.episode.mask.filter((bit) => bit === 1).length;
  for (const { advantage, tokens, flipped } of tasks[0]!.episodes) {
    expect(Math.sign(advantage.after!)).toBe(-Math.sign(advantage.before!));
    expect([tokens, flipped]).toEqual([taught, taught]);
  }
});

test('what was never scored by a model is left out, and counted', () => {
  const samples = [[said(1, 0), said(0, 1), said(1, 1, 'truncated')]];
  const masked: RewardSpec = { ...plain(0.5), truncated: 'mask' };
  const done = reweigh(stepOf(masked, samples, 'ppo'), { from: masked, to: plain(0.5) });
  expect(done.unscored).toBe(1);
  expect(done.tasks[0]!.episodes[2]!.advantage).toEqual({ before: null, after: null });
  // A method that compares rewards alone needs no scores.
  const { scores: _, ...unscored } = stepOf(masked, samples, 'grpo');
  const compared = reweigh({ ...unscored, scores: {} }, { from: masked, to: plain(0.5) });
  expect(compared.tasks[0]!.episodes[2]!.advantage.after).not.toBeNull();
});

test('what was learnt late is the difference of two advantages by the changed reward', () => {
  const [from, to] = [plain(0.5), plain(0)];
  const before = [said(0, 0), said(0, 1)];
  const after = [said(1, 0), said(0, 1)];
  const late = (spec: RewardSpec): RolloutGroup[] => {
    const [was] = groupsBy(spec, [before]);
    return groupsBy(spec, [after]).map((group) => ({
      ...group,
      episodes: group.episodes.map((episode, i) => ({ ...episode, learntAs: was!.episodes[i]!.outcome! })),
    }));
  };
  const { algorithm } = algorithmWith({ kind: 'grpo' });
  const { tasks } = reweigh({ groups: late(from), greedy: [], scores: {}, algorithm }, { from, to });
  const anew = stepAdvantages(late(to), { algorithm, reward: to });
  const { advantages } = anew.groups[0]!;
  expect(advantages).toHaveLength(2);
  tasks[0]!.episodes.forEach(({ advantage }, i) => {
    expect(advantage.after).toBe(advantages[i]!.advantages[0]);
    expect(advantage.after).not.toBe(advantage.before);
  });
});

test.each([
  { kind: 'grpo', scaleRewards: 'none' },
  { kind: 'rloo' },
  { kind: 'gigpo', scaleRewards: 'none' },
  { kind: 'reinforce++' },
] as const)(
  'rewards that are all equal teach nothing by $kind, whatever their mean is rounded to',
  (written) => {
    // Eight times 1.1, or three times 0.1, divided by as many is another number.
    const [from, to] = [plain(0.1), plain(0.1 + 1e-17)];
    for (const count of [3, 5, 6, 7, 8]) {
      const equal = Array.from({ length: count }, () => said(1, 1));
      const others = [said(1, 0), said(0, 1), said(0, 0.5)];
      for (const drawn of [[equal], [equal, others]]) {
        const groups = groupsBy(from, drawn);
        const { algorithm } = algorithmWith(written);
        const { tasks } = reweigh({ groups, greedy: [], scores: {}, algorithm }, { from, to });
        expect([count, tasks[0]!.teaches.before, tasks[0]!.deviation.before]).toEqual([count, false, 0]);
        expect(tasks.slice(1).map(({ teaches }) => teaches.before)).toEqual(drawn.slice(1).map(() => true));
      }
    }
  },
);
