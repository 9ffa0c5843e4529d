import { GradusError } from '../../core/errors.ts';
import { commandLine } from '../../core/installation.ts';
import type { Json } from '../../core/json/json.ts';
import type { BlobRef, CheckpointRef } from '../../core/refs.ts';
import type { TrainRequest } from '../../core/requests/learner.ts';
import { modelConfigOf } from '../../engine/hf-model-config.ts';
import type { CriticState, TrainState } from '../../engine/learner/contract.ts';
import { criticShapes } from '../../engine/learner/critic.ts';
import {
  INDEX,
  indexBytesOf,
  MAX_SHARD_BYTES,
  weightFileNames,
  weightFilesOf,
} from '../../engine/hf-shards.ts';
import { parameterShapes } from '../../engine/lora/adapter-shapes.ts';
import type { LoraAdapter } from '../../engine/lora/adapter.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { mergeInPieces } from '../../engine/lora/merge-adapter.ts';
import {
  ADAPTER_CONFIG,
  ADAPTER_MODEL,
  readPeftAdapter,
  toPeftConfig,
  writePeftModel,
} from '../../engine/lora/peft-format.ts';
import { weightShapes } from '../../core/model/config.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { ITEM_BYTES } from '../../engine/safetensors/dtypes.ts';
import { readSafetensors, safetensorsParts, writeSafetensors } from '../../engine/safetensors/safetensors.ts';
import { sha256OfMany } from '../digest.ts';
import { checkpointFolder } from '../keys.ts';
import { manifests, policyVersion, WEIGHTS_ELSEWHERE } from './manifest.ts';
import type { CheckpointManifest } from './manifest.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';
import { tensorsInOrder, weightsOf } from './tensors.ts';
import { encodeTrainRequest, TRAIN_REQUEST } from './train-request.ts';

/**
 * The small files of a model that training does not change, by name and to the byte: `config.json`, `tokenizer.json`,
 * `tokenizer_config.json`, `generation_config.json`, a chat template.
 */
export type ModelFiles = ReadonlyMap<string, Uint8Array>;

/** There where a critic was trained. It is no part of the policy: neither adopted by another run nor exported. */
export const CRITIC = 'critic.safetensors';

const OPTIMIZER = 'optimizer.safetensors';

/** Files that only a learner reads: they are neither served nor exported. */
export const ONLY_LEARNERS: ReadonlySet<string> = new Set([OPTIMIZER, CRITIC, TRAIN_REQUEST]);

export interface PolicyContent {
  config: ModelConfig;
  weights: Weights;
  files: ModelFiles;
}

export interface CheckpointContent {
  run: string;
  stage: string;
  /** Counts over the whole run, so that checkpoints of a run are ordered by it. */
  step: number;
  parent?: CheckpointRef | undefined;
  backend: string;
  createdBy: string;
  state: TrainState;
  /** The checkpoint of the same run whose weights `state.adapter` is for; its weights are not written again. */
  base?: CheckpointRef | undefined;
  /** Its `config.json` is what `state.config` was read from. */
  files: ModelFiles;
  /** The step that made it, kept in the place of the moments of policy and critic. Absent: the moments are kept. */
  insteadOfMoments?: TrainRequest | undefined;
  /** Weights of more bytes lie in shards. Absent: `MAX_SHARD_BYTES`. */
  maxShardBytes?: number | undefined;
}

/**
 * Writes a checkpoint in Hugging Face layout under `runs/<run>/checkpoints/<step>-<weights>/`: the files in
 * parallel, then the manifest, which makes it one. An attempt that is repeated takes over what an earlier one
 * uploaded, and returns the same ref when that one had come to the end.
 * Throws GradusError('store', 'checkpoint-conflict') when another checkpoint with the same step and weights, but
 * other content, was begun there.
 */
export async function saveCheckpoint(
  store: ObjectStore,
  content: CheckpointContent,
  options: CallOptions = {},
): Promise<CheckpointRef> {
  const contents: { name: string; parts: readonly Uint8Array[]; sha256: string }[] = [];
  for (const [name, parts] of contentsOf(content)) {
    contents.push({ name, parts, sha256: await sha256OfMany(...parts) });
  }
  const weights = policyVersion({
    files: Object.fromEntries(
      contents.map(({ name, sha256 }) => [name, { sha256 }]),
    ) as CheckpointManifest['files'],
    base: content.base,
  });
  const folder = checkpointFolder(content.run, content.step, weights);
  const manifestKey = `${folder}/manifest.json`;
  const committed = await store.head(manifestKey, options);
  if (committed) {
    const there = await readManifest(store, committed, options);
    // Moments that differ would be another future.
    const other = contents.some(({ name, sha256 }) => there.files[name]?.sha256 !== sha256);
    if (other) throw conflict(manifestKey);
    return refOf(committed, there, weights);
  }
  const files = Object.fromEntries(
    await Promise.all(
      contents.map(async ({ name, parts, sha256 }): Promise<[string, BlobRef]> => {
        const contentType = contentTypeOf(name);
        // Moments are twice as large as weights, and read again by a learner alone that takes over from another one.
        const cached = !ONLY_LEARNERS.has(name);
        const put = { ...options, contentType, sha256, cached, conflict };
        return [name, await store.putSame(`${folder}/${name}`, parts, put)];
      }),
    ),
  ) as CheckpointManifest['files'];
  const manifest: CheckpointManifest = {
    format: 'gradus.checkpoint/1',
    run: content.run,
    stage: content.stage,
    step: content.step,
    ...(content.parent && { parent: content.parent }),
    ...(content.base && { base: content.base }),
    backend: content.backend,
    updates: content.state.updates,
    createdBy: content.createdBy,
    files,
  };
  const kept = await store.putIfAbsent(manifestKey, manifests, manifest, options);
  return refOf(kept.ref, kept.value, weights);
}

/**
 * The policy of a checkpoint as checkpoint 0 of another run: the same files to the byte, without optimizer state and critic, so
 * that the new run does not depend on what becomes of the old one; `replaced` are small files that it has otherwise. An
 * adapter is merged into its base.
 */
export async function adoptCheckpoint(
  store: ObjectStore,
  source: CheckpointRef,
  run: string,
  { replaced = new Map(), ...options }: CallOptions & { replaced?: ModelFiles } = {},
): Promise<CheckpointRef> {
  const manifest = await readManifest(store, source.manifest, options);
  if (manifest.base) {
    const { config, weights, files } = await readPolicy(store, source, manifest, options);
    const state = { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
    const { backend, createdBy } = manifest;
    const content = { run, stage: 'initialize', step: 0, parent: source, backend, createdBy, state };
    return saveCheckpoint(store, { ...content, files: new Map([...files, ...replaced]) }, options);
  }
  const folder = checkpointFolder(run, 0, source.weights);
  const names = [...new Set([...Object.keys(manifest.files), ...replaced.keys()])].filter(
    (name) => name === OPTIMIZER || !ONLY_LEARNERS.has(name),
  );
  const copy = async (name: string): Promise<[string, BlobRef]> => {
    const bytes =
      name === OPTIMIZER
        ? writeSafetensors(new Map(), { updates: '0' })
        : (replaced.get(name) ?? (await store.get(manifest.files[name]!, options)));
    const put = { ...options, contentType: contentTypeOf(name), conflict };
    return [name, await store.putSame(`${folder}/${name}`, bytes, put)];
  };
  const files = Object.fromEntries(await Promise.all(names.map(copy))) as CheckpointManifest['files'];
  const adopted: CheckpointManifest = {
    ...manifest,
    run,
    stage: 'initialize',
    step: 0,
    parent: source,
    updates: 0,
    files,
  };
  const kept = await store.putIfAbsent(`${folder}/manifest.json`, manifests, adopted, options);
  return refOf(kept.ref, kept.value, source.weights);
}

/**
 * Everything of a checkpoint, digests checked; without moments where it has a step in their place (`trainRequestOf`). The
 * arrays are the caller's own.
 */
export async function loadCheckpoint(
  store: ObjectStore,
  ref: CheckpointRef,
  options: CallOptions = {},
): Promise<{ state: TrainState; files: ModelFiles; manifest: CheckpointManifest }> {
  const manifest = await readManifest(store, ref.manifest, options);
  const [{ config, weights, adapter, files }, optimizer, critic] = await Promise.all([
    readParts(store, ref, manifest, options),
    store.get(manifest.files['optimizer.safetensors'], options),
    manifest.files[CRITIC] && store.get(manifest.files[CRITIC], options),
  ]);
  const { tensors } = readSafetensors(optimizer);
  const { trained } = parameterShapes({ config, lora: adapter?.lora });
  const moments = (prefix: string): Weights =>
    tensors.size === 0 ? new Map() : weightsOf(trained, tensors, prefix);
  const state: TrainState = {
    config,
    weights,
    ...(adapter && { adapter }),
    firstMoments: moments('m.'),
    secondMoments: moments('v.'),
    updates: manifest.updates,
    ...(critic && { critic: readCritic(critic, config) }),
  };
  return { state, files, manifest };
}

/** A critic's weights under their names, and its moments under these after `m.` and `v.`; how often it was updated. */
function criticParts(config: ModelConfig, critic: CriticState): Uint8Array[] {
  const { weights, firstMoments, secondMoments, updates } = critic;
  const shapes = criticShapes(config);
  const moments = (prefix: string, values: Weights) =>
    values.size === 0 ? [] : tensorsInOrder(shapes, values, prefix);
  const tensors = [
    ...tensorsInOrder(shapes, weights),
    ...moments('m.', firstMoments),
    ...moments('v.', secondMoments),
  ];
  return safetensorsParts(new Map(tensors), { updates: String(updates) });
}

function readCritic(bytes: Uint8Array, config: ModelConfig): CriticState {
  const { tensors, metadata } = readSafetensors(bytes);
  const shapes = criticShapes(config);
  const isMoment = (name: string): boolean => /^[mv]\./.test(name);
  const weights = new Map([...tensors].filter(([name]) => !isMoment(name)));
  const moments = (prefix: string): Weights =>
    weights.size === tensors.size ? new Map() : weightsOf(shapes, tensors, prefix);
  return {
    weights: weightsOf(shapes, weights),
    firstMoments: moments('m.'),
    secondMoments: moments('v.'),
    updates: Number(metadata['updates']),
  };
}

/** Gives the policy of an adapter's base, e.g. one that is held already; it is not changed. */
export type LoadBase = (base: CheckpointRef) => Promise<PolicyContent>;

/** What a checkpoint computes with: no optimizer state, and an adapter merged into its base. */
export async function loadPolicy(
  store: ObjectStore,
  ref: CheckpointRef,
  options: CallOptions = {},
): Promise<PolicyContent> {
  return readPolicy(store, ref, await readManifest(store, ref.manifest, options), options);
}

/** The same for whoever merges into a copy of his own: the adapter is beside the weights of its base. */
export async function loadUnmerged(
  store: ObjectStore,
  ref: CheckpointRef,
  options: CallOptions = {},
  loadBase?: LoadBase,
): Promise<PolicyContent & { adapter?: LoraAdapter }> {
  return readParts(store, ref, await readManifest(store, ref.manifest, options), options, loadBase);
}

/** The small files of a checkpoint, without its weights. */
export async function loadModelFiles(
  store: ObjectStore,
  ref: CheckpointRef,
  options: CallOptions = {},
): Promise<ModelFiles> {
  return readSmallFiles(store, await readManifest(store, ref.manifest, options), options);
}

async function readSmallFiles(
  store: ObjectStore,
  manifest: CheckpointManifest,
  options: CallOptions,
): Promise<ModelFiles> {
  const small = Object.entries(manifest.files).filter(
    ([name]) =>
      !name.endsWith('.safetensors') &&
      ![ADAPTER_CONFIG, TRAIN_REQUEST, INDEX, WEIGHTS_ELSEWHERE].includes(name),
  );
  const files = small.map(async ([name, file]): Promise<[string, Uint8Array]> => [
    name,
    await store.get(file, options),
  ]);
  return new Map(await Promise.all(files));
}

/** Throws GradusError('store', 'missing-object' | …): where the manifest was deleted, with what to do about it. */
export async function readManifest(
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<CheckpointManifest> {
  try {
    return await store.read(ref, manifests, options);
  } catch (error) {
    if (!(error instanceof GradusError) || error.type !== 'missing-object') throw error;
    const [, run = 'RUN'] = ref.key.split('/');
    const message = `${error.message}. Retention deletes checkpoints, which a run that is reset may need again: reset it to a step whose checkpoint "${commandLine(`checkpoints ${run}`)}" lists, or begin another run with one of them`;
    throw new GradusError('store', 'missing-object', message, { cause: error });
  }
}

async function readPolicy(
  store: ObjectStore,
  ref: CheckpointRef,
  manifest: CheckpointManifest,
  options: CallOptions,
): Promise<PolicyContent> {
  const { config, weights, adapter, files } = await readParts(store, ref, manifest, options);
  if (!adapter) return { config, weights, files };
  return { config, weights: await inTurns(mergeInPieces(config, weights, adapter), options.signal), files };
}

/** What the manifest names but the optimizer's state: weights, or an adapter and its base's weights. */
async function readParts(
  store: ObjectStore,
  ref: CheckpointRef,
  manifest: CheckpointManifest,
  options: CallOptions,
  loadBase: LoadBase = (base) => loadPolicy(store, base, options),
): Promise<PolicyContent & { adapter?: LoraAdapter }> {
  refOf(ref.manifest, manifest, ref.weights);
  if (manifest.files[WEIGHTS_ELSEWHERE]) throw elsewhere(manifest.run);
  const { base } = manifest;
  const large = base ? [ADAPTER_MODEL] : weightFileNames(Object.keys(manifest.files));
  const [parts, policy, files] = await Promise.all([
    Promise.all(large.map((name) => store.get(manifest.files[name]!, options))),
    base && loadBase(base),
    readSmallFiles(store, manifest, options),
  ]);
  const config = modelConfigOf(jsonOf(files, 'config.json'), jsonOf(files, 'tokenizer.json'));
  if (!policy) {
    const tensors = new Map(parts.flatMap((bytes) => [...readSafetensors(bytes).tensors]));
    const weights = weightsOf(weightShapes(config), tensors);
    return { config, weights, files };
  }
  const adapterConfig = await store.getJson(manifest.files[ADAPTER_CONFIG]!, options);
  return {
    config,
    weights: policy.weights,
    adapter: readPeftAdapter(adapterConfig, parts[0]!, config),
    files,
  };
}

/** A file of a model as JSON. Throws GradusError('store', 'invalid-config') when it is not there, or none. */
export function jsonOf(files: ModelFiles, name: string): Json {
  try {
    return JSON.parse(textOf(files, name)) as Json;
  } catch (cause) {
    if (!(cause instanceof SyntaxError)) throw cause;
    throw new GradusError('store', 'invalid-config', `${name} is not JSON: ${cause.message}`, { cause });
  }
}

/** A file of a model as text. Throws GradusError('store', 'invalid-config') when it is not there. */
export function textOf(files: ModelFiles, name: string): string {
  const bytes = files.get(name);
  if (bytes) return new TextDecoder().decode(bytes);
  throw new GradusError('store', 'invalid-config', `the model has no ${name}: add it, or take another model`);
}

/** The ref of a manifest that must name these weights. */
function refOf(
  manifest: BlobRef,
  content: Pick<CheckpointManifest, 'files' | 'base' | 'step'>,
  weights: string,
): CheckpointRef {
  if (policyVersion(content) !== weights) throw conflict(manifest.key);
  return { manifest, weights, step: content.step };
}

/** The files of a checkpoint, each in parts that lie end to end: its tensors lie where they are in `state`. */
function contentsOf({
  state: whole,
  base,
  files,
  insteadOfMoments,
  maxShardBytes = MAX_SHARD_BYTES,
}: CheckpointContent): Map<string, readonly Uint8Array[]> {
  if (!insteadOfMoments && (whole.withoutMoments || whole.critic?.withoutMoments))
    throw new TypeError(
      'a state whose moments are with its learner is saved without the step that makes them',
    );
  const state = insteadOfMoments ? withoutMoments(whole) : whole;
  const { config, weights, adapter, firstMoments, secondMoments } = state;
  const { trained } = parameterShapes({ config, lora: adapter?.lora });
  const moments = (prefix: string, values: Weights) =>
    values.size === 0 ? [] : tensorsInOrder(trained, values, prefix);
  const contents = new Map<string, readonly Uint8Array[]>();
  for (const [name, bytes] of files) contents.set(name, [bytes]);
  const optimizer = new Map([...moments('m.', firstMoments), ...moments('v.', secondMoments)]);
  contents.set(OPTIMIZER, safetensorsParts(optimizer, { updates: String(state.updates) }));
  if (insteadOfMoments) contents.set(TRAIN_REQUEST, [encodeTrainRequest(insteadOfMoments)]);
  if (state.critic) contents.set(CRITIC, criticParts(config, state.critic));
  if (!adapter) {
    // Names and shapes are checked, and the order is the model's.
    const ordered = new Map(tensorsInOrder(weightShapes(config), weights));
    const weightFiles = weightFilesOf(config, ordered, ITEM_BYTES.F32, maxShardBytes);
    for (const { name, tensors } of weightFiles) {
      // Other software takes `format: pt` as the sign of PyTorch's layout of linear layers, [out, in], which this is.
      contents.set(name, safetensorsParts(new Map(tensors), { format: 'pt' }));
    }
    if (weightFiles.length > 1) contents.set(INDEX, [indexBytesOf(weightFiles, ITEM_BYTES.F32)]);
    return contents;
  }
  if (!base) throw new TypeError('an adapter is saved without its base');
  // By digest: the same adapter of the same base is the same in every run.
  const peft = toPeftConfig(adapter.lora, `sha256:${base.weights}`);
  return contents
    .set(ADAPTER_CONFIG, [new TextEncoder().encode(`${JSON.stringify(peft, null, 2)}\n`)])
    .set(ADAPTER_MODEL, [writePeftModel(config, adapter)]);
}

function withoutMoments(state: TrainState): TrainState {
  const none = { firstMoments: new Map(), secondMoments: new Map() };
  return { ...state, ...none, ...(state.critic && { critic: { ...state.critic, ...none } }) };
}

const contentTypeOf = (name: string): string =>
  name.endsWith('.json') ? 'application/json' : 'application/octet-stream';

const elsewhere = (run: string): GradusError =>
  new GradusError(
    'store',
    'weights-elsewhere',
    `"${run}" is the tokenizer of a model whose weights a server holds: it can be measured there, by the policy of an evaluation, and neither trained nor exported`,
  );

const conflict = (key: string): GradusError =>
  new GradusError(
    'store',
    'checkpoint-conflict',
    `${key} belongs to another checkpoint than this one with the same step and weights: ` +
      'run under another name, or delete its folder if nothing is writing it',
  );
