import type { Worker } from 'node:worker_threads';
import { afterAll, afterEach, beforeEach, describe, expect, it, test } from 'vitest';
import { randomKey, RandomStream } from '../../../../core/random.ts';
import { createDecoder, type DecoderOptions } from '../../../../engine/decoder/decoder.ts';
import {
  backendKind,
  backendName,
  type DecoderBackendKind,
} from '../../../../engine/decoder/load-backend.ts';
import { findAddon } from '../../../../engine/decoder/native/addon.ts';
import { runCommand } from '../../../../infra/setup/command.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../../../engine/lora/merge-adapter.ts';
import type { LocalPolicy, SampleRequest, SampleResult } from '../../../../engine/policy.ts';
import { endlessly } from '../../../support/engine/endlessly.ts';
import { randomWeights, smallConfig } from '../../../support/engine/random-model.ts';
import { referenceLogits, softmax } from './reference-forward.ts';

const open: LocalPolicy[] = [];
const weights = randomWeights(smallConfig);
/** More than a decoder takes as small, so that it is decoded in one batch. */
const largeConfig = { ...smallConfig, vocabSize: 40_000, hiddenSize: 112 };

/** Which of the two every test below is run with; without a compiler at set-up there is no native one. */
const kinds: DecoderBackendKind[] = 'addon' in findAddon() ? ['native', 'stock'] : ['stock'];
let backend: DecoderBackendKind;

/** One of the test's own, closed after it. */
async function decoder(options: DecoderOptions): Promise<LocalPolicy> {
  const policy = createDecoder({ backend, ...options });
  open.push(policy);
  await policy.load('v1', smallConfig, weights);
  return policy;
}

/** Those of two threads that tests share: to start threads takes a hundred times as long as to load weights. */
const shared = new Map<DecoderBackendKind, LocalPolicy>();

/** Of two threads, with the weights loaded anew: there is no cache of what tests before have sampled. */
async function freshlyLoaded(): Promise<LocalPolicy> {
  const policy = shared.get(backend) ?? createDecoder({ backend });
  shared.set(backend, policy);
  await policy.load('v1', smallConfig, weights);
  return policy;
}

afterEach(async () => {
  await Promise.all(open.splice(0).map((policy) => policy.close()));
});
afterAll(async () => {
  await Promise.all([...shared.values()].map((policy) => policy.close()));
});

const request = (change: Partial<SampleRequest> = {}): SampleRequest => ({
  session: 's',
  prefix: [1, 2, 3],
  continuation: [],
  maxNewTokens: 20,
  stopTokens: [],
  sampling: { temperature: 1, topK: 0, topP: 1 },
  key: randomKey('test'),
  ...change,
});

/** An episode of several turns with observations between them, short and long; groups of four share a prompt. */
async function episode(policy: LocalPolicy, index: number, forget = false): Promise<SampleResult[]> {
  const group = new RandomStream('group', Math.floor(index / 4));
  const own = new RandomStream('episode', index);
  const prefix = Array.from({ length: group.int(1, 30) }, () => group.int(0, 96));
  const continuation: number[] = [];
  const mask: number[] = [];
  const turns: SampleResult[] = [];
  for (let turn = 0; turn < 3; turn++) {
    const result = await policy.sample({
      session: `episode ${index}`,
      prefix,
      continuation,
      mask,
      maxNewTokens: own.int(1, 40),
      stopTokens: [5],
      sampling: { temperature: 1, topK: index % 2 === 0 ? 0 : 20, topP: index % 3 === 0 ? 0.9 : 1 },
      key: randomKey('episode', index),
    });
    turns.push(result);
    const observed = Array.from({ length: own.pick([0, 4, 15, 16, 33, 70]) }, () => own.int(0, 96));
    continuation.push(...result.tokens, ...observed);
    mask.push(...result.tokens.map(() => 1), ...observed.map(() => 0));
    if (forget) policy.release(`episode ${index}`);
  }
  policy.release(`episode ${index}`);
  return turns;
}

const EPISODES = 48;
const found = new Map<DecoderBackendKind, SampleResult[][]>();

/** What the episodes sample one after the other, in one thread: computed once. */
async function alone(kind: DecoderBackendKind): Promise<SampleResult[][]> {
  const known = found.get(kind);
  if (known) return known;
  const lonely = await decoder({ backend: kind, threads: 1 });
  const sampled: SampleResult[][] = [];
  for (let index = 0; index < EPISODES; index++) sampled.push(await episode(lonely, index));
  found.set(kind, sampled);
  return sampled;
}

test('where there is a compiler the native decoder is built, and it is the one that runs', () => {
  expect(backendKind({})).toBe(kinds[0]);
  expect(backendKind({ GRADUS_DECODER: 'stock' })).toBe('stock');
  expect(backendName('stock')).toContain('slower');
});

test.runIf(kinds.includes('native'))('both decoders sample the same, to the bit', async () => {
  expect(await alone('native')).toEqual(await alone('stock'));
});

describe.each(kinds)('%s decoder', (kind) => {
  beforeEach(() => {
    backend = kind;
  });

  describe('what an episode samples', () => {
    const indices = Array.from({ length: EPISODES }, (_, i) => i);
    const crowds: [string, DecoderOptions, boolean][] = [
      ['all at once in two threads', {}, false],
      ['all at once in one thread', { threads: 1 }, false],
      ['five at a time, so that they join and leave all the while', { threads: 1, maxBatch: 5 }, false],
      ['without room for any cache', { cacheBytes: 0 }, false],
      ['released after each turn', { threads: 3 }, true],
      ['with caches that come and go', { cacheBytes: 600_000 }, false],
    ];
    it.each(crowds)('is the same to the bit as alone: %s', async (_, options, forget) => {
      const lonely = await alone(kind);
      const policy = await decoder(options);
      const order = forget ? indices.toReversed() : indices;
      // Others that are cancelled in the middle must not show either.
      const first = policy.sample(request({ session: 'first', maxNewTokens: 5 }));
      const cancel = new AbortController();
      const cancelled = indices.slice(0, 6).map((i) => {
        const other = request({ session: `other ${i}`, maxNewTokens: 250, prefix: [i + 1] });
        return expect(endlessly(policy, other, cancel.signal)).rejects.toThrow('enough');
      });
      const crowd = Promise.all(order.map(async (i) => [i, await episode(policy, i, forget)] as const));
      await first;
      cancel.abort(new Error('enough'));
      await Promise.all(cancelled);
      for (const [i, turns] of await crowd) expect(turns).toEqual(lonely[i]);
    });

    it('follows the model: log-probabilities agree with the equations', async () => {
      const policy = await freshlyLoaded();
      const sampling = { temperature: 0.7, topK: 0, topP: 0.95 };
      const { tokens, samplerLogprobs } = await policy.sample(request({ maxNewTokens: 60, sampling }));
      const logits = referenceLogits(smallConfig, weights, [1, 2, 3, ...tokens]);
      for (const [i, token] of tokens.entries()) {
        const row = softmax(logits[2 + i]!.map((x) => x / 0.7));
        expect(Math.abs(Math.log(row[token]!) - samplerLogprobs[i]!)).toBeLessThan(1e-4);
      }
    });

    it('goes on where it stopped: two turns without an observation are one', async () => {
      const policy = await freshlyLoaded();
      const whole = await policy.sample(request({ session: 'whole', maxNewTokens: 30 }));
      const head = await policy.sample(request({ maxNewTokens: 10 }));
      const tail = await policy.sample(request({ maxNewTokens: 20, continuation: head.tokens }));
      expect([...head.tokens, ...tail.tokens]).toEqual(whole.tokens);
      expect([...head.samplerLogprobs, ...tail.samplerLogprobs]).toEqual(whole.samplerLogprobs);
    });

    it('does not depend on where earlier turns were asked to stop, nor on how an observation came', async () => {
      const policy = await freshlyLoaded();
      const observation = Array.from({ length: 50 }, (_, i) => i);
      const ask = (session: string, tokens: readonly number[], observed: number, maxNewTokens: number) =>
        policy.sample(
          request({
            session,
            continuation: [...tokens, ...observation.slice(0, observed)],
            mask: [...tokens.map(() => 1), ...observation.slice(0, observed).map(() => 0)],
            maxNewTokens,
          }),
        );
      const { tokens } = await policy.sample(request({ session: 'a', maxNewTokens: 6 }));
      const whole = await ask('fresh', tokens, 50, 10);
      // Fed in parts first, some of them pieces that the whole does not have.
      for (const observed of [0, 3, 20, 41]) await ask('a', tokens, observed, observed % 2);
      expect(await ask('a', tokens, 50, 10)).toEqual(whole);
      // A tail of what was sampled is thrown away: the piece that was fed alone now begins a run.
      await policy.sample(request({ session: 'b', maxNewTokens: 20 }));
      expect(await ask('b', tokens, 50, 10)).toEqual(whole);
    });

    it('follows the model behind long observations, too', async () => {
      const policy = await freshlyLoaded();
      const observation = Array.from({ length: 81 }, (_, i) => (i * 13) % 97);
      const { tokens, samplerLogprobs } = await policy.sample(
        request({ continuation: [9, ...observation], mask: [1, ...observation.map(() => 0)] }),
      );
      const start = 3 + 1 + observation.length;
      const logits = referenceLogits(smallConfig, weights, [1, 2, 3, 9, ...observation, ...tokens]);
      for (const [i, token] of tokens.entries()) {
        expect(
          Math.abs(Math.log(softmax(logits[start - 1 + i]!)[token]!) - samplerLogprobs[i]!),
        ).toBeLessThan(1e-4);
      }
    });

    it('is not misled by a cache of another history', async () => {
      const policy = await freshlyLoaded();
      await policy.sample(request({ continuation: [7, 8, 9, 10] }));
      const mixed = await policy.sample(request({ continuation: [7, 8, 1] }));
      const otherPrefix = await policy.sample(request({ prefix: [1, 2], continuation: [3, 7, 8] }));
      expect(mixed).toEqual(await policy.sample(request({ session: 'b', continuation: [7, 8, 1] })));
      expect(otherPrefix).toEqual(
        await policy.sample(request({ session: 'c', prefix: [1, 2], continuation: [3, 7, 8] })),
      );
    });
  });

  it.each([
    { temperature: 0.8, topK: 0, topP: 1 },
    { temperature: 1, topK: 3, topP: 0.9 },
    { temperature: 0, topK: 0, topP: 1 },
  ])('tells what else could have been drawn at %o, and draws the same', async (sampling) => {
    const policy = await freshlyLoaded();
    // A prompt's own logits, those of single tokens, and those of a piece of an observation.
    const asked = [
      request({ sampling }),
      request({
        sampling,
        session: 't',
        continuation: [5, ...Array<number>(40).fill(7)],
        mask: [1, ...Array<number>(40).fill(0)],
      }),
    ];
    for (const one of asked) {
      const silent = await policy.sample(one);
      const { alternatives, ...told } = await policy.sample({
        ...one,
        session: `${one.session}'`,
        alternatives: { most: 4, also: [7] },
      });
      expect(told).toEqual(silent);
      expect(silent).not.toHaveProperty('alternatives');
      const history = [...one.prefix, ...one.continuation];
      // A row for each position, none of which reads what comes after it.
      const rows = referenceLogits(smallConfig, weights, [...history, ...told.tokens]);
      for (const [i, token] of told.tokens.entries()) {
        const logits = rows[history.length + i - 1]!;
        const expected = softmax(logits.map((x) => x / (sampling.temperature || 1)));
        const ranked = expected.map((_, id) => id).toSorted((a, b) => expected[b]! - expected[a]!);
        const likeliest = ranked.slice(0, 4);
        const ids = alternatives![i]!.map((one) => one.token);
        expect(ids).toEqual([...new Set([...likeliest, token, 7])]);
        for (const { token: id, logprob } of alternatives![i]!)
          expect(logprob).toBeCloseTo(Math.log(expected[id]!), 3);
        const own = alternatives![i]!.find((one) => one.token === token)!;
        if (sampling.temperature > 0 && sampling.topK === 0)
          expect(own.logprob).toBe(told.samplerLogprobs[i]);
      }
    }
    await expect(policy.sample(request({ alternatives: { most: 65 } }))).rejects.toThrow(/0 to 64/);
  });

  describe('a turn', () => {
    it('ends at a stop token, which is its last', async () => {
      const policy = await freshlyLoaded();
      const free = await policy.sample(request());
      const stop = free.tokens[4]!;
      const stopped = await policy.sample(request({ stopTokens: [stop] }));
      expect(stopped.finish).toBe('stop');
      expect(stopped.tokens).toEqual(free.tokens.slice(0, free.tokens.indexOf(stop) + 1));
      const atOnce = await policy.sample(request({ stopTokens: [free.tokens[0]!] }));
      expect(atOnce).toEqual({
        tokens: [free.tokens[0]],
        samplerLogprobs: [free.samplerLogprobs[0]],
        finish: 'stop',
      });
    });

    it('ends at maxNewTokens and where the positions end', async () => {
      const policy = await freshlyLoaded();
      expect(await policy.sample(request({ maxNewTokens: 1 }))).toMatchObject({ finish: 'length' });
      expect(await policy.sample(request({ maxNewTokens: 0 }))).toEqual({
        tokens: [],
        samplerLogprobs: [],
        finish: 'length',
      });
      const long = await policy.sample(request({ maxNewTokens: 10_000 }));
      expect(long.finish).toBe('length');
      expect(long.tokens).toHaveLength(smallConfig.maxPositions - 3);
      const full = request({ prefix: Array.from({ length: 400 }, () => 1) });
      expect(await policy.sample(full)).toEqual({ tokens: [], samplerLogprobs: [], finish: 'length' });
    });

    it('is refused when it makes no sense', async () => {
      const policy = await freshlyLoaded();
      await expect(policy.sample(request({ prefix: [] }))).rejects.toMatchObject({ type: 'bad-request' });
      await expect(policy.sample(request({ continuation: [97] }))).rejects.toMatchObject({
        type: 'bad-request',
      });
      await expect(policy.sample(request({ continuation: [9], mask: [] }))).rejects.toMatchObject({
        type: 'bad-request',
      });
      for (const odd of [
        { temperature: -1 },
        { topK: -1 },
        { topK: 2.5 },
        { topK: 2 ** 32 + 1 },
        { topP: 1.1 },
      ]) {
        const sampling = { temperature: 1, topK: 0, topP: 1, ...odd };
        await expect(policy.sample(request({ sampling }))).rejects.toMatchObject({ type: 'bad-request' });
      }
    });

    it('is dropped when its signal says so, before, while and after it runs', async () => {
      const policy = await decoder({ threads: 1 });
      const gone = new Error('gone');
      await expect(policy.sample(request(), AbortSignal.abort(gone))).rejects.toBe(gone);
      const cancel = new AbortController();
      const running = endlessly(policy, request({ session: 'long', maxNewTokens: 290 }), cancel.signal);
      const dropped = expect(running).rejects.toBe(gone);
      await policy.sample(request({ maxNewTokens: 3 }), cancel.signal);
      cancel.abort(gone);
      await dropped;
      expect((await policy.sample(request({ session: 'long' }))).tokens).toHaveLength(20);
    });

    it('leaves the event loop free', async () => {
      const policy = await freshlyLoaded();
      let ticks = 0;
      const timer = setInterval(() => ticks++, 1);
      const before = performance.eventLoopUtilization();
      await Promise.all(
        Array.from({ length: 64 }, (_, i) => policy.sample(request({ session: `${i}`, maxNewTokens: 250 }))),
      );
      const { utilization } = performance.eventLoopUtilization(before);
      clearInterval(timer);
      expect(utilization).toBeLessThan(0.5);
      expect(ticks).toBeGreaterThan(10);
    });
  });

  describe('loading', () => {
    it('lets earlier requests finish with the old weights and gives later ones the new', async () => {
      const policy = await decoder({ threads: 1, maxBatch: 2 });
      const other = randomWeights(smallConfig, 2);
      const olds = [0, 1, 2, 3].map((i) => policy.sample(request({ session: `old ${i}`, maxNewTokens: 40 })));
      const loaded = policy.load('v2', smallConfig, other);
      const late = policy.sample(request({ session: 'old 0', maxNewTokens: 40 }));
      await loaded;
      expect(policy.version).toBe('v2');
      const now = await policy.sample(request({ session: 'new', maxNewTokens: 40 }));
      const [old, ...rest] = await Promise.all(olds);
      for (const result of rest) expect(result).toEqual(old);
      expect(await late).toEqual(now);
      expect(now).not.toEqual(old);
    });

    it('drops the caches of the old weights', async () => {
      const policy = await freshlyLoaded();
      const first = await policy.sample(request());
      await policy.load('v2', smallConfig, randomWeights(smallConfig, 2));
      const kept = await policy.sample(request({ continuation: first.tokens }));
      expect(kept).toEqual(await policy.sample(request({ session: 'fresh', continuation: first.tokens })));
    });

    it('computes with an adapter as with the weights that it is merged into', async () => {
      const lora = {
        rank: 4,
        alpha: 8,
        rsLora: false,
        targetModules: ['q_proj' as const, 'down_proj' as const],
      };
      const adapter = { lora, weights: initialAdapter(smallConfig, lora, 3) };
      const random = new RandomStream('B', 1);
      for (const [name, { data }] of adapter.weights)
        if (name.endsWith('.lora_B.weight')) data.forEach((_, i) => (data[i] = random.uniform() - 0.5));
      const base = structuredClone(weights);
      const policy = await freshlyLoaded();
      const bare = await policy.sample(request());
      await policy.load('adapted', smallConfig, weights, adapter);
      const adapted = await policy.sample(request());
      expect(adapted.samplerLogprobs).not.toEqual(bare.samplerLogprobs);
      await policy.load('merged', smallConfig, mergeAdapter(smallConfig, weights, adapter));
      expect(await policy.sample(request())).toEqual(adapted);
      // The base is the caller's, and the memory of one load is that of the next.
      expect(weights).toEqual(base);
      await policy.load('v1', smallConfig, weights);
      expect(await policy.sample(request())).toEqual(bare);
    });

    it('takes a model of another size class, with threads of another number', async () => {
      const policy = await freshlyLoaded();
      const small = await policy.sample(request());
      const large = randomWeights(largeConfig);
      const pending = expect(
        policy.sample(request({ session: 'replaced', maxNewTokens: 290 })),
      ).rejects.toMatchObject({ type: 'decoder-replaced', retryable: true });
      await policy.load('large', largeConfig, large);
      await pending;
      const one = await policy.sample(request());
      expect(one.tokens).toHaveLength(20);
      const inOneThread = await decoder({ threads: 1 });
      await inOneThread.load('large', largeConfig, large);
      expect(await inOneThread.sample(request())).toEqual(one);
      await policy.load('v1', smallConfig, weights);
      expect(await policy.sample(request({ session: 'again' }))).toEqual(small);
    });

    it('refuses a model that the graph cannot serve and weights that do not belong to it', async () => {
      const policy = await freshlyLoaded();
      const odd = { ...smallConfig, headSize: 24 };
      await expect(policy.load('v2', odd, weights)).rejects.toMatchObject({
        boundary: 'policy',
        type: 'unsupported-model',
      });
      const wider = { ...smallConfig, vocabSize: 100 };
      await expect(policy.load('v2', wider, weights)).rejects.toMatchObject({ type: 'bad-weights' });
      expect(policy.version).toBe('v1');
      expect((await policy.sample(request())).tokens).toHaveLength(20);
    });

    it('is asked for when there are no weights yet, and impossible once closed', async () => {
      const policy = createDecoder({ backend });
      await expect(policy.sample(request())).rejects.toMatchObject({ type: 'no-model' });
      await policy.load('v1', smallConfig, weights);
      const pending = policy.sample(request({ maxNewTokens: 290 }));
      const rejected = expect(pending).rejects.toMatchObject({ type: 'closed' });
      await policy.close();
      await rejected;
      expect(policy.version).toBeUndefined();
      await expect(policy.sample(request())).rejects.toMatchObject({ type: 'closed' });
      await expect(policy.load('v2', smallConfig, weights)).rejects.toMatchObject({ type: 'closed' });
    });
  });

  describe('a crash of a decoder thread', () => {
    it('rejects what is pending as retryable, and the next load starts afresh', async () => {
      const threads: Worker[] = [];
      const onWorker = (worker: Worker) => threads.push(worker);
      process.on('worker', onWorker);
      const policy = await decoder({});
      process.off('worker', onWorker);
      const before = await policy.sample(request({ session: 'before' }));
      const crash = { boundary: 'policy', type: 'decoder-crashed', retryable: true };
      const pending = Array.from({ length: 8 }, (_, i) =>
        expect(
          endlessly(policy, request({ session: `${i}`, prefix: [i + 1], maxNewTokens: 290 })),
        ).rejects.toMatchObject(crash),
      );
      // A message that no thread understands is an exception in it that nobody catches.
      // oxlint-disable-next-line unicorn/require-post-message-target-origin
      threads[0]!.postMessage({ type: 'sample', id: 0, request: null });
      await Promise.all(pending);
      expect(policy.version).toBeUndefined();
      await expect(policy.sample(request())).rejects.toMatchObject(crash);
      await policy.load('v1', smallConfig, weights);
      expect(await policy.sample(request({ session: 'before' }))).toEqual(before);
    });
  });
});

it('keeps its process until it is closed, also when a thread answers meanwhile', async () => {
  const { code, stdout } = await runCommand(process.execPath, [
    '--import',
    'tsx',
    'test/support/engine/closes-while-loading.ts',
  ]);
  // Node ends with 13 where nothing keeps it and a promise is awaited.
  expect([code, stdout.trim()]).toEqual([0, 'closed']);
});
