import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  adoptCheckpoint,
  CRITIC,
  loadCheckpoint,
  loadModelFiles,
  loadPolicy,
  saveCheckpoint,
  textOf,
} from '../../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../../store/training/checkpoints.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import { sha256Hex } from '../../../store/digest.ts';
import { checkpointOf, findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { applyRetention, collectGarbage, pinCheckpoints } from '../../../store/training/retention.ts';
import { batchKey } from '../../../store/keys.ts';
import { loadBatch, putBatch } from '../../../store/training/batches.ts';
import { loadTrajectories, putTrajectories } from '../../../store/rollout/trajectories.ts';
import type { ModelConfig } from '../../../core/model/config.ts';
import { MAX_SHARD_BYTES, weightFilesOf } from '../../../engine/hf-shards.ts';
import { beginCritic } from '../../../engine/learner/critic.ts';
import { tokenizerConfigOf, withDialect } from '../../../engine/dialect/checkpoint-dialect.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import {
  checkpointAt,
  largerConfig,
  randomBytes,
  randomWeights,
  smallConfig,
} from '../../support/store/fixtures.ts';
import { put } from './raw.ts';
import { openTestStore } from '../../support/test-store.ts';

const { server, store } = await openTestStore();

const at = (run: string, step: number) => checkpointAt(step, smallConfig, run);
const steps = async (run: string) =>
  (await findCheckpoints(store, run)).checkpoints.map(({ ref }) => ref.step);
const textsOf = (files: ModelFiles) =>
  new Map([...files.keys()].toSorted().map((name) => [name, textOf(files, name)]));
const shardsOf = (config: ModelConfig, most: number) =>
  weightFilesOf(config, randomWeights(config, 0), 4, most).map(({ name }) => name);
const fileOf = (ref: { manifest: { key: string } }, name: string) =>
  ref.manifest.key.replace('manifest.json', name);

test('a checkpoint comes back as it was saved, in the layout of Hugging Face', async () => {
  const content = at('round-trip', 7);
  const parent = await saveCheckpoint(store, at('round-trip', 6));
  const ref = await saveCheckpoint(store, { ...content, parent });
  const { state, files, manifest } = await loadCheckpoint(store, ref);
  expect(state).toEqual(content.state);
  expect(textsOf(files)).toEqual(textsOf(content.files));
  expect(manifest).toMatchObject({
    run: 'round-trip',
    stage: 'rl-1',
    step: 7,
    parent,
    updates: 28,
    backend: 'none',
  });
  expect(ref.step).toBe(7);
  expect(ref.manifest.key).toBe(
    `runs/round-trip/checkpoints/000007-${ref.weights.slice(0, 12)}/manifest.json`,
  );
  const names = (await store.list(fileOf(ref, ''))).map(({ key }) => key.split('/').at(-1));
  expect(names).toEqual([
    'config.json',
    'generation_config.json',
    'manifest.json',
    'model.safetensors',
    'optimizer.safetensors',
    'tokenizer.json',
    'tokenizer_config.json',
  ]);
  const policy = await loadPolicy(store, ref);
  expect(policy).toMatchObject({ config: smallConfig, weights: content.state.weights });
  expect(textsOf(policy.files)).toEqual(textsOf(content.files));
});

test('a checkpoint becomes the first one of another run, without its optimizer and with every file to the byte', async () => {
  const content = at('lender', 4);
  const files = new Map([...content.files, ['chat_template.jinja', new TextEncoder().encode('{{ "é" }}')]]);
  const source = await saveCheckpoint(store, { ...content, files });
  const ref = await adoptCheckpoint(store, source, 'borrower');
  expect(await adoptCheckpoint(store, source, 'borrower')).toEqual(ref);
  expect(ref).toMatchObject({ weights: source.weights, step: 0 });
  const { state, files: adopted, manifest } = await loadCheckpoint(store, ref);
  expect(textsOf(adopted)).toEqual(textsOf(files));
  expect(state).toEqual({
    ...content.state,
    firstMoments: new Map(),
    secondMoments: new Map(),
    updates: 0,
  });
  expect(manifest).toMatchObject({ run: 'borrower', stage: 'initialize', step: 0, parent: source });
  await applyRetention(store, 'lender', { keepLast: 1, keepBest: 0, keepEvery: 0, pinned: [] });
  expect(await checkpointOf(store, { run: 'borrower', step: null })).toEqual(ref);
  await expect(checkpointOf(store, { run: 'borrower', step: 3 })).rejects.toThrow(
    'no checkpoint of step 3; there are: 0',
  );
  await expect(checkpointOf(store, { run: 'nobody', step: null })).rejects.toThrow('has no checkpoint');
});

test('an older checkpoint does not stand in for a last one that is damaged, and is named instead', async () => {
  const refs = [];
  for (const step of [6, 7]) refs.push(await saveCheckpoint(store, at('cut', step)));
  const [older, last] = refs as [CheckpointRef, CheckpointRef];
  const weights = fileOf(last, 'model.safetensors');
  await store.remove([weights]);
  await put(store, weights, randomBytes(1000, 0));
  await expect(checkpointOf(store, { run: 'cut', step: null })).rejects.toThrow(
    /step 7 of "cut" is damaged .*has 1000 bytes.*: cut@6/,
  );
  await expect(checkpointOf(store, { run: 'cut', step: 7 })).rejects.toThrow(/is damaged/);
  expect(await checkpointOf(store, { run: 'cut', step: 6 })).toEqual(older);
  // One that was begun and has no manifest yet is none.
  await store.remove([last.manifest.key]);
  expect(await checkpointOf(store, { run: 'cut', step: null })).toEqual(older);
  // A run that was reset may ask for one that retention has deleted.
  await expect(loadPolicy(store, last)).rejects.toThrow(
    /reset it to a step whose checkpoint .*checkpoints cut/,
  );
});

test('a run that speaks otherwise adopts a checkpoint with its dialect recorded, in every later step too', async () => {
  const content = at('speaker', 3);
  const source = await saveCheckpoint(store, content);
  const replaced = withDialect(content.files, { name: 'retool', tool: 'calculator' });
  const ref = await adoptCheckpoint(store, source, 'interpreter', { replaced });
  const files = await loadModelFiles(store, ref);
  expect(textsOf(files)).toEqual(textsOf(new Map([...content.files, ...replaced])));
  const { state } = await loadCheckpoint(store, ref);
  const next = await saveCheckpoint(store, { ...content, run: 'interpreter', step: 1, state, files });
  expect(tokenizerConfigOf(await loadModelFiles(store, next))['gradus_dialect']).toEqual({
    name: 'retool',
    tool: 'calculator',
  });
  expect(tokenizerConfigOf(await loadModelFiles(store, source))['gradus_dialect']).toEqual({
    name: 'gradus',
  });
});

test('a critic comes back with its moments, and another run begins without it', async () => {
  const content = at('critic', 3);
  const begun = beginCritic(content.state);
  const trained = {
    ...begun,
    firstMoments: new Map(
      [...begun.weights].map(([name, { shape, data }]) => [name, { shape, data: data.map((x) => 2 * x) }]),
    ),
    secondMoments: new Map(
      [...begun.weights].map(([name, { shape, data }]) => [name, { shape, data: data.map((x) => x * x) }]),
    ),
    updates: 12,
  };
  for (const [step, critic] of [begun, trained].entries()) {
    const ref = await saveCheckpoint(store, { ...content, step, state: { ...content.state, critic } });
    const { state, files } = await loadCheckpoint(store, ref);
    expect(state.critic).toEqual(critic);
    expect(files.has(CRITIC)).toBe(false);
    expect(ref.weights).toBe((await saveCheckpoint(store, { ...content, run: 'no-critic', step })).weights);
    const adopted = await adoptCheckpoint(store, ref, `without-critic-${step}`);
    expect((await loadCheckpoint(store, adopted)).state.critic).toBeUndefined();
  }
});

test('weights before the first update have no moments', async () => {
  const content = at('fresh', 0);
  const state = { ...content.state, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
  const ref = await saveCheckpoint(store, { ...content, state });
  expect((await loadCheckpoint(store, ref)).state).toEqual(state);
});

test('a repeated attempt, also one that races, ends with the same ref', async () => {
  const refs = await Promise.all([1, 2, 3].map(() => saveCheckpoint(store, at('again', 1))));
  refs.push(await saveCheckpoint(store, at('again', 1)));
  for (const ref of refs) expect(ref).toEqual(refs[0]);
  expect(await steps('again')).toEqual([1]);
});

test('another checkpoint with the same step and weights does not mix with one that was begun', async () => {
  const content = at('conflict', 1);
  const weights = (await saveCheckpoint(store, at('elsewhere', 1))).weights;
  await put(
    store,
    `runs/conflict/checkpoints/000001-${weights.slice(0, 12)}/tokenizer.json`,
    randomBytes(5, 1),
  );
  await expect(saveCheckpoint(store, content)).rejects.toMatchObject({
    type: 'checkpoint-conflict',
    retryable: false,
  });
  expect(await steps('conflict')).toEqual([]);
});

const [, secondShard] = shardsOf(largerConfig, 300_000);
test.each([
  ['of moments', 'optimizer.safetensors', MAX_SHARD_BYTES],
  ['of a shard', secondShard!, 300_000],
])(
  'an upload %s whose process is killed in the middle is never picked up, and a retry completes it',
  async (what, file, maxShardBytes) => {
    const run = what.replaceAll(' ', '-');
    await saveCheckpoint(store, checkpointAt(1, largerConfig, run));
    const proxy = await FaultyProxy.start(server.port);
    onTestFinished(() => proxy.close());
    const stalled = proxy.stallAt(`/${file}`, 50_000);
    const script = join(import.meta.dirname, 'save-checkpoint.ts');
    const options = JSON.stringify(server.options({ port: proxy.port }));
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', script, options, '2', run, String(maxShardBytes)],
      {
        stdio: ['ignore', 'inherit', 'inherit'],
      },
    );
    const ended = once(child, 'exit');
    await Promise.race([
      stalled,
      ended.then(() => Promise.reject(new Error('the upload ended before it was killed'))),
    ]);
    const content = { ...checkpointAt(2, largerConfig, run), maxShardBytes };
    const shards = shardsOf(largerConfig, maxShardBytes);
    // Weights, their index where there are shards, and moments, without the one that hangs.
    const large = shards.length === 1 ? 1 : shards.length + 1;
    const folder = `runs/${run}/checkpoints/000002-`;
    await expect
      .poll(() => store.list(folder), { timeout: 120_000 })
      .toHaveLength(content.files.size + large);
    child.kill('SIGKILL');
    expect(await ended).toEqual([null, 'SIGKILL']);
    await proxy.close();

    const found = await findCheckpoints(store, run);
    expect(found.checkpoints.map(({ ref }) => ref.step)).toEqual([1]);
    const begun = found.incomplete[0]!;
    expect(begun).toMatchObject({ step: 2, hasManifest: false, reason: 'it has no manifest' });
    expect(begun.keys).not.toContain(`${begun.folder}/${file}`);
    // It may be in the middle of being written, for all that anyone knows.
    expect(await collectGarbage(store, run)).toEqual([]);

    const ref = await saveCheckpoint(store, content);
    expect((await loadCheckpoint(store, ref)).state).toEqual(content.state);
    const { manifest } = await loadCheckpoint(store, ref);
    expect(await store.list(folder)).toHaveLength(Object.keys(manifest.files).length + 1);
    expect(await steps(run)).toEqual([1, 2]);
  },
);

test('a folder without manifest, with a file missing, or with a damaged manifest is no checkpoint', async () => {
  const refs = [];
  for (const step of [1, 2, 3, 4, 5]) refs.push(await saveCheckpoint(store, at('broken', step)));
  const [whole, unnamed, short, damaged, last] = refs as [(typeof refs)[0], ...typeof refs];
  await store.remove([unnamed!.manifest.key]);
  await store.remove([fileOf(short!, 'optimizer.safetensors')]);
  await store.remove([damaged!.manifest.key]);
  await put(store, damaged!.manifest.key, new TextEncoder().encode('{"format":"gradus.checkpoint/1"}'));
  const { checkpoints, incomplete } = await findCheckpoints(store, 'broken');
  expect(checkpoints.map(({ ref }) => ref)).toEqual([whole, last]);
  expect(incomplete.map(({ step, reason }) => [step, reason])).toEqual([
    [2, 'it has no manifest'],
    [3, expect.stringMatching(/optimizer\.safetensors has no bytes/) as string],
    [4, expect.stringMatching(/manifest\.json is not a manifest/) as string],
  ]);
  await expect(loadCheckpoint(store, short!)).rejects.toMatchObject({ type: 'missing-object' });
  expect(await collectGarbage(store, 'broken')).toEqual([fileOf(unnamed!, '').slice(0, -1)]);
  expect((await findCheckpoints(store, 'broken')).incomplete.map(({ step }) => step)).toEqual([3, 4]);
});

test('a ref whose weights are not those of its manifest is refused', async () => {
  const ref = await saveCheckpoint(store, at('mixed', 1));
  await expect(loadPolicy(store, { ...ref, weights: sha256Hex(randomBytes(1, 1)) })).rejects.toMatchObject({
    type: 'checkpoint-conflict',
  });
});

test('retention deletes what no rule keeps, and leaves other runs alone', async () => {
  const refs = [];
  for (let step = 0; step <= 6; step++) refs.push(await saveCheckpoint(store, at('kept', step)));
  await saveCheckpoint(store, at('kept-too', 1));
  const scores = new Map(refs.map((ref, i) => [ref.manifest.key, i === 2 ? 1 : i / 10]));
  const rule = { keepLast: 2, keepBest: 1, keepEvery: 4, pinned: [refs[1]!] };
  expect(await applyRetention(store, 'kept', rule, scores)).toEqual([refs[3]]);
  expect(await steps('kept')).toEqual([0, 1, 2, 4, 5, 6]);
  expect(await store.list(fileOf(refs[3]!, ''))).toEqual([]);
  expect(await steps('kept-too')).toEqual([1]);
});

test('retention leaves what another run learns from', async () => {
  const refs = [];
  for (let step = 0; step <= 3; step++) refs.push(await saveCheckpoint(store, at('teacher', step)));
  await pinCheckpoints(store, 'teacher', 'student', [refs[1]!]);
  // Twice is once, and another student's is kept besides.
  await pinCheckpoints(store, 'teacher', 'student', [refs[1]!]);
  await pinCheckpoints(store, 'teacher', 'another', [refs[0]!]);
  const rule = { keepLast: 1, keepBest: 0, keepEvery: 0, pinned: [] };
  expect(await applyRetention(store, 'teacher', rule)).toEqual([refs[2]]);
  expect(await steps('teacher')).toEqual([0, 1, 3]);
});

test('trajectories come back exactly, and a second attempt gets the first one', async () => {
  const samplerLogprobs = [-1.1920928955078125e-7, -0.1, -Math.PI, -1e-320, 0, -12.345678901234567];
  const group = {
    id: 'task-3',
    weights: 'a'.repeat(64),
    temperature: 0.9,
    tasks: [
      {
        ref: { environment: 'e', split: 'train' as const, level: 1, index: 3 },
        prompt: '1+"1"\n',
        promptTokens: [1, 2],
      },
    ],
    episodes: [
      {
        sample: 0,
        task: 0,
        tokens: [5, 6, 7, 8, 9, 10],
        mask: [1, 1, 1, 1, 0, 1] as (0 | 1)[],
        samplerLogprobs,
        turns: [],
        status: { kind: 'answered' as const, answer: '2' },
      },
    ],
  };
  const place = { run: 'run-1', stage: 'rl-1', step: 12 };
  const { ref } = await putTrajectories(store, place, group);
  expect(ref.key).toBe('runs/run-1/rollouts/rl-1/000012/task-3.json');
  expect(await loadTrajectories(store, ref)).toEqual(group);
  const second = await putTrajectories(store, place, { ...group, temperature: 1 });
  expect(second).toEqual({ ref, value: group });
  const broken = {
    ...group,
    id: 'b',
    episodes: [{ ...group.episodes[0]!, samplerLogprobs: [...samplerLogprobs.slice(1), Number.NaN] }],
  };
  await expect(putTrajectories(store, place, broken)).rejects.toMatchObject({ type: 'invalid-trajectory' });

  const cut = {
    ...group,
    id: 'cut',
    episodes: [{ ...group.episodes[0]!, kept: [[4, 5], [], [], [8], [], []] }],
  };
  expect(await loadTrajectories(store, (await putTrajectories(store, place, cut)).ref)).toEqual(cut);
  const short = { ...cut, id: 'short', episodes: [{ ...cut.episodes[0]!, kept: [[4, 5]] }] };
  await expect(putTrajectories(store, place, short)).rejects.toMatchObject({ type: 'invalid-trajectory' });
});

test('a batch comes back as it was', async () => {
  const batch = {
    tokens: Int32Array.of(1, 2, 3),
    offsets: Int32Array.of(0, 2, 3),
    mask: Float32Array.of(0, 1, 1),
    streams: { advantages: Float32Array.of(0, -0.5, 2), samplerLogprobs: Float32Array.of(0, -1, -2) },
    sequences: {},
    updates: [Int32Array.of(1, 0)],
  };
  const { ref } = await putBatch(store, batchKey('run-1', 'rl-1', 3), batch);
  expect(ref.key).toBe('runs/run-1/batches/rl-1/000003.safetensors');
  expect(await loadBatch(store, ref)).toEqual(batch);
});
