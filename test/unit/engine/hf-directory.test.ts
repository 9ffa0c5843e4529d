import { execFileSync } from 'node:child_process';
import { mkdtemp, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { tmpdir, totalmem } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { loadHfDirectory } from '../../../engine/hf-directory.ts';
import { weightShapes } from '../../../core/model/config.ts';
import { newModelFiles } from '../../../engine/new-model-files.ts';
import { writeSafetensors } from '../../../engine/safetensors/safetensors.ts';
import type { StoredTensor } from '../../../engine/safetensors/safetensors.ts';
import { randomWeights, smallConfig } from '../../support/engine/random-model.ts';

const weights = randomWeights(smallConfig);
const INDEX = 'model.safetensors.index.json';

async function folderWith(contents: Record<string, Uint8Array | string>): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-model-'));
  onTestFinished(() => rm(folder, { recursive: true }));
  const files = { ...Object.fromEntries(newModelFiles(smallConfig, '{}')), ...contents };
  await Promise.all(Object.entries(files).map(([name, bytes]) => writeFile(path.join(folder, name), bytes)));
  return folder;
}

const changed = (change: (tensors: Map<string, StoredTensor>) => void) => {
  const tensors = new Map<string, StoredTensor>(weights);
  change(tensors);
  return { 'model.safetensors': writeSafetensors(tensors) };
};

/** Two shards and their index. */
function sharded(): Record<string, Uint8Array | string> {
  const entries = [...weights];
  const parts = [entries.slice(0, 9), entries.slice(9)];
  const name = (i: number) => `model-0000${i + 1}-of-00002.safetensors`;
  const map = parts.flatMap((part, i) => part.map(([tensor]) => [tensor, name(i)]));
  return {
    [name(0)]: writeSafetensors(new Map(parts[0])),
    [name(1)]: writeSafetensors(new Map(parts[1])),
    [INDEX]: JSON.stringify({ metadata: {}, weight_map: Object.fromEntries(map) }),
  };
}

test('a folder of one file and one of shards are the same model', async () => {
  const one = await loadHfDirectory(await folderWith(changed(() => undefined)));
  const many = await loadHfDirectory(await folderWith(sharded()));
  for (const { config, weights: read, files } of [one, many]) {
    expect(config).toEqual(smallConfig);
    expect(read).toEqual(weights);
    expect([...files.keys()].toSorted()).toEqual([
      'config.json',
      'generation_config.json',
      'tokenizer.json',
      'tokenizer_config.json',
    ]);
  }
});

test('halves become float32, and a tied head that is stored again and derived buffers are passed over', async () => {
  const tensors = new Map<string, StoredTensor>(weights);
  tensors.set('lm_head.weight', weights.get('model.embed_tokens.weight')!);
  tensors.set('model.layers.0.self_attn.rotary_emb.inv_freq', { shape: [1], data: Float32Array.of(1) });
  const folder = await folderWith({
    'model.safetensors': writeSafetensors(tensors, { format: 'pt' }, 'BF16'),
  });
  const { weights: read } = await loadHfDirectory(folder);
  expect([...read.keys()]).toEqual([...weights.keys()]);
  for (const [name, { data }] of read) {
    const original = weights.get(name)!.data;
    expect(data.every((x, i) => Math.abs(x - original[i]!) <= Math.abs(original[i]!) / 256)).toBe(true);
  }
});

test.each<[string, Record<string, Uint8Array | string>, RegExp]>([
  ['no weights', {}, /has no model.safetensors/],
  ['weights in a pickle', { 'pytorch_model.bin': 'x' }, /not in safetensors: convert them/],
  ['a missing tensor', changed((t) => t.delete('model.norm.weight')), /no model.norm.weight/],
  [
    'an unexpected tensor',
    changed((t) => t.set('model.layers.0.self_attn.q_proj.bias', { shape: [1], data: Float32Array.of(0) })),
    /1 tensor\(s\) that config.json does not account for: model.layers.0.self_attn.q_proj.bias/,
  ],
  [
    'a tensor of another shape',
    changed((t) => t.set('model.norm.weight', { shape: [2], data: Float32Array.of(0, 1) })),
    /model.norm.weight is \[2\] and config.json makes it \[48\]/,
  ],
  [
    'weights that are no numbers',
    changed((t) => t.set('model.norm.weight', { shape: [48], data: new Float32Array(48).fill(NaN, 7, 8) })),
    /model.norm.weight\[7\] is NaN: the weights are damaged/,
  ],
  ['an index that is not JSON', { ...sharded(), [INDEX]: '{' }, /index.json is not JSON/],
  ['an index without a map', { ...sharded(), [INDEX]: '{}' }, /no weight_map/],
  [
    'an index that leads out of the folder',
    { [INDEX]: '{"weight_map":{"a":"../a.safetensors"}}' },
    /no file name for a/,
  ],
  [
    'a missing shard',
    { [INDEX]: '{"weight_map":{"model.norm.weight":"model-00009.safetensors"}}' },
    /names model-00009.safetensors, which is not there/,
  ],
  [
    'an index that is wrong about a shard',
    { ...changed(() => undefined), [INDEX]: '{"weight_map":{"nothing":"model.safetensors"}}' },
    /model.safetensors has nothing, which it has not/,
  ],
  ['another architecture', { 'config.json': '{"model_type":"gpt2"}' }, /architecture gpt2/],
])('%s is refused by name', async (_, contents, message) => {
  await expect(loadHfDirectory(await folderWith(contents))).rejects.toThrow(message);
});

test('a file that was cut off is refused with its name', async () => {
  const folder = await folderWith(changed(() => undefined));
  const file = path.join(folder, 'model.safetensors');
  await truncate(file, 10_000);
  await expect(loadHfDirectory(folder)).rejects.toMatchObject({
    type: 'corrupt-safetensors',
    message: expect.stringContaining(file) as string,
  });
  await truncate(file, 5);
  await expect(loadHfDirectory(folder)).rejects.toThrow(/cannot hold a header/);
});

test('a folder that is not there, or without a tokenizer.json, says what to do', async () => {
  await expect(loadHfDirectory('/nowhere')).rejects.toThrow(/give the folder that has its config.json/);
  const folder = await folderWith({ 'tokenizer.model': 'x' });
  await rm(path.join(folder, 'tokenizer.json'));
  await expect(loadHfDirectory(folder)).rejects.toThrow(/save it again, which writes tokenizer.json/);
});

/** Processor time that a folder with so many empty tensors takes until it is refused, milliseconds. */
async function refusedAfterMs(tensors: number): Promise<number> {
  const names = Array.from({ length: tensors }, (_, i) => `t${i}`);
  const shard = 'model-00001-of-00001.safetensors';
  const empty: StoredTensor = { shape: [0], data: new Float32Array(0) };
  const folder = await folderWith({
    [shard]: writeSafetensors(new Map(names.map((name) => [name, empty]))),
    [INDEX]: JSON.stringify({ weight_map: Object.fromEntries(names.map((name) => [name, shard])) }),
  });
  const before = process.cpuUsage();
  await expect(loadHfDirectory(folder)).rejects.toThrow(`the weights have ${tensors} tensor(s) that config`);
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}

test('the time that empty tensors in an index take grows as they do', async () => {
  await refusedAfterMs(10_000);
  const [some, many] = [await refusedAfterMs(10_000), await refusedAfterMs(100_000)];
  // Ten times as many; what copies all names for each takes a hundred times as long.
  expect(many / some).toBeLessThan(40);
});

/** Any of these files may be what is read for ever. */
const READ = ['config.json', 'tokenizer.json', 'LICENSE', 'model.safetensors', INDEX];

test.each(READ)(
  '%s that is a pipe, a device or a folder is refused by its name, and not waited for',
  async (name) => {
    const folder = await folderWith(changed(() => undefined));
    const file = path.join(folder, name);
    const refused = {
      type: 'invalid-model',
      message: expect.stringContaining(`${name} cannot be read`) as string,
    };
    await rm(file, { force: true });
    execFileSync('mkfifo', [file]);
    await expect(loadHfDirectory(folder)).rejects.toMatchObject(refused);
    await rm(file);
    await symlink('/dev/zero', file);
    await expect(loadHfDirectory(folder)).rejects.toMatchObject(refused);
  },
);

test('a small file of gigabytes is refused by its size', async () => {
  const folder = await folderWith(changed(() => undefined));
  await truncate(path.join(folder, 'tokenizer.json'), 2 ** 33);
  await expect(loadHfDirectory(folder)).rejects.toThrow(
    'tokenizer.json cannot be read: it has 8589934592 bytes',
  );
});

test('weights that no memory can hold are refused before any is read', async () => {
  const config = { ...smallConfig, hiddenSize: 2 ** 17, vocabSize: Math.ceil(totalmem() / 2 ** 18) };
  let end = 0;
  const entries = weightShapes(config).map(([name, shape]) => {
    const begin = end;
    end += 4 * shape.reduce((product, n) => product * n, 1);
    return [name, { dtype: 'F32', shape, data_offsets: [begin, end] }];
  });
  const json = new TextEncoder().encode(JSON.stringify(Object.fromEntries(entries)));
  const header = new Uint8Array(8 + json.length);
  new DataView(header.buffer).setBigUint64(0, BigInt(json.length), true);
  header.set(json, 8);
  const files = Object.fromEntries(newModelFiles(config, '{}'));
  const folder = await folderWith({ ...files, 'model.safetensors': header });
  // Nothing of it is on the disk.
  await truncate(path.join(folder, 'model.safetensors'), header.length + end);
  await expect(loadHfDirectory(folder)).rejects.toThrow(/its weights take [\d.]+ GiB as float32/);
});

/** Files that are parsed, each of which may be nested without end: a level takes a hundred times the memory of its bracket. */
const JSON_FILES = ['config.json', 'tokenizer.json', INDEX];
const NESTED = `{"a":${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}}`;

test.each(JSON_FILES)('%s of a million levels is refused by its name', async (name) => {
  const folder = await folderWith(changed(() => undefined));
  await writeFile(path.join(folder, name), NESTED);
  await expect(loadHfDirectory(folder)).rejects.toMatchObject({
    type: 'invalid-model',
    message: expect.stringContaining(`${name} is not JSON (it has more than 64 levels)`) as string,
  });
});

test('weights with a header of a million levels are refused', async () => {
  const folder = await folderWith(changed(() => undefined));
  const header = Buffer.alloc(8 + NESTED.length);
  header.writeBigUInt64LE(BigInt(NESTED.length));
  header.write(NESTED, 8);
  await writeFile(path.join(folder, 'model.safetensors'), header);
  await expect(loadHfDirectory(folder)).rejects.toMatchObject({ type: 'corrupt-safetensors' });
});

test.each(['[]', '{"architectures":["X"]}'])('a reason is short, however long %s is', async (plain) => {
  const folder = await folderWith(changed(() => undefined));
  await writeFile(path.join(folder, 'config.json'), plain.replace('X', 'x'.repeat(1_000_000)));
  const refused = (await loadHfDirectory(folder).catch((error: unknown) => error)) as Error;
  expect(refused.message).toMatch(/^config\.json: /u);
  expect(refused.message.length).toBeLessThan(1000);
});

test('a configuration of many megabytes is refused by its size', async () => {
  const folder = await folderWith(changed(() => undefined));
  await truncate(path.join(folder, 'config.json'), 2 ** 24 + 1);
  await expect(loadHfDirectory(folder)).rejects.toThrow('config.json cannot be read: it has 16777217 bytes');
});
