import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { randomKey, RandomStream } from '../../../../core/random.ts';
import type { ModelConfig } from '../../../../core/model/config.ts';
import { createDecoder, type DecoderOptions } from '../../../../engine/decoder/decoder.ts';
import type { DecoderBackendKind } from '../../../../engine/decoder/load-backend.ts';
import { findAddon } from '../../../../engine/decoder/native/addon.ts';
import { problemOf } from '../../../../engine/decoder/request-problem.ts';
import type { AskedBeams, LocalPolicy, SampleRequest, SampleResult } from '../../../../engine/policy.ts';
import { endlessly } from '../../../support/engine/endlessly.ts';
import { randomWeights, smallConfig } from '../../../support/engine/random-model.ts';
import { referenceLogits, softmax } from './reference-forward.ts';

const kinds: DecoderBackendKind[] = 'addon' in findAddon() ? ['native', 'stock'] : ['stock'];
let backend: DecoderBackendKind;
const open: LocalPolicy[] = [];
/** What each of them finds for episodes that are alone. */
const found = new Map<DecoderBackendKind, SampleResult[][]>();

async function decoder(
  options: DecoderOptions = {},
  config: ModelConfig = smallConfig,
): Promise<LocalPolicy> {
  const policy = createDecoder({ backend, ...options });
  open.push(policy);
  await policy.load('v1', config, randomWeights(config));
  return policy;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((policy) => policy.close()));
});

const request = (beams: AskedBeams | undefined, change: Partial<SampleRequest> = {}): SampleRequest => ({
  session: 's',
  prefix: [1, 2, 0],
  continuation: [],
  maxNewTokens: 12,
  stopTokens: [],
  sampling: { temperature: 1, topK: 0, topP: 1 },
  key: randomKey('test'),
  ...(beams && { beams }),
  ...change,
});

/** A turn as the reference has it: every number in float64, from the whole sequence. */
interface Scored {
  tokens: number[];
  total: number;
}

/** A model of few tokens, of which the last ends a turn, computed by `referenceLogits`. */
function small(vocabSize: number) {
  const config = { ...smallConfig, vocabSize };
  const weights = randomWeights(config);
  const stop = vocabSize - 1;
  const isOver = ({ tokens }: Scored, limit: number) => tokens.at(-1) === stop || tokens.length === limit;
  const extensions = (before: readonly number[], { tokens, total }: Scored): Scored[] => {
    const logits = referenceLogits(config, weights, [...before, ...tokens]).at(-1)!;
    return softmax(logits).map((p, token) => ({ tokens: [...tokens, token], total: total + Math.log(p) }));
  };
  const best = (turns: readonly Scored[]): Scored =>
    turns.toSorted(
      (a, b) =>
        Number(b.tokens.at(-1) === stop) - Number(a.tokens.at(-1) === stop) ||
        b.total / b.tokens.length - a.total / a.tokens.length,
    )[0]!;
  /** Every turn that there is. */
  const all = (before: readonly number[], limit: number, from: Scored = { tokens: [], total: 0 }): Scored[] =>
    extensions(before, from).flatMap((one) => (isOver(one, limit) ? [one] : all(before, limit, one)));
  /** Diverse beam search by the book: at each position, group by group, over all extensions. */
  const diverse = (before: readonly number[], limit: number, { width, groups, diversity }: AskedBeams) => {
    const state = Array.from({ length: groups }, () => ({
      open: [{ tokens: [] as number[], total: 0 }],
      ended: [] as Scored[],
    }));
    for (let position = 0; position < limit; position++) {
      const earlier: number[] = [];
      for (const group of state) {
        const cost = ({ tokens }: Scored) =>
          diversity * earlier.filter((token) => token === tokens.at(-1)).length;
        const kept = group.open
          .flatMap((beam) => extensions(before, beam))
          .toSorted((a, b) => b.total - cost(b) - (a.total - cost(a)))
          .slice(0, width / groups - group.ended.length);
        group.open = kept.filter((beam) => !isOver(beam, limit));
        group.ended.push(...kept.filter((beam) => isOver(beam, limit)));
        earlier.push(...kept.map(({ tokens }) => tokens.at(-1)!));
      }
    }
    return state.map(({ ended }) => best(ended));
  };
  return { config, stop, best, all, diverse };
}

const expectTurn = ({ tokens, samplerLogprobs }: SampleResult, reference: Scored) => {
  expect(tokens).toEqual(reference.tokens);
  expect(samplerLogprobs.reduce((a, b) => a + b, 0)).toBeCloseTo(reference.total, 3);
};

/** An episode of several turns with observations between them; groups of four share a prompt, and so the first search. */
async function episode(policy: LocalPolicy, index: number, forget = false): Promise<SampleResult[]> {
  const group = new RandomStream('group', Math.floor(index / 4));
  const own = new RandomStream('episode', index);
  const prefix = Array.from({ length: group.int(1, 30) }, () => group.int(0, 96));
  const continuation: number[] = [];
  const mask: number[] = [];
  const turns: SampleResult[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const beams = { width: 8, groups: 4, diversity: 0.8 };
    const result = await policy.sample({
      session: `episode ${index}`,
      prefix,
      continuation: [...continuation],
      mask: [...mask],
      maxNewTokens: 20,
      stopTokens: [5, 7, 9, 11, 13],
      sampling: { temperature: 1, topK: 0, topP: 1 },
      key: randomKey('episode', index),
      // One of five is sampled beside them.
      ...(index % 5 < 4 && { beams: turn === 0 ? { ...beams, group: index % 4 } : beams }),
    });
    turns.push(result);
    const observed = Array.from({ length: own.pick([0, 4, 15, 33, 70]) }, () => own.int(0, 96));
    continuation.push(...result.tokens, ...observed);
    mask.push(...result.tokens.map(() => 1), ...observed.map(() => 0));
    if (forget) policy.release(`episode ${index}`);
  }
  policy.release(`episode ${index}`);
  return turns;
}

describe.each(kinds)('%s decoder', (kind) => {
  beforeEach(() => {
    backend = kind;
  });

  test('a search that is wide enough finds the best of all turns', async () => {
    const { config, stop, all, best } = small(3);
    const policy = await decoder({}, config);
    const beams = { width: 64, groups: 1, diversity: 0 };
    for (const continuation of [[], [1, 0], [0, 0, 2, 1]]) {
      const before = [1, 0, ...continuation];
      const change = { prefix: [1, 0], continuation, maxNewTokens: 5, stopTokens: [stop] };
      const turns = all(before, 5);
      expect(turns).toHaveLength(63);
      expectTurn(await policy.sample(request(beams, change)), best(turns));
    }
  });

  test('is the search by the book, plain and diverse', async () => {
    const { config, stop, diverse, best } = small(9);
    const policy = await decoder({}, config);
    const settings = [
      { width: 4, groups: 1, diversity: 0 },
      { width: 3, groups: 3, diversity: 0.6 },
      { width: 6, groups: 3, diversity: 0.4 },
      { width: 8, groups: 2, diversity: 3 },
    ];
    for (const beams of settings)
      for (const prefix of [[1, 2], [4], [7, 7, 3]]) {
        const change = { prefix, maxNewTokens: 6, stopTokens: [stop] };
        const reference = diverse(prefix, 6, beams);
        expectTurn(await policy.sample(request(beams, change)), best(reference));
        for (const [group, turn] of reference.entries())
          expectTurn(await policy.sample(request({ ...beams, group }, change)), turn);
      }
  });

  test('one beam in one group is greedy decoding', async () => {
    const policy = await decoder();
    for (let i = 0; i < 6; i++) {
      const change = { prefix: [i, 3 * i], continuation: i % 2 ? [4, 5, 6] : [], stopTokens: [i + 20] };
      const greedy = request(undefined, {
        ...change,
        session: 'greedy',
        sampling: { temperature: 0, topK: 0, topP: 1 },
      });
      const { tokens, finish } = await policy.sample(greedy);
      const found = await policy.sample(request({ width: 1, groups: 1, diversity: 0 }, change));
      expect(found).toMatchObject({ tokens, finish });
    }
  });

  const indices = Array.from({ length: 12 }, (_, i) => i);
  const alone: SampleResult[][] = [];
  beforeAll(async () => {
    backend = kind;
    const policy = await decoder({ threads: 1 });
    for (const index of indices) alone.push(await episode(policy, index));
    found.set(kind, alone);
  });
  const crowds: [string, DecoderOptions, boolean][] = [
    ['all at once in two threads', {}, false],
    ['where one search fills the batch', { threads: 1, maxBatch: 5 }, false],
    ['without room for any cache', { cacheBytes: 0 }, false],
    ['released after each turn', { threads: 3 }, true],
    ['with caches that come and go', { cacheBytes: 600_000 }, false],
  ];
  test.each(crowds)('is the same to the bit as alone: %s', async (_, options, forget) => {
    const policy = await decoder(options);
    // Others that are cancelled in the middle must not show either, those who share a search with episodes among them. They ask
    // again and again, because threads of the machine may be late, and a search has an end.
    const first = policy.sample(request(undefined, { session: 'first', maxNewTokens: 5 }));
    const cancel = new AbortController();
    const cancelled = indices.slice(0, 6).map((i) => {
      const group = new RandomStream('group', i);
      const prefix = Array.from({ length: group.int(1, 30) }, () => group.int(0, 96));
      const beams = { width: 8, groups: 4, diversity: 0.8 };
      const turn = { maxNewTokens: i < 3 ? 20 : 250, stopTokens: [5, 7, 9, 11, 13] };
      const other = request(beams, { session: `other ${i}`, prefix, mask: [], ...turn });
      return expect(endlessly(policy, other, cancel.signal)).rejects.toThrow('cancelled');
    });
    const order = forget ? indices.toReversed() : indices;
    const crowd = order.map(async (index) => [index, await episode(policy, index, forget)] as const);
    await first;
    cancel.abort(new Error('cancelled'));
    await Promise.all(cancelled);
    const turns = new Map(await Promise.all(crowd));
    expect(indices.map((index) => turns.get(index))).toEqual(alone);
    // Groups differ in their first turn.
    expect(new Set(alone.slice(0, 4).map(([turn]) => turn!.tokens.join())).size).toBe(4);
  });

  test('never has a token that the model must not draw', async () => {
    const masked: ModelConfig = { ...smallConfig, maskedTokens: [[3, 95]] };
    const policy = await decoder({}, masked);
    const beams = { width: 12, groups: 3, diversity: 2 };
    for (const group of [0, 1, 2]) {
      const { tokens, samplerLogprobs } = await policy.sample(request({ ...beams, group }));
      expect(tokens.filter((token) => token >= 3 && token < 95)).toEqual([]);
      expect(samplerLogprobs.every(Number.isFinite)).toBe(true);
    }
  });

  test('a turn that has room for one token, or for none', async () => {
    const policy = await decoder();
    const beams = { width: 4, groups: 2, diversity: 1 };
    const one = await policy.sample(request({ ...beams, group: 1 }, { maxNewTokens: 1 }));
    expect(one).toMatchObject({ finish: 'length', tokens: [expect.any(Number)] });
    const none = await policy.sample(request(beams, { maxNewTokens: 0 }));
    expect(none).toEqual({ tokens: [], samplerLogprobs: [], finish: 'length' });
    // The model ends before the turn does.
    const long = request(beams, { maxNewTokens: 1000, prefix: Array.from({ length: 280 }, () => 4) });
    expect((await policy.sample(long)).tokens).toHaveLength(20);
  });
});

test.runIf(kinds.includes('native'))('both decoders find the same, to the bit', () => {
  expect(found.get('native')).toEqual(found.get('stock'));
});

test.each([
  ['groups that do not share the width', { width: 5, groups: 2, diversity: 1 }, {}, 'are no search'],
  ['more beams than a block holds', { width: 65, groups: 1, diversity: 0 }, {}, 'up to 64 beams'],
  ['a group that there is not', { width: 4, groups: 2, diversity: 1, group: 2 }, {}, 'of which 2'],
  ['a penalty below 0', { width: 4, groups: 2, diversity: -1 }, {}, 'a penalty of 0 or more'],
  [
    'a cut of what is sampled',
    { width: 4, groups: 2, diversity: 1 },
    { sampling: { temperature: 1, topK: 5, topP: 1 } },
    'Leave out top-k',
  ],
])('a request is refused that has %s', (_, beams, change, why) => {
  expect(problemOf(request(beams, change), smallConfig)).toContain(why);
});
