import type { Worker } from 'node:worker_threads';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { PolicyPool } from '../../../activities/rollout/policy-pool.ts';
import type { PolicyLease } from '../../../activities/rollout/policies.ts';
import { saveCheckpoint } from '../../../store/training/checkpoints.ts';
import { randomKey } from '../../../core/random.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { checkpointAt, randomWeights, smallConfig } from '../../support/store/fixtures.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { openTestStore } from '../../support/test-store.ts';

const { server, store } = await openTestStore();
let one: CheckpointRef;
let two: CheckpointRef;

const config: ModelConfig = { ...smallConfig, headSize: 16 };

beforeAll(async () => {
  [one, two] = [await save(1), await save(2)];
});

async function save(step: number): Promise<CheckpointRef> {
  const content = checkpointAt(step, config);
  const files = new Map([...content.files, ['tokenizer.json', Buffer.from(tokenizerJson)]]);
  // Small weights, so that logits leave room for chance.
  const weights = new Map(
    [...randomWeights(config, step)].map(([name, { shape, data }]) => [
      name,
      { shape, data: data.map((x) => x / 4) },
    ]),
  );
  return saveCheckpoint(store, { ...content, files, state: { ...content.state, weights } });
}

function createPool(size: number): PolicyPool {
  const pool = new PolicyPool(store, () => createDecoder({ threads: 1 }), size);
  onTestFinished(() => pool.close());
  return pool;
}

let sessions = 0;

/** What a lease samples; the same for the same weights. */
async function sample({ policy }: PolicyLease, maxNewTokens = 40): Promise<number[]> {
  const session = `session-${++sessions}`;
  const { tokens } = await policy.sample({
    session,
    prefix: [1, 2, 3],
    continuation: [],
    maxNewTokens,
    stopTokens: [],
    sampling: { temperature: 1, topK: 0, topP: 1 },
    key: randomKey('policy-pool'),
  });
  policy.release(session);
  return tokens;
}

async function sampleOf(pool: PolicyPool, checkpoint: CheckpointRef): Promise<number[]> {
  const lease = await pool.lease(checkpoint);
  try {
    return await sample(lease);
  } finally {
    lease.release();
  }
}

test('two checkpoints on a pool of one decoder never mix, however many ask for them at once', async () => {
  const [ofOne, ofTwo] = [await sampleOf(createPool(1), one), await sampleOf(createPool(1), two)];
  expect(ofOne).not.toEqual(ofTwo);
  const pool = createPool(1);
  const asked = Array.from({ length: 24 }, (_, i) => (i % 3 === 0 ? two : one));
  const sampled = await Promise.all(asked.map((checkpoint) => sampleOf(pool, checkpoint)));
  sampled.forEach((tokens, i) => expect(tokens).toEqual(asked[i] === one ? ofOne : ofTwo));
});

test('who asks for other weights waits until the last lease of the old ones is given back', async () => {
  const pool = createPool(1);
  const [first, second] = await Promise.all([pool.lease(one), pool.lease(one)]);
  expect(second.policy).toBe(first.policy);
  let came = false;
  const other = pool.lease(two).then((lease) => ((came = true), lease));
  first.release();
  // The lease that is left still samples from its own weights, and nothing was loaded meanwhile.
  await sample(second);
  expect(came).toBe(false);
  expect(second.policy.version).toBe(one.weights);
  second.release();
  const lease = await other;
  expect(lease.policy.version).toBe(two.weights);
  lease.release();
});

test('a larger pool holds two checkpoints at once', async () => {
  const pool = createPool(2);
  const [a, b] = await Promise.all([pool.lease(one), pool.lease(two)]);
  expect([a.policy.version, b.policy.version]).toEqual([one.weights, two.weights]);
  expect(a.policy).not.toBe(b.policy);
  a.release();
  b.release();
});

test('a checkpoint that cannot be loaded is an error of who asked, and the decoder serves others', async () => {
  const pool = createPool(1);
  const missing = {
    ...one,
    manifest: { ...one.manifest, key: 'runs/none/manifest.json', sha256: '0'.repeat(64) },
  };
  const [lost, found] = await Promise.allSettled([pool.lease(missing), pool.lease(two)]);
  expect(lost).toMatchObject({ status: 'rejected', reason: { boundary: 'store' } });
  expect(found.status).toBe('fulfilled');
  if (found.status === 'fulfilled') found.value.release();
  await expect(pool.lease(missing)).rejects.toMatchObject({ boundary: 'store' });
});

test('a store that was away for a while is no reason to refuse a checkpoint for ever', async () => {
  const pool = createPool(1);
  const before = await sampleOf(pool, one);
  await server.kill();
  await expect(pool.lease(two)).rejects.toMatchObject({ boundary: 'store', retryable: true });
  await server.restart();
  expect(await sampleOf(pool, two)).not.toEqual(before);
  expect(await sampleOf(pool, one)).toEqual(before);
});

test('after its decoder crashed a checkpoint is loaded again for the next who asks', async () => {
  const threads: Worker[] = [];
  const note = (worker: Worker) => threads.push(worker);
  process.on('worker', note);
  const pool = createPool(1);
  const before = await sampleOf(pool, one);
  process.off('worker', note);
  const lease = await pool.lease(one);
  const pending = sample(lease, 120);
  // A message that the thread does not understand is an exception in it that nobody catches.
  // oxlint-disable-next-line unicorn/require-post-message-target-origin
  threads[0]!.postMessage({ type: 'sample', id: 0, request: null });
  await expect(pending).rejects.toMatchObject({ type: 'decoder-crashed', retryable: true });
  lease.release();
  expect(await sampleOf(pool, one)).toEqual(before);
});
