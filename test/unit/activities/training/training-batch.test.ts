import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { trainingSamples } from '../../../../core/algorithms/training-sample.ts';
import { trainedTokens, packBatch } from '../../../../activities/training/training-batch.ts';
import type { TrainingSample } from '../../../../core/algorithms/training-sample.ts';
import { updatesOf } from '../../../../activities/training/updates.ts';
import { groupRelative } from '../../../support/group-relative.ts';
import type { Episode, RolloutGroup } from '../../../../core/episode/episode.ts';
import { creditBy } from '../../../support/algorithm.ts';
import type { Outcome } from '../../../../core/episode/outcome.ts';

const PROMPT = [90, 91, 92];
const settings = creditBy({});

/** All sequences in one update. */
const once = { minibatch: 64, epochs: 1, seed: 1 };

const scored = (reward: number): Outcome => ({ kind: 'scored', reward, components: [] });
const truncated = (reward: number): Outcome => ({
  kind: 'truncated',
  limit: 'tokens',
  reward,
  components: [],
});
const failed: Outcome = { kind: 'failed', boundary: 'tool', reason: 'x' };

/** Two sampled tokens, an observation, one sampled token. */
function episode(outcome: Outcome, sample: number, task = 0): Episode {
  return {
    sample,
    task,
    tokens: [sample, 11, 12, 13],
    mask: [1, 1, 0, 1],
    samplerLogprobs: [-0.5, -0.25, 0, -1 - sample],
    turns: [],
    status: { kind: 'answered', answer: 'x' },
    outcome,
  };
}
function group(outcomes: Outcome[], ...more: Outcome[][]): RolloutGroup {
  const tasks = [outcomes, ...more];
  return {
    id: 'group-0000',
    weights: 'w',
    temperature: 1,
    tasks: tasks.map((_, index) => ({
      ref: { environment: 'library', split: 'train', level: 1, index },
      prompt: 'p',
      promptTokens: PROMPT,
    })),
    episodes: tasks.flatMap((each, task) => each.map((outcome, sample) => episode(outcome, sample, task))),
  };
}
const advantagesOf = ({ sequences }: { sequences: TrainingSample[] }) =>
  sequences.map(({ streams }) => streams.advantages![PROMPT.length]!);

test('what others are only compared with is not counted as learnt', () => {
  const two = [group([scored(0), scored(1)]), group([scored(1), scored(0)])];
  const kto = creditBy({ kind: 'kto' });
  // What succeeds is told by the outcome's verifier.
  const outcome = { verifier: 'exact', role: 'outcome' as const, weight: 1, gatedBy: null };
  const judged = { ...kto.reward, components: [outcome] };
  const { sequences } = trainingSamples(two, { ...kto, reward: judged });
  // Each of the four after the other prompt, too: its prompt is as long.
  expect(sequences.filter(({ label }) => label === 0)).toHaveLength(4);
  expect(trainedTokens(packBatch(sequences, once))).toBe(4 * 3);
  const plain = trainingSamples(two, settings);
  expect(trainedTokens(packBatch(plain.sequences, once))).toBe(4 * 3);
});

test('tokens that taught are those whose advantage is not zero, each once', () => {
  const mixed = group([scored(0), scored(1)], [scored(1), scored(1)]);
  // Of four episodes of three sampled tokens, those of the second task learn nothing.
  expect(trainingSamples([mixed], settings).taughtTokens).toBe(2 * 3);
  expect(trainingSamples([group([scored(1), scored(1)])], settings).taughtTokens).toBe(0);
  const dpo = creditBy({ kind: 'dpo' });
  const three = trainingSamples([group([scored(0), scored(1), scored(0)])], dpo);
  // One pair of the three.
  expect(three.sequences).toHaveLength(2);
  expect(three.taughtTokens).toBe(2 * 3);
});

test('rewards on the scale of their environment are told apart within it, and the scales are told', () => {
  const plain = creditBy({ scaleRewards: 'none' });
  const normalized = { ...plain, reward: { ...plain.reward, normalization: 'environment' as const } };
  const loud = group([scored(100), scored(300)]);
  for (const { ref } of loud.tasks) ref.environment = 'loud';
  const quiet = group([scored(0), scored(1)], [scored(1), scored(0)]);
  const { sequences, scales } = trainingSamples([loud, quiet], normalized);
  expect(scales).toMatchObject([
    { environment: 'library', episodes: 4, mean: 0.5 },
    { environment: 'loud', episodes: 2, mean: 200 },
  ]);
  const [loudest, , quietest] = advantagesOf({ sequences }).map(Math.abs);
  expect(loudest).toBeCloseTo(Math.SQRT1_2, 12);
  expect(quietest).toBeCloseTo(0.5 / Math.sqrt(1 / 3), 12);
  // Without it the one environment would decide what is learnt.
  const [asIs, , small] = advantagesOf(trainingSamples([loud, quiet], plain)).map(Math.abs);
  expect(asIs! / small!).toBe(200);
  expect(trainingSamples([loud, quiet], plain).scales).toBeUndefined();
});

test('where part of the groups is kept, those are learnt from whose rewards deviate most', () => {
  const groups = [
    group([scored(0.5), scored(0.4)], [scored(1), scored(0)], [scored(1), scored(1)]),
    group([scored(0.9), scored(0.1)]),
  ];
  const all = trainingSamples(groups, settings);
  const half = trainingSamples(groups, { ...settings, keepGroups: 0.5 });
  expect([all.sequences.length, half.sequences.length]).toEqual([8, 4]);
  expect(half.sequences).toEqual([...all.sequences.slice(2, 4), ...all.sequences.slice(6)]);
  expect(half.degenerateGroups).toBe(all.degenerateGroups);
});

describe('what a step teaches', () => {
  test('is each episode after its prompt, weighted where it was sampled and nowhere else', () => {
    const { sequences, degenerateGroups } = trainingSamples([group([scored(1), scored(0)])], settings);
    expect(degenerateGroups).toBe(0);
    const [a, b] = groupRelative([1, 0], 'group') as number[];
    expect(sequences).toEqual([
      {
        tokens: [...PROMPT, 0, 11, 12, 13],
        mask: [0, 0, 0, 1, 1, 0, 1],
        streams: { advantages: [0, 0, 0, a, a, 0, a], samplerLogprobs: [0, 0, 0, -0.5, -0.25, 0, -1] },
      },
      {
        tokens: [...PROMPT, 1, 11, 12, 13],
        mask: [0, 0, 0, 1, 1, 0, 1],
        // Nothing taught is written as a plain or a negative zero.
        streams: {
          advantages: [0, 0, 0, b, b, expect.closeTo(0, 15), b],
          samplerLogprobs: [0, 0, 0, -0.5, -0.25, 0, -2],
        },
      },
    ]);
  });

  test('is as many episodes as any step may have', () => {
    const samples = Array.from({ length: 4096 }, (_, i) => scored(i % 2));
    const groups = Array.from({ length: 64 }, () => group(samples));
    expect(trainingSamples(groups, settings).sequences).toHaveLength(262_144);
  });

  test('says of what other weights have sampled that it is late', () => {
    const groups = [group([scored(1), scored(0)]), { ...group([scored(1), scored(0)]), weights: 'earlier' }];
    const { sequences } = trainingSamples(groups, { ...settings, policy: 'w' });
    expect([...packBatch(sequences, once).sequences.late!]).toEqual([0, 0, 1, 1]);
    const own = trainingSamples(groups.slice(0, 1), { ...settings, policy: 'w' });
    expect(packBatch(own.sequences, once).sequences.late).toBe(undefined);
  });

  test('says how stale each sequence is where the request says how far the weights are ahead', () => {
    const by = (weights: string) => ({ ...group([scored(1), scored(0)]), weights });
    const groups = [by('w'), by('earlier'), by('forgotten')];
    const asked = { ...settings, policy: 'w', stepsAhead: { earlier: 2 } };
    const { late, staleness } = packBatch(trainingSamples(groups, asked).sequences, once).sequences;
    expect([...staleness!]).toEqual([0, 0, 2, 2, -1, -1]);
    expect([...late!]).toEqual([0, 0, 1, 1, 1, 1]);
    // Where nobody asks the batch is what it was.
    const { sequences } = trainingSamples(groups, { ...settings, policy: 'w' });
    expect(packBatch(sequences, once).sequences).toEqual({ late });
  });

  test('says how stale each token is where turns are of several weights', () => {
    const turn = (start: number, end: number, weights?: string) => ({
      start,
      end,
      text: '',
      action: { kind: 'answer' as const, answer: '' },
      ...(weights !== undefined && { weights }),
    });
    const own = { ...group([scored(1), scored(0)]), weights: 'first' };
    const count = own.episodes[0]!.tokens.length;
    const { prompts, ages } = batchOf([turn(0, 1), turn(1, count, 'second')]);
    expect(ages[0]).toEqual([...prompts, 2, ...Array(count - 1).fill(1)]);
    expect(ages[1]).toEqual([...prompts, 2, ...Array(count - 1).fill(2)]);
    // Whose they are is not known.
    expect(batchOf([turn(0, 1), turn(1, count, 'lost')]).ages[0]!.at(-1)).toBe(-1);
    expect(batchOf([turn(0, 1), turn(1, count)]).streams).not.toHaveProperty('staleness');

    function batchOf(turns: ReturnType<typeof turn>[]) {
      const [episode, other] = own.episodes;
      const groups = [{ ...own, episodes: [{ ...episode!, turns }, other!] }];
      const asked = { ...settings, policy: 'w', stepsAhead: { first: 2, second: 1 } };
      const { sequences, streams, offsets } = packBatch(trainingSamples(groups, asked).sequences, once);
      expect([...sequences.staleness!]).toEqual([2, 2]);
      expect([...sequences.late!]).toEqual([1, 1]);
      const ages = [0, 1].map((i) => [...(streams.staleness?.slice(offsets[i], offsets[i + 1]) ?? [])]);
      return { streams, ages, prompts: own.tasks[0]!.promptTokens.map(() => 0) };
    }
  });

  test('takes along what each token was sampled among', () => {
    const cut = group([scored(1), scored(0)]);
    cut.episodes[0]!.kept = [[0, 4], [11], [], [3, 13, 17]];
    const batch = packBatch(trainingSamples([cut], settings).sequences, once);
    const { ids, offsets } = batch.kept!;
    const sets = Array.from(batch.tokens, (_, i) => [...ids.subarray(offsets[i], offsets[i + 1])]);
    const none = PROMPT.map(() => []);
    expect(sets).toEqual([...none, [0, 4], [11], [], [3, 13, 17], ...none, [], [], [], []]);
    const { sequences } = trainingSamples([group([scored(1), scored(0)])], settings);
    expect(packBatch(sequences, once).kept).toBe(undefined);
  });

  test('leaves episodes out that nobody could judge, and the others learn as without them', () => {
    const outcome = fc.oneof(
      fc.constantFrom(0, 0.5, 1).map(scored),
      fc.constantFrom<Outcome>(
        failed,
        { kind: 'abstained', reason: 'x' },
        { kind: 'pending', tier: 'world' },
      ),
    );
    fc.assert(
      fc.property(fc.array(fc.array(outcome, { minLength: 1, maxLength: 8 }), { maxLength: 5 }), (step) => {
        const judged = step.map((outcomes) => outcomes.filter(({ kind }) => kind === 'scored'));
        const all = trainingSamples(
          step.map((outcomes) => group(outcomes)),
          settings,
        );
        const alone = trainingSamples(
          judged.map((outcomes) => group(outcomes)),
          settings,
        );
        expect(advantagesOf(all)).toEqual(advantagesOf(alone));
        expect(all.degenerateGroups).toBe(alone.degenerateGroups);
        for (const { tokens, mask, streams } of all.sequences) {
          const { advantages = [], samplerLogprobs = [] } = streams;
          expect([mask.length, advantages.length, samplerLogprobs.length]).toEqual(
            [7, 7, 7].map(() => tokens.length),
          );
          expect(advantages.every(Number.isFinite)).toBe(true);
        }
      }),
    );
  });

  test('trains on truncated episodes, or leaves them out, as the spec says', () => {
    const groups = [group([scored(1), scored(0), truncated(-0.2)])];
    const trained = trainingSamples(groups, settings);
    expect(advantagesOf(trained)).toEqual(groupRelative([1, 0, -0.2], 'group'));
    const masked = trainingSamples(groups, creditBy({}, 'mask'));
    expect(advantagesOf(masked)).toEqual(groupRelative([1, 0], 'group'));
  });

  test('counts groups of equal rewards, which stay with advantages of zero', () => {
    const informing = group([scored(1), scored(0)]);
    const equal = group([scored(1), scored(1)]);
    const taught = trainingSamples([equal, informing, equal, group([failed, failed])], settings);
    expect(taught.degenerateGroups).toBe(3);
    const [good, bad] = groupRelative([1, 0], 'group') as number[];
    // Nobody could judge the failed ones: they count nowhere.
    expect(advantagesOf(taught)).toEqual([0, 0, good, bad, 0, 0]);
  });

  test('compares the samples of one task only with each other', () => {
    const { sequences } = trainingSamples(
      [group([scored(1), scored(0)], [scored(100), scored(99)])],
      settings,
    );
    expect(advantagesOf({ sequences })).toEqual([
      ...groupRelative([1, 0], 'group'),
      ...groupRelative([100, 99], 'group'),
    ]);
  });

  test('is nothing where nothing differs, unless the reference pulls', () => {
    const groups = [group([scored(1), scored(1)]), group([failed, scored(0)])];
    expect(trainingSamples(groups, settings)).toEqual({
      sequences: [],
      taughtTokens: 0,
      degenerateGroups: 2,
    });
    const pulled = trainingSamples(groups, creditBy({ beta: 0.1 }));
    expect(advantagesOf(pulled)).toEqual([0, 0, 0]);
  });

  test('is nothing of a group that fails as a whole where a method goes by success, and that is counted', () => {
    const outcome = { verifier: 'exact', role: 'outcome' as const, weight: 1, gatedBy: null };
    const shaped = [group([scored(0.1), scored(0.2)])];
    const taughtBy = (filter: 'correctness' | 'reward') => {
      const by = creditBy({ kind: 'dapo', filter });
      return trainingSamples(shaped, { ...by, reward: { ...by.reward, components: [outcome] } });
    };
    expect(taughtBy('correctness')).toEqual({ sequences: [], taughtTokens: 0, degenerateGroups: 1 });
    expect(taughtBy('reward')).toMatchObject({ sequences: [{}, {}], degenerateGroups: 0 });
  });
});

test('a batch holds the sequences end to end, and they can be cut out again', () => {
  const sequence = fc
    .array(fc.tuple(fc.nat(500), fc.constantFrom(0, 1), fc.nat(9)), { minLength: 1, maxLength: 9 })
    .map((rows): TrainingSample => ({
      tokens: rows.map(([token]) => token),
      mask: rows.map(([, bit]) => bit),
      streams: {
        advantages: rows.map(([, bit, size]) => bit * size),
        samplerLogprobs: rows.map(([, , size]) => -size / 8),
      },
    }));
  fc.assert(
    fc.property(fc.array(sequence, { maxLength: 6 }), (sequences) => {
      const batch = packBatch(sequences, once);
      const cut = (values: Int32Array | Float32Array) =>
        sequences.map((_, i) => [...values.subarray(batch.offsets[i], batch.offsets[i + 1])]);
      expect(cut(batch.tokens)).toEqual(sequences.map(({ tokens }) => tokens));
      expect(cut(batch.mask)).toEqual(sequences.map(({ mask }) => mask));
      expect(cut(batch.streams.advantages!)).toEqual(sequences.map(({ streams }) => streams.advantages));
      expect(
        cut(batch.streams.samplerLogprobs!)
          .flat()
          .map((x) => x + 0),
      ).toEqual(sequences.flatMap(({ streams }) => streams.samplerLogprobs!.map((x) => x + 0)));
      expect(batch.offsets.at(-1)).toBe(batch.tokens.length);
      expect(batch.updates).toEqual(updatesOf(sequences.length, once));
    }),
  );
});
