import { mkdtemp, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import type { StagedManifest } from '../../../activities/rollout/served/rounded.ts';
import { ServedPolicies } from '../../../activities/rollout/served/served-policies.ts';
import type { PolicyLease } from '../../../activities/rollout/policies.ts';
import { createTraining } from '../../../activities/training/learner.ts';
import { exportModel } from '../../../cli/export-model.ts';
import { randomKey } from '../../../core/random.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { HostTensor, ModelConfig } from '../../../core/model/config.ts';
import type { ServedPolicySpec } from '../../../core/schema/policy.ts';
import { adapterShapes } from '../../../engine/lora/adapter-shapes.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { decode, encode } from '../../../engine/safetensors/dtypes.ts';
import type { FloatDtype } from '../../../engine/safetensors/dtypes.ts';
import { sha256Hex } from '../../../store/digest.ts';
import { loadPolicy, saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { startPolicyServer } from '../../support/policy-server/start-policy-server.ts';
import type { PolicyServer, PolicyServerOptions } from '../../support/policy-server/start-policy-server.ts';
import { checkpointAt, randomWeights, smallConfig } from '../../support/store/fixtures.ts';
import { openTestStore } from '../../support/test-store.ts';

// Servers that speak vLLM's and SGLang's API over the decoder of Gradus are given one checkpoint after the other, and
// each of the faults that those servers have.

const { store } = await openTestStore();
const { signal } = new AbortController();
const RUN = 'served';
const config: ModelConfig = { ...smallConfig, headSize: 16 };
const LORA = { rank: 4, alpha: 8, rsLora: false, targetModules: ['q_proj', 'v_proj'] };

let learner: Learner;
let folder: string;
/** What servers begin with. */
let baseFolder: string;
/** Each made of the one before. */
let whole: CheckpointRef[];
let adapters: CheckpointRef[];

beforeAll(async () => {
  learner = await createLocalLearner({ backend: 'cpu' });
  folder = await mkdtemp(join(tmpdir(), 'gradus-serving-'));
  const first = await save(0);
  whole = [first];
  for (const step of [1, 2]) whole.push(await save(step, whole.at(-1)));
  adapters = [];
  for (const step of [3, 4, 5]) adapters.push(await saveAdapter(step, first, adapters.at(-1) ?? first));
  baseFolder = join(folder, 'base');
  await exportModel(store, first, baseFolder, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
  const training = createTraining({ store, learner });
  for (const checkpoint of [...whole, ...adapters]) {
    await training.probePolicy({ run: RUN, checkpoint }, signal);
  }
});
afterAll(async () => {
  await learner?.close();
  await rm(folder, { recursive: true, force: true });
});

const files = (base: ReadonlyMap<string, Uint8Array>) =>
  new Map([...base, ['tokenizer.json', Buffer.from(tokenizerJson)]]);

async function save(step: number, parent?: CheckpointRef): Promise<CheckpointRef> {
  const content = checkpointAt(step, config, RUN);
  // A step moves weights, and by more than rounding.
  const [begun, moved] = [randomWeights(config, 0), randomWeights(config, step)];
  const weights = new Map(
    [...begun].map(([name, { shape, data }]) => [
      name,
      { shape, data: data.map((x, i) => x / 2 + (step / 20) * moved.get(name)!.data[i]!) },
    ]),
  );
  const state = { ...content.state, weights };
  // The last one lies in shards.
  const maxShardBytes = step === 2 ? 20_000 : undefined;
  return saveCheckpoint(store, { ...content, parent, files: files(content.files), state, maxShardBytes });
}

async function saveAdapter(step: number, base: CheckpointRef, parent: CheckpointRef): Promise<CheckpointRef> {
  const content = checkpointAt(step, config, RUN);
  const { weights } = await loadPolicy(store, base);
  const tensors = new Map(
    [...adapterShapes(config, LORA)].map(([name, shape]) => {
      const size = shape.reduce((a, b) => a * b, 1);
      const data = Float32Array.from({ length: size }, (_, i) => Math.sin(i * step) / 10);
      return [name, { shape, data }];
    }),
  );
  const state = {
    config,
    weights,
    adapter: { lora: LORA, weights: tensors },
    firstMoments: new Map(),
    secondMoments: new Map(),
    updates: step,
  };
  return saveCheckpoint(store, { ...content, parent, base, files: files(content.files), state });
}

async function start(options: Partial<PolicyServerOptions> = {}): Promise<PolicyServer> {
  const server = await startPolicyServer({
    dialect: 'vllm',
    model: baseFolder,
    servedName: 'base',
    logprobsMode: 'processed_logprobs',
    weightVersions: true,
    ...options,
  });
  onTestFinished(() => server.kill());
  return server;
}

const specOf = (
  servers: readonly PolicyServer[],
  over: Partial<ServedPolicySpec> = {},
): ServedPolicySpec => ({
  kind: 'http',
  server: 'vllm',
  urls: servers.map(({ url }) => url),
  folder: join(folder, 'staged'),
  requestSeconds: 60,
  requestTokens: 512,
  concurrency: 64,
  tolerance: 1e-3,
  maxLogprobGap: 0.1,
  adapters: false,
  ...over,
});

function policiesOf(spec: ServedPolicySpec): ServedPolicies {
  const policies = new ServedPolicies(store, spec);
  onTestFinished(() => policies.close());
  return policies;
}
const lease = (policies: ServedPolicies, checkpoint: CheckpointRef, stop = signal) =>
  policies.lease(checkpoint, { run: RUN, signal: stop });

let sessions = 0;
const sample = (
  { policy }: Pick<PolicyLease, 'policy'>,
  { prefix = [1, 2, 3], continuation = [] as number[], tokens = 12 } = {},
) =>
  policy.sample(
    {
      session: `s${++sessions}`,
      prefix,
      continuation,
      maxNewTokens: tokens,
      stopTokens: [],
      sampling: { temperature: 0.7, topK: 0, topP: 1 },
      key: randomKey('serving'),
    },
    signal,
  );

/** What the weights of a checkpoint say of tokens, by the decoder of workers. */
async function locally(
  checkpoint: CheckpointRef,
  prefix: number[],
  tokens: number[],
  dtype: FloatDtype = 'F32',
): Promise<number[]> {
  const decoder = createDecoder({ threads: 1 });
  const { weights } = await loadPolicy(store, checkpoint);
  const rounded = [...weights].map(([name, { shape, data }]): [string, HostTensor] => [
    name,
    { shape, data: decode(encode(data, dtype), dtype) as Float32Array },
  ]);
  await decoder.load('local', config, new Map(rounded));
  const logprobs: number[] = [];
  for (const [i, token] of tokens.entries()) {
    const { alternatives } = await decoder.sample({
      session: `${i}`,
      prefix,
      continuation: tokens.slice(0, i),
      maxNewTokens: 1,
      stopTokens: [],
      sampling: { temperature: 0.7, topK: 0, topP: 1 },
      key: randomKey('locally'),
      alternatives: { most: 0, also: [token] },
    });
    logprobs.push(alternatives![0]!.find((one) => one.token === token)!.logprob);
  }
  await decoder.close();
  return logprobs;
}

async function expectSampledBy(checkpoint: CheckpointRef, leased: PolicyLease): Promise<void> {
  const sampled = await sample(leased);
  const own = await locally(checkpoint, [1, 2, 3], sampled.tokens);
  expect(sampled.samplerLogprobs).toHaveLength(sampled.tokens.length);
  sampled.samplerLogprobs.forEach((value, i) => expect(value).toBeCloseTo(own[i]!, 4));
  expect(sampled.served).toMatchObject({ weights: checkpoint.weights });
}

describe.each(['vllm', 'sglang'] as const)('%s', (dialect) => {
  test('samples with each checkpoint that it is given, all weights of it', async () => {
    const policies = policiesOf(specOf([await start({ dialect })], { server: dialect }));
    for (const checkpoint of whole) {
      const leased = await lease(policies, checkpoint);
      await expectSampledBy(checkpoint, leased);
      leased.release();
    }
  });

  test('samples with weights in bfloat16 that bear the version of those in float32', async () => {
    const own = await mkdtemp(join(folder, 'rounded-'));
    const over = { server: dialect, dtype: 'bfloat16', folder: own, tolerance: 0.02 } as const;
    const server = await start({ dialect });
    const policies = policiesOf(specOf([server], over));
    for (const checkpoint of [whole[1]!, whole[2]!]) {
      const leased = await lease(policies, checkpoint);
      const { tokens, samplerLogprobs, served } = await sample(leased);
      expect(served).toMatchObject({ weights: checkpoint.weights });
      const exact = await locally(checkpoint, [1, 2, 3], tokens);
      const rounded = await locally(checkpoint, [1, 2, 3], tokens, 'BF16');
      samplerLogprobs.forEach((value, i) => expect(value).toBeCloseTo(rounded[i]!, 4));
      const gap = samplerLogprobs.reduce((sum, value, i) => sum + Math.abs(value - exact[i]!), 0);
      expect(gap / tokens.length).toBeGreaterThan(1e-5);
      leased.release();
    }
    // Every file is named with its digest; one that was damaged is put there again.
    const staged = join(own, `${whole[2]!.weights}-bfloat16`);
    const manifest = JSON.parse(await readFile(join(staged, 'staged.json'), 'utf8')) as StagedManifest;
    expect(manifest).toMatchObject({ weights: whole[2]!.weights, dtype: 'bfloat16' });
    expect(Object.keys(manifest.files)).toEqual(
      (await readdir(staged)).filter((name) => name !== 'staged.json').toSorted(),
    );
    await truncate(join(staged, 'model.safetensors'), 1000);
    (await lease(policiesOf(specOf([await start({ dialect })], over)), whole[2]!)).release();
    const { sha256, bytes } = manifest.files['model.safetensors']!;
    const there = await readFile(join(staged, 'model.safetensors'));
    expect([sha256Hex(there), there.length]).toEqual([sha256, bytes]);
    // Rounding does not hide a server that keeps its old weights.
    const other = policiesOf(specOf([server], over));
    await server.fault({ name: 'load-forgotten', times: 1 });
    await expect(lease(other, whole[1]!)).rejects.toThrow(/does not compute with them/);
  });

  test('samples with each adapter, and with the model that it began with', async () => {
    const server = await start({ dialect });
    const policies = policiesOf(specOf([server], { server: dialect, adapters: true }));
    for (const checkpoint of [whole[0]!, ...adapters]) {
      const leased = await lease(policies, checkpoint);
      await expectSampledBy(checkpoint, leased);
      leased.release();
    }
    // The newest two stay.
    const { data } = (await (await fetch(`${server.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id)).toEqual([
      'base',
      ...adapters.slice(1).map(({ weights }) => `gradus-${weights.slice(0, 24)}`),
    ]);
  });

  test.each(['unavailable', 'cut', 'empty', 'no-logprobs', 'abort', 'foreign-version'] as const)(
    'that answers with the fault "%s" is asked again, and what it samples is of the weights',
    async (fault) => {
      const server = await start({ dialect });
      const policies = policiesOf(specOf([server], { server: dialect }));
      const leased = await lease(policies, whole[1]!);
      await server.fault({ name: fault, times: 1 });
      await expectSampledBy(whole[1]!, leased);
    },
  );

  test('whose reload was forgotten is found out by what it computes', async () => {
    const server = await start({ dialect });
    const policies = policiesOf(specOf([server], { server: dialect }));
    (await lease(policies, whole[1]!)).release();
    await server.fault({ name: 'load-forgotten', times: 1 });
    await expect(lease(policies, whole[2]!)).rejects.toThrow(/does not compute with them/);
    // Asked once more, it reads them.
    await expectSampledBy(whole[2]!, await lease(policies, whole[2]!));
  });

  test('whose reload leaves the head of a tied model is found out', async () => {
    const server = await start({ dialect });
    const policies = policiesOf(specOf([server], { server: dialect }));
    await server.fault({ name: 'head-forgotten' });
    await expect(lease(policies, whole[2]!)).rejects.toThrow(/nats from the learner/);
  });

  test('that serves a frozen base in place of an adapter is found out', async () => {
    const server = await start({ dialect });
    const policies = policiesOf(specOf([server], { server: dialect, adapters: true }));
    await server.fault({ name: 'base-for-adapter' });
    await expect(lease(policies, adapters[0]!)).rejects.toThrow(/does not compute with them/);
  });

  test('whose cache keeps what old weights computed is not asked for it', async () => {
    const server = await start({ dialect, blockSize: 1 });
    const policies = policiesOf(specOf([server], { server: dialect }));
    const before = await lease(policies, whole[1]!);
    await sample(before);
    before.release();
    await server.fault({ name: 'reset-forgotten' });
    await expectSampledBy(whole[2]!, await lease(policies, whole[2]!));
  });

  test('that is killed and started again with its old weights is given the new ones before it samples', async () => {
    const server = await start({ dialect });
    const policies = policiesOf(specOf([server], { server: dialect }));
    const leased = await lease(policies, whole[2]!);
    await server.kill();
    const sampled = sample(leased);
    await server.restart();
    const { tokens, samplerLogprobs } = await sampled;
    const own = await locally(whole[2]!, [1, 2, 3], tokens);
    samplerLogprobs.forEach((value, i) => expect(value).toBeCloseTo(own[i]!, 4));
  });

  test('that was started with another model is not sampled from', async () => {
    const other = join(folder, `other-${dialect}`);
    await exportModel(store, whole[2]!, other, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
    const server = await start({ dialect, model: other });
    const policies = policiesOf(specOf([server], { server: dialect, adapters: true }));
    await expect(lease(policies, whole[0]!)).rejects.toThrow(/nats from the learner/);
  });
});

test('of many checkpoints the newest stay in the folder that servers read', async () => {
  const own = await mkdtemp(join(folder, 'few-'));
  const policies = policiesOf(specOf([await start()], { adapters: true, folder: own }));
  for (const checkpoint of [whole[0]!, ...adapters]) (await lease(policies, checkpoint)).release();
  const newest = adapters.map(({ weights }) => weights).toSorted();
  await expect.poll(async () => (await readdir(own)).toSorted()).toEqual(newest);
  // One that was taken away comes back where it is asked for.
  await expectSampledBy(whole[0]!, await lease(policies, whole[0]!));
});

test('a staged file that was damaged on the way is put there again', async () => {
  const policies = policiesOf(specOf([await start()]));
  (await lease(policies, whole[1]!)).release();
  const staged = join(folder, 'staged', whole[1]!.weights);
  await truncate(join(staged, 'model.safetensors'), 1000);
  await writeFile(join(staged, 'config.json'), '{}');
  await expectSampledBy(whole[1]!, await lease(policiesOf(specOf([await start()])), whole[1]!));
  expect((await readdir(join(folder, 'staged'))).filter((name) => name.startsWith('.'))).toEqual([]);
});

describe('of several servers', () => {
  test('one that is dead, and one that never answers, are no reason to wait', async () => {
    const servers = [await start(), await start(), await start()];
    const policies = policiesOf(specOf(servers, { requestSeconds: 8 }));
    const leased = await lease(policies, whole[1]!);
    await sample(leased);
    await servers[0]!.kill();
    await servers[1]!.fault({ name: 'silent' });
    const sampled = await Promise.all(
      Array.from({ length: 12 }, (_, i) => sample(leased, { prefix: [1, 2, i] })),
    );
    expect(new Set(sampled.map(({ served }) => served!.server))).toEqual(new Set([servers[2]!.url]));
  });

  test('samples of one task go to one of them, and of many tasks to all', async () => {
    const servers = [await start(), await start(), await start()];
    // It takes longer to show what it holds, and tasks go to the others until it has: then it gets its share.
    await servers[0]!.fault({ name: 'slow', ms: 400, times: 1 });
    const policies = policiesOf(specOf(servers));
    const leased = await lease(policies, whole[1]!);
    const servedBy = async (prefix: number[]) => (await sample(leased, { prefix, tokens: 1 })).served!.server;
    let asked = 0;
    const nextServer = async () => servedBy([asked++ % 24, 2]);
    for (const { url } of servers) await expect.poll(nextServer, { timeout: 120_000 }).toBe(url);
    const of = new Map<number, string>();
    for (let task = 0; task < 24; task++) of.set(task, await servedBy([task, 1]));
    let elsewhere = 0;
    for (let task = 0; task < 24; task++) if ((await servedBy([task, 1])) !== of.get(task)) elsewhere++;
    // A server that a busy machine holds up loses a request to another one; by chance it would be two in three.
    expect(elsewhere).toBeLessThan(6);
    expect(new Set(of.values()).size).toBe(3);
  });

  test('none has more at once than the spec allows', async () => {
    const server = await start();
    const policies = policiesOf(specOf([server], { concurrency: 2 }));
    const leased = await lease(policies, whole[1]!);
    const sampled = await Promise.all(
      Array.from({ length: 8 }, (_, i) => sample(leased, { prefix: [i, 2], tokens: 2 })),
    );
    expect(sampled).toHaveLength(8);
  });
});

test('without a server the lease fails, and says whose', async () => {
  const server = await start();
  await server.kill();
  await expect(lease(policiesOf(specOf([server])), whole[1]!)).rejects.toThrow(server.url);
});

test('a lease that is called off ends', async () => {
  const server = await start();
  await server.fault({ name: 'silent' });
  const stop = new AbortController();
  const leased = lease(policiesOf(specOf([server])), whole[1]!, stop.signal);
  stop.abort(new Error('called off'));
  await expect(leased).rejects.toThrow('called off');
});

describe('what a server cannot do is said before anything is spent', () => {
  const capable = async (
    options: Partial<PolicyServerOptions>,
    over: Partial<ServedPolicySpec> = {},
    scalesLogits = true,
  ) => policiesOf(specOf([await start(options)], over)).assertCapable(scalesLogits, signal);

  test('nothing of one that can', async () => {
    await capable({});
    await capable({ dialect: 'sglang' }, { server: 'sglang' });
    await capable({ weightVersions: false });
    await capable({ weightVersions: false, scaleOut: false }, { adapters: true });
    await capable({ logprobsMode: 'raw_logprobs' }, {}, false);
  });

  test('no word of which weights made a token', async () => {
    await expect(capable({ weightVersions: false, scaleOut: false })).rejects.toThrow(
      /which weights made a token.*--enable-scale-out/,
    );
  });

  test('log-probs before the temperature', async () => {
    await expect(capable({ logprobsMode: 'raw_logprobs' })).rejects.toThrow(
      /--logprobs-mode processed_logprobs/,
    );
  });

  test('no model of that name', async () => {
    await expect(capable({}, { model: 'another' })).rejects.toThrow(/has no model another, only base/);
  });
});
