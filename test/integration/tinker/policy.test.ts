import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../../activities/rollout/served/connection.ts';
import { tinker } from '../../../activities/rollout/served/tinker.ts';
import { packBatch } from '../../../activities/training/training-batch.ts';
import { TinkerClient } from '../../../activities/training/tinker/client.ts';
import { createTinkerTraining } from '../../../activities/training/tinker/learner.ts';
import { exportModel } from '../../../cli/export-model.ts';
import { LORA_MODULES } from '../../../core/names.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { Learner } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { tinkerKey } from '../../../store/keys.ts';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { serverStates } from '../../../store/training/server-states.ts';
import { CASE_MODEL } from '../../support/engine/learner-cases.ts';
import { caseOf } from '../../support/learner-steps.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TinkerServer } from '../../support/tinker-server/start-tinker-server.ts';
import type { TinkerFlag } from '../../support/tinker-server/start-tinker-server.ts';

// A policy on a server of Tinker's API samples from what a learner saved there, and nothing that it does moves the learner's.

const { store } = await openTestStore();
const { signal } = new AbortController();
const lora = { rank: 4, alpha: 32, rsLora: false, targetModules: [...LORA_MODULES] };
const tokens = [3, 9, 27, 41, 5];
/** Of a shape that our own decoder has. */
const ONE = {
  objective: { kind: 'supervised' } as const,
  model: { ...CASE_MODEL, attentionHeads: 2, keyValueHeads: 1, headSize: 16 },
};
/** Nats; both compute in float32. */
const ROUNDING = 1e-4;

let folder: string;
const servers: TinkerServer[] = [];
let learner: Learner;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-tinker-policy-'));
  learner = await createLocalLearner();
  const { first } = await caseOf(store, 'base', { ...ONE, name: 'base' });
  const model = path.join(folder, 'base');
  await exportModel(store, first, model, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
}, 600_000);

afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  await learner?.close();
  await rm(folder, { recursive: true, force: true });
});

async function serverWith(...flags: TinkerFlag[]): Promise<TinkerServer> {
  const state = path.join(folder, `state-${servers.length}`);
  const options = { model: path.join(folder, 'base'), state, flags: ['--grad-clip' as const, ...flags] };
  const server = await TinkerServer.start(options);
  servers.push(server);
  return server;
}

/** [T − 1] log-probs by our own learner. */
async function expectedOf(ref: CheckpointRef, of: readonly number[]): Promise<number[]> {
  const { state } = await loadCheckpoint(store, ref);
  const mask = of.map((_, i) => (i === 0 ? 0 : 1));
  const batch = packBatch([{ tokens: [...of], mask, streams: {} }], { minibatch: 1, epochs: 0, seed: 0 });
  const { logprobs } = await learner.score(state, batch, { logprobs: { temperature: 1, topK: 0 } });
  return [...logprobs!.subarray(1)];
}

const largestGap = (a: readonly number[], b: readonly number[]): number => {
  expect(a).toHaveLength(b.length);
  return Math.max(...a.map((value, i) => Math.abs(value - b[i]!)));
};

test.each([[[]], [['--protobuf' as const]]])(
  'it samples and scores with the weights of the checkpoint that was asked for, while others are trained %s',
  async (flags) => {
    const server = await serverWith(...flags);
    const training = () =>
      createTinkerTraining({ store, client: new TinkerClient(connect(server.url, 60), 60) });
    const run = `served${flags.join('')}`;
    const { first, request } = await caseOf(store, run, { ...ONE, name: run });
    const trained = training();
    const step = async (n: number, parent: CheckpointRef) =>
      (await trained.trainStep({ ...request(n, parent), lora }, signal)).checkpoint;
    const one = await step(1, first);
    const api = tinker(connect(server.url, 60));
    await api.healthy(signal);
    expect(await api.models(signal)).toEqual(['tiny']);
    const saved = (await store.find(tinkerKey(run, one.weights), serverStates))!;
    await api.loadAdapter('one', saved.state, signal);

    const asked = { tokens, maxNewTokens: 6, stopTokens: [], temperature: 1, seed: 4, salt: one.weights };
    const check = async (model: string, ref: CheckpointRef) => {
      const whole = { model, tokens, salt: ref.weights };
      expect(largestGap(await api.score(whole, signal), await expectedOf(ref, tokens))).toBeLessThan(
        ROUNDING,
      );
      const drawn = await api.sample({ ...asked, model }, signal);
      expect(drawn).toMatchObject({ finish: 'length', versions: null });
      const expected = await expectedOf(ref, [...tokens, ...drawn.tokens]);
      expect(largestGap(drawn.logprobs, expected.slice(tokens.length - 1))).toBeLessThan(ROUNDING);
      return drawn;
    };
    const before = await check('one', one);
    // The learner goes on; the name still has the weights that it had, and the base is the base.
    const two = await step(2, one);
    expect(await check('one', one)).toEqual(before);
    await check('tiny', first);
    expect(largestGap(await expectedOf(one, tokens), await expectedOf(two, tokens))).toBeGreaterThan(
      10 * ROUNDING,
    );

    // What was sampled meanwhile from older weights is no part of what comes next: another worker makes the same of it.
    await check('one', one);
    const three = await step(3, two);
    trained.close();
    const quiet = `${run}-quiet`;
    const other = await caseOf(store, quiet, { ...ONE, name: quiet });
    const alone = training();
    let parent = other.first;
    for (const n of [1, 2, 3])
      parent = (await alone.trainStep({ ...other.request(n, parent), lora }, signal)).checkpoint;
    expect(three.weights).toBe(parent.weights);
    alone.close();

    const stopped = await api.sample({ ...asked, model: 'one', stopTokens: [before.tokens[2]!] }, signal);
    expect(stopped.finish).toBe('stop');
    expect(before.tokens.slice(0, stopped.tokens.length)).toEqual(stopped.tokens);

    // The server was started again and has lost sessions and models: the adapter is asked for anew, and is what it was.
    await server.restart();
    await expect(api.sample({ ...asked, model: 'one' }, signal)).rejects.toMatchObject({
      boundary: 'policy',
      type: 'unknown-model',
      retryable: true,
    });
    await api.loadAdapter('one', saved.state, signal);
    expect(await check('one', one)).toEqual(before);
    await api.unloadAdapter('one', signal);
  },
  600_000,
);
