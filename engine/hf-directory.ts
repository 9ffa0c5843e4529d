import { readdir } from 'node:fs/promises';
import { totalmem } from 'node:os';
import path from 'node:path';
import { GradusError, messageOf } from '../core/errors.ts';
import type { Json } from '../core/json/json.ts';
import { inBrief, parseForeignJson } from './foreign-json.ts';
import { modelConfigOf } from './hf-model-config.ts';
import { INDEX, SINGLE } from './hf-shards.ts';
import { parameterCount, weightShapes } from '../core/model/config.ts';
import type { ModelConfig, Weights } from '../core/model/config.ts';
import { readRegularFile } from './regular-file.ts';
import { SafetensorsFile } from './safetensors/file.ts';

/** A model in Hugging Face's layout, without its weights, which may be gigabytes. */
export interface HfDirectory {
  config: ModelConfig;
  /** The small files, by name and to the byte. */
  files: Map<string, Uint8Array>;
  /**
   * Weights as float32, whatever they are stored as. Throws GradusError('store', 'invalid-model') that names what is missing,
   * unexpected, of another shape, or not finite, and GradusError('store', 'corrupt-safetensors') for damaged files.
   */
  readWeights: () => Promise<Weights>;
}

/** The same, read whole. */
export interface HfModel {
  config: ModelConfig;
  weights: Weights;
  files: Map<string, Uint8Array>;
}

/** Small files that go with a model. The others in the folder (weights in other formats, pictures) are not its. */
const SMALL_FILES = [
  'config.json',
  'tokenizer.json',
  'tokenizer_config.json',
  'generation_config.json',
  'special_tokens_map.json',
  'added_tokens.json',
  'chat_template.jinja',
  'vocab.json',
  'merges.txt',
  'LICENSE',
];
/** The others have some thousand bytes, the longest index some millions. */
const VOCABULARIES = ['tokenizer.json', 'vocab.json', 'merges.txt'];
const LONGEST = 2 ** 24;
/** Buffers that older versions of transformers saved; they follow from the configuration. */
const DERIVED = /\.rotary_emb\.inv_freq$/;

/**
 * Reads a folder that `save_pretrained` or a download made: `config.json`, `tokenizer.json`, and the weights as one
 * safetensors file or as shards with their index. Throws GradusError('store', 'invalid-model') that names a small file
 * that is missing or no JSON, and GradusError('store', 'unsupported-model') for an architecture or option that cannot be run.
 */
export async function openHfDirectory(folder: string): Promise<HfDirectory> {
  const present = await readdir(folder).catch((cause: unknown) => {
    throw invalid(
      folder,
      `it cannot be read (${messageOf(cause)}): give the folder that has its config.json`,
    );
  });
  const files = new Map<string, Uint8Array>();
  for (const name of SMALL_FILES) {
    if (present.includes(name)) files.set(name, await fileOf(folder, name));
  }
  for (const name of ['config.json', 'tokenizer.json']) {
    if (!files.has(name)) throw invalid(folder, missing(name, present));
  }
  const [configJson, tokenizerJson] = ['config.json', 'tokenizer.json'].map((name) =>
    jsonOf(folder, name, files.get(name)!),
  ) as [Json, Json];
  const config = modelConfigOf(configJson, tokenizerJson);
  return { config, files, readWeights: () => readWeights(folder, present, config) };
}

/** A folder read whole, as `openHfDirectory` and `readWeights` say. */
export async function loadHfDirectory(folder: string): Promise<HfModel> {
  const { config, files, readWeights } = await openHfDirectory(folder);
  return { config, files, weights: await readWeights() };
}

async function readWeights(
  folder: string,
  present: readonly string[],
  config: ModelConfig,
): Promise<Weights> {
  const shards = await openShards(folder, present);
  try {
    const where = new Map<string, SafetensorsFile>();
    for (const { file, names } of shards) for (const name of names) where.set(name, file);
    const shapes = weightShapes(config);
    refuseOthers(folder, where, config);
    // All headers before the first weight, which may be gigabytes away from the one that is wrong.
    for (const [name, shape] of shapes) {
      const entry = where.get(name)?.entry(name);
      if (entry === undefined) throw invalid(folder, `the weights have no ${name}: the model is not whole`);
      if (entry.shape.join() !== shape.join() || entry.dtype === 'I32') {
        throw invalid(
          folder,
          `${name} is [${entry.shape.join(', ')}] and config.json makes it [${shape.join(', ')}] of floats`,
        );
      }
    }
    const bytes = 4 * parameterCount(config);
    if (bytes > totalmem()) {
      const [needs, has] = [bytes, totalmem()].map((one) => `${(one / 2 ** 30).toFixed(1)} GiB`);
      throw invalid(folder, `its weights take ${needs} as float32, and this machine has ${has} of memory`);
    }
    const weights: Weights = new Map();
    for (const [name, shape] of shapes) {
      const data = (await where.get(name)!.read(name)).data as Float32Array;
      const broken = firstNotFinite(data);
      if (broken >= 0) {
        throw invalid(folder, `${name}[${broken}] is ${data[broken]}: the weights are damaged`);
      }
      weights.set(name, { shape, data });
    }
    return weights;
  } finally {
    await Promise.all(shards.map(({ file }) => file.close()));
  }
}

/** A loop, because a callback for each of half a billion numbers takes seconds. -1 for none. */
function firstNotFinite(data: Float32Array): number {
  // x − x is 0 for every number but NaN and the infinities.
  for (let i = 0; i < data.length; i++) if (data[i]! - data[i]! !== 0) return i;
  return -1;
}

/** Weights that the configuration does not know would be lost silently. A tied head may be stored a second time. */
function refuseOthers(folder: string, where: ReadonlyMap<string, unknown>, config: ModelConfig): void {
  const known = new Set(weightShapes(config).map(([name]) => name));
  if (config.tieEmbeddings) known.add('lm_head.weight');
  const others = [...where.keys()].filter((name) => !known.has(name) && !DERIVED.test(name));
  if (others.length > 0) {
    const shown = others.slice(0, 3).join(', ');
    throw invalid(
      folder,
      `the weights have ${others.length} tensor(s) that config.json does not account for: ${shown}${others.length > 3 ? ', …' : ''}`,
    );
  }
}

interface Shard {
  file: SafetensorsFile;
  /** What the index takes from it; all of it where there is no index. */
  names: readonly string[];
}

async function openShards(folder: string, present: readonly string[]): Promise<Shard[]> {
  if (!present.includes(INDEX)) {
    if (!present.includes(SINGLE)) throw invalid(folder, missing(SINGLE, present));
    const file = await shardOf(folder, SINGLE);
    return [{ file, names: file.names }];
  }
  const byShard = readIndex(folder, jsonOf(folder, INDEX, await fileOf(folder, INDEX)));
  const opened: Shard[] = [];
  try {
    for (const [shard, names] of byShard) {
      if (!present.includes(shard)) throw invalid(folder, `${INDEX} names ${shard}, which is not there`);
      const file = await shardOf(folder, shard);
      opened.push({ file, names });
      const absent = names.find((name) => !file.has(name));
      if (absent !== undefined)
        throw invalid(folder, `${INDEX} says that ${shard} has ${absent}, which it has not`);
    }
    return opened;
  } catch (error) {
    await Promise.all(opened.map(({ file }) => file.close()));
    throw error;
  }
}

async function shardOf(folder: string, name: string): Promise<SafetensorsFile> {
  try {
    return await SafetensorsFile.open(path.join(folder, name));
  } catch (cause) {
    if (cause instanceof GradusError) throw cause;
    throw invalid(folder, `${name} cannot be read: ${messageOf(cause)}`, cause);
  }
}

/** Names by shard. */
function readIndex(folder: string, index: Json): Map<string, string[]> {
  const map = isObject(index) ? index['weight_map'] : undefined;
  if (map === undefined || !isObject(map)) throw invalid(folder, `${INDEX} has no weight_map`);
  const byShard = new Map<string, string[]>();
  for (const [name, shard] of Object.entries(map)) {
    // A path could lead out of the folder.
    if (typeof shard !== 'string' || path.basename(shard) !== shard) {
      throw invalid(folder, `${INDEX} has no file name for ${name}`);
    }
    const names = byShard.get(shard);
    if (names) names.push(name);
    else byShard.set(shard, [name]);
  }
  return byShard;
}

async function fileOf(folder: string, name: string): Promise<Uint8Array> {
  try {
    return await readRegularFile(path.join(folder, name), VOCABULARIES.includes(name) ? undefined : LONGEST);
  } catch (cause) {
    throw invalid(folder, `${name} cannot be read: ${messageOf(cause)}`, cause);
  }
}

function jsonOf(folder: string, name: string, bytes: Uint8Array): Json {
  try {
    return parseForeignJson(bytes);
  } catch (cause) {
    throw invalid(folder, `${name} is not JSON (${messageOf(cause)})`, cause);
  }
}

function missing(name: string, present: readonly string[]): string {
  if (name === SINGLE && present.some((file) => /\.(bin|pth|gguf)$/.test(file))) {
    return `its weights are not in safetensors: convert them first, e.g. with \`save_pretrained\` of transformers`;
  }
  if (name === 'tokenizer.json' && present.includes('tokenizer.model')) {
    return 'it has only a SentencePiece tokenizer: load it with AutoTokenizer of transformers and save it again, which writes tokenizer.json';
  }
  return `it has no ${name}`;
}

const isObject = (value: Json): value is { [key: string]: Json } =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const invalid = (folder: string, what: string, cause?: unknown): GradusError =>
  new GradusError('store', 'invalid-model', `${folder}: ${inBrief(what)}`, { cause });
