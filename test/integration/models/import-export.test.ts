import { execFile } from 'node:child_process';
import { cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { InferenceSession } from 'onnxruntime-node';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadPolicy } from '../../../store/training/checkpoints.ts';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { exportModel } from '../../../cli/export-model.ts';
import type { ExportFormat } from '../../../cli/export-model.ts';
import { loadHfDirectory } from '../../../engine/hf-directory.ts';
import { tokenizerJson } from '../../support/fixture-tokenizer.ts';
import { openTestStore } from '../../support/test-store.ts';

const fixtures = path.resolve(import.meta.dirname, '../../fixtures/models');
const root = path.resolve(import.meta.dirname, '../../..');
const plain: ExportFormat = { dtype: 'F32', maxShardBytes: 5e9, onnx: false };
const { server, store } = await openTestStore();
let scratch: string;

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-models-'));
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

test.each(['llama-biases', 'qwen2-tied-sharded', 'qwen3'])(
  '%s goes in and comes out with the same weights, names and small files',
  async (name) => {
    const folder = path.join(fixtures, name);
    const { ref } = await importModel(store, folder, name);
    const target = path.join(scratch, name);
    await exportModel(store, ref, target, plain);
    const [before, after] = [await loadHfDirectory(folder), await loadHfDirectory(target)];
    expect(after.config).toEqual(before.config);
    expect(after.weights).toEqual(before.weights);
    for (const [file, bytes] of before.files) {
      const written = await readFile(path.join(target, file), 'utf8');
      const text = new TextDecoder().decode(bytes);
      if (file === 'config.json') expect(JSON.parse(written)).toEqual(JSON.parse(text));
      else expect(written).toBe(text);
    }
    expect(await readFile(path.join(target, 'README.md'), 'utf8')).toContain('An imported model');
  },
);

test('the same model again is the same checkpoint; another one under its name is refused', async () => {
  const first = await importModel(store, path.join(fixtures, 'llama-tied'), 'mine');
  expect(await importModel(store, path.join(fixtures, 'llama-tied'), 'mine')).toEqual(first);
  await expect(importModel(store, path.join(fixtures, 'qwen3'), 'mine')).rejects.toMatchObject({
    type: 'name-taken',
  });
  expect(await checkpointOf(store, { run: 'mine', step: null })).toEqual(first.ref);
});

test('halves are stored as float32, and written as halves on request, in shards of the size asked for', async () => {
  const folder = path.join(fixtures, 'qwen2-yarn-bf16');
  const { ref } = await importModel(store, folder, 'halves');
  const { files } = await loadPolicy(store, ref);
  expect(JSON.parse(files.get('config.json')!.toString())).toMatchObject({ dtype: 'float32' });
  const target = path.join(scratch, 'halves');
  await exportModel(store, ref, target, { dtype: 'BF16', maxShardBytes: 20_000, onnx: false });
  const shards = (await readdir(target)).filter((name) => name.startsWith('model-'));
  expect(shards.length).toBeGreaterThan(1);
  expect(JSON.parse(await readFile(path.join(target, 'config.json'), 'utf8'))).toMatchObject({
    dtype: 'bfloat16',
  });
  expect((await loadHfDirectory(target)).weights).toEqual((await loadHfDirectory(folder)).weights);
});

test('ONNX is written so that onnxruntime loads it from its folder', async () => {
  const { ref } = await importModel(store, path.join(fixtures, 'qwen3-biases'), 'served');
  await exportModel(store, ref, path.join(scratch, 'served'), { ...plain, onnx: true });
  const session = await InferenceSession.create(path.join(scratch, 'served', 'onnx', 'decoder.onnx'));
  expect(session.outputNames).toContain('logits');
  await session.release();
});

test('a tokenizer with more tokens than the model is refused', async () => {
  const folder = path.join(scratch, 'foreign');
  await cp(path.join(fixtures, 'llama-tied'), folder, { recursive: true });
  await writeFile(path.join(folder, 'tokenizer.json'), tokenizerJson);
  await expect(importModel(store, folder, 'foreign')).rejects.toThrow(/do not belong together/);
});

test('a model that the decoder cannot run is refused before it is stored', async () => {
  const folder = path.join(scratch, 'odd');
  await cp(path.join(fixtures, 'llama-tied'), folder, { recursive: true });
  const { config, weights } = await loadHfDirectory(folder);
  const half = { ...config, headSize: 8, attentionHeads: 8, keyValueHeads: 4 };
  const json = JSON.parse(await readFile(path.join(folder, 'config.json'), 'utf8')) as object;
  const changed = { ...json, head_dim: 8, num_attention_heads: 8, num_key_value_heads: 4 };
  await writeFile(path.join(folder, 'config.json'), JSON.stringify(changed));
  expect((await loadHfDirectory(folder)).config).toEqual(half);
  expect(weights.size).toBeGreaterThan(0);
  await expect(importModel(store, folder, 'odd')).rejects.toThrow(/headSize is 8/);
  await expect(checkpointOf(store, { run: 'odd', step: null })).rejects.toThrow(/no checkpoint/);
});

test('the commands find the store by the environment, and refuse what they cannot do in a sentence', async () => {
  const env = server.environment();
  const tsx = createRequire(import.meta.url).resolve('tsx');
  const gradus = async (...args: string[]) =>
    promisify(execFile)(process.execPath, ['--import', tsx, path.join(root, 'cli/gradus.ts'), ...args], {
      env,
    });
  const target = path.join(scratch, 'by-command');
  const imported = await gradus('import', path.join(fixtures, 'qwen2'), '--as', 'by-command');
  expect(imported.stdout).toContain('{"model": {"from": "by-command"}}');
  expect((await gradus('checkpoints', 'by-command')).stdout).toContain('import');
  expect((await gradus('export', 'by-command', '--to', target, '--dtype', 'float16')).stdout).toContain(
    target,
  );
  expect((await loadHfDirectory(target)).config).toEqual(
    (await loadHfDirectory(path.join(fixtures, 'qwen2'))).config,
  );
  await expect(gradus('export', 'by-command', '--to', target)).rejects.toMatchObject({
    stderr: expect.stringContaining('is there and not empty') as string,
  });
  await expect(gradus('export', 'by-command@7', '--to', `${target}-7`)).rejects.toMatchObject({
    stderr: expect.stringContaining('no checkpoint of step 7; there are: 0') as string,
  });
  await expect(gradus('import', scratch)).rejects.toMatchObject({
    stderr: expect.stringContaining('it has no config.json') as string,
  });
});
