import { execFile } from 'node:child_process';
import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { loadPolicy, readManifest } from '../../../store/training/checkpoints.ts';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { importAdapter } from '../../../store/training/import-adapter.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { exportModel } from '../../../cli/export-model.ts';
import { OnnxBackend } from '../../../engine/decoder/onnx-backend.ts';
import { flat } from '../../support/engine/random-model.ts';
import { CASES, expected, LENGTH, ROWS } from '../../support/engine/peft-fixtures.ts';
import type { Case } from '../../support/engine/peft-fixtures.ts';
import { openTestStore } from '../../support/test-store.ts';

// Adapters that PEFT made for a base that transformers made: test/parity/peft/make_fixtures.py.

const root = path.resolve(import.meta.dirname, '../../..');
const adapterOf = (name: Case) => path.join(root, 'test/fixtures/peft', name);
const { server, store } = await openTestStore();
let scratch: string;
let base: string;

beforeAll(async () => {
  scratch = await mkdtemp(path.join(tmpdir(), 'gradus-adapter-'));
  base = path.join(scratch, 'base');
  await cp(path.join(root, 'test/fixtures/peft/base'), base, { recursive: true });
  for (const file of ['tokenizer.json', 'tokenizer_config.json'])
    await cp(path.join(root, 'test/fixtures/models/llama-tied', file), path.join(base, file));
  await importModel(store, base, 'base');
});
afterAll(async () => {
  await rm(scratch, { recursive: true });
});

async function gradus(...args: string[]) {
  const tsx = createRequire(import.meta.url).resolve('tsx');
  const command = ['--import', tsx, path.join(root, 'cli/gradus.ts'), ...args];
  return promisify(execFile)(process.execPath, command, { env: server.environment() });
}

test.each(CASES)("PEFT's adapter and its base become the model that PEFT computes: %s", async (name) => {
  const checkpoint = await checkpointOf(store, { run: 'base', step: null });
  const { ref } = await importAdapter(store, adapterOf(name), { checkpoint }, name);
  const { config, weights } = await loadPolicy(store, ref);
  const { tokens, logits, merged } = expected(name);
  for (const [key, { data }] of merged) {
    const ours = weights.get(key)!.data;
    expect(Math.max(...ours.map((value, i) => Math.abs(value - data[i]!)))).toBeLessThan(1e-6);
  }
  const decoder = await OnnxBackend.load(config, flat(config, weights), 1);
  for (let row = 0; row < ROWS; row++) {
    const given = await decoder.prefill([...tokens.subarray(row * LENGTH, (row + 1) * LENGTH)]);
    const last = logits.subarray(((row + 1) * LENGTH - 1) * config.vocabSize).slice(0, config.vocabSize);
    expect(Math.max(...given.logits.map((value, i) => Math.abs(value - last[i]!)))).toBeLessThan(1e-4);
  }
  await decoder.dispose();
  expect((await readManifest(store, ref.manifest)).parent).toEqual(checkpoint);
  // The folder of the base gives the same weights as its checkpoint, and the same import is the same checkpoint.
  const fromFolder = await importAdapter(store, adapterOf(name), { folder: base }, `${name}-folder`);
  expect(fromFolder.ref.weights).toBe(ref.weights);
  expect(await importAdapter(store, adapterOf(name), { checkpoint }, name)).toMatchObject({ ref });
});

test('another adapter under a name that is taken is refused', async () => {
  await importAdapter(store, adapterOf('lora'), { folder: base }, 'taken');
  const other = importAdapter(store, adapterOf('rslora'), { folder: base }, 'taken');
  await expect(other).rejects.toMatchObject({ type: 'name-taken' });
});

test('the command merges, the export says into what, and the model leaves without its adapter', async () => {
  const imported = await gradus('import', adapterOf('lora'), '--base', 'base', '--as', 'by-command');
  expect(imported.stdout).toContain('{"model": {"from": "by-command"}}');
  const target = path.join(scratch, 'exported');
  const ref = await checkpointOf(store, { run: 'by-command', step: null });
  await exportModel(store, ref, target, { dtype: 'F32', maxShardBytes: 5e9, onnx: false });
  const card = await readFile(path.join(target, 'README.md'), 'utf8');
  expect(card).toMatch(/imported LoRA adapter, merged into `runs\/base\/checkpoints\/000000/);
});

/** The adapter of PEFT with its configuration, or its file of matrices, otherwise. */
async function changed(name: string, config: object, matrices?: Uint8Array): Promise<string> {
  const folder = path.join(scratch, name);
  await cp(adapterOf('lora'), folder, { recursive: true });
  const file = path.join(folder, 'adapter_config.json');
  const json = JSON.parse(await readFile(file, 'utf8')) as object;
  await writeFile(file, JSON.stringify({ ...json, ...config }));
  if (matrices) await writeFile(path.join(folder, 'adapter_model.safetensors'), matrices);
  return folder;
}

test.each<[string, () => Promise<string[]>, RegExp]>([
  [
    'an adapter without a base',
    async () => [await changed('homeless', { base_model_name_or_path: 'Qwen/Qwen2.5-0.5B' })],
    /LoRA adapter and not its base, which its maker calls "Qwen\/Qwen2\.5-0\.5B": .*--base/,
  ],
  [
    'a base that is not there',
    async () => [adapterOf('lora'), '--base', 'nobody'],
    /"nobody" has no checkpoint/,
  ],
  [
    'a base of other shapes',
    async () => [adapterOf('lora'), '--base', path.join(root, 'test/fixtures/models/llama-all-heads')],
    /k_proj\.lora_B\.weight is \[32, 4\], not \[64, 4\] of this model/,
  ],
  [
    'target modules that are none',
    async () => [await changed('embeds', { target_modules: ['embed_tokens'] }), '--base', 'base'],
    /target_modules has "embed_tokens"/,
  ],
  [
    'a kind that is more than LoRA',
    async () => [await changed('dora', { use_dora: true }), '--base', 'base'],
    /use_dora is true, which is not supported/,
  ],
  [
    'matrices that are no safetensors',
    async () => [await changed('broken', {}, new Uint8Array(20)), '--base', 'base'],
    /safetensors/,
  ],
  ['a base for a whole model', async () => [base, '--base', 'base'], /is no LoRA adapter: leave out --base/],
])('%s is refused in a sentence, and nothing is stored', async (_, args, message) => {
  await expect(gradus('import', ...(await args()), '--as', 'refused')).rejects.toMatchObject({
    stderr: expect.stringMatching(message) as string,
  });
  await expect(checkpointOf(store, { run: 'refused', step: null })).rejects.toThrow(/no checkpoint/);
});
