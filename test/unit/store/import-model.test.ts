import { cp, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { importModel } from '../../../store/training/import-model.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { templateOf } from '../engine/dialect/fixtures.ts';
import { FULL_SIZES, fullSizeJson } from '../engine/tokenizer/full-size.ts';

const model = path.resolve(import.meta.dirname, '../../fixtures/models/qwen2');
/** Nothing that is refused reaches it. */
const store = undefined as unknown as ObjectStore;

/** A model of Qwen's shape whose weights are damaged, so that whoever reads them says so. */
async function folderWith(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-import-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  await cp(model, folder, { recursive: true });
  const config = JSON.parse(await readFile(path.join(model, 'config.json'), 'utf8')) as object;
  const whole = {
    'model.safetensors': 'no weights at all',
    'config.json': JSON.stringify({ ...config, vocab_size: FULL_SIZES['qwen2.5'].rows }),
    'tokenizer.json': fullSizeJson('qwen2.5'),
    'tokenizer_config.json': JSON.stringify({ chat_template: templateOf('qwen2.5-like') }),
    ...files,
  };
  await Promise.all(Object.entries(whole).map(([name, text]) => writeFile(path.join(folder, name), text)));
  return folder;
}

test.each<[string, Record<string, string>, RegExp]>([
  ['tokenizer', { 'tokenizer.json': '{}' }, /not a tokenizer.json that can be used/],
  [
    'tokenizer with more tokens than the model',
    { 'tokenizer.json': fullSizeJson('qwen3').replace('"id":151643', '"id":151936') },
    /tokens up to 151936 and the model knows 151936/,
  ],
  [
    'chat template',
    { 'tokenizer_config.json': JSON.stringify({ chat_template: '{% if %}' }) },
    /chat template cannot be read/,
  ],
  [
    'chat template that loops',
    { 'chat_template.jinja': '{% for i in range(1000000000) %}x{% endfor %}' },
    /chat template does/,
  ],
  ['nothing but the weights', {}, /model.safetensors: not a whole safetensors file/],
])('a model whose %s cannot be used is refused before its weights are read', async (_, files, why) => {
  await expect(importModel(store, await folderWith(files), 'name')).rejects.toThrow(why);
});
