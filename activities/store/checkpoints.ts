import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';
import type { BlobRef, CheckpointRef } from '../../core/refs.ts';
import { fromHfConfig, toHfConfig, toHfGenerationConfig } from '../../engine/hf-config.ts';
import type { SpecialTokens } from '../../engine/hf-config.ts';
import type { TrainState } from '../../engine/learner/contract.ts';
import type { ModelConfig, Weights } from '../../engine/model-config.ts';
import { readSafetensors, writeSafetensors } from '../../engine/safetensors.ts';
import { sha256Hex } from './digest.ts';
import { checkpointFolder } from './keys.ts';
import { CHECKPOINT_FILES, parseManifest } from './manifest.ts';
import type { CheckpointFile, CheckpointManifest } from './manifest.ts';
import type { CallOptions, ObjectStore } from './object-store.ts';
import { inOrder, weightsOf } from './tensors.ts';

export interface CheckpointContent {
  run: string;
  stage: string;
  /** Counts over the whole run, so that checkpoints of a run are ordered by it. */
  step: number;
  parent?: CheckpointRef | undefined;
  backend: string;
  createdBy: string;
  state: TrainState;
  /** `tokenizer.json` as text. */
  tokenizerJson: string;
  /** `tokenizer_config.json`; the default says that `tokenizer.json` is all there is. */
  tokenizerConfig?: { [key: string]: Json };
  specialTokens?: SpecialTokens;
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
  const contents = filesOf(content);
  const weights = sha256Hex(contents['model.safetensors']);
  const folder = checkpointFolder(content.run, content.step, weights);
  const manifestKey = `${folder}/manifest.json`;
  const committed = await store.head(manifestKey, options);
  if (committed) return refOf(committed, await readManifest(store, committed, options), weights);
  const files = Object.fromEntries(
    await Promise.all(
      CHECKPOINT_FILES.map(async (name): Promise<[CheckpointFile, BlobRef]> => {
        const bytes = contents[name];
        const ref = await store.put(`${folder}/${name}`, bytes, {
          ...options,
          contentType: contentTypeOf(name),
        });
        if (ref.sha256 !== sha256Hex(bytes)) throw conflict(ref.key);
        return [name, ref];
      }),
    ),
  ) as CheckpointManifest['files'];
  const manifest: CheckpointManifest = {
    format: 'gradus.checkpoint/1',
    run: content.run,
    stage: content.stage,
    step: content.step,
    ...(content.parent && { parent: content.parent }),
    backend: content.backend,
    updates: content.state.updates,
    createdBy: content.createdBy,
    files,
  };
  const ref = await store.putJson(manifestKey, manifest, options);
  return refOf(ref, await readManifest(store, ref, options), weights);
}

/**
 * The policy of a checkpoint as checkpoint 0 of another run: the same files to the byte, without optimizer state, so
 * that the new run does not depend on what becomes of the old one.
 */
export async function adoptCheckpoint(
  store: ObjectStore,
  source: CheckpointRef,
  run: string,
  options: CallOptions = {},
): Promise<CheckpointRef> {
  const manifest = await readManifest(store, source.manifest, options);
  const folder = checkpointFolder(run, 0, source.weights);
  const copy = async (name: CheckpointFile): Promise<[CheckpointFile, BlobRef]> => {
    const bytes =
      name === 'optimizer.safetensors'
        ? writeSafetensors(new Map(), { updates: '0' })
        : await store.get(manifest.files[name], options);
    return [
      name,
      await store.put(`${folder}/${name}`, bytes, { ...options, contentType: contentTypeOf(name) }),
    ];
  };
  const files = Object.fromEntries(
    await Promise.all(CHECKPOINT_FILES.map(copy)),
  ) as CheckpointManifest['files'];
  const adopted: CheckpointManifest = {
    ...manifest,
    run,
    stage: 'initialize',
    step: 0,
    parent: source,
    updates: 0,
    files,
  };
  const ref = await store.putJson(`${folder}/manifest.json`, adopted, options);
  return refOf(ref, await readManifest(store, ref, options), source.weights);
}

/** Everything of a checkpoint, digests checked. The arrays are the caller's own. */
export async function loadCheckpoint(
  store: ObjectStore,
  ref: CheckpointRef,
  options: CallOptions = {},
): Promise<{ state: TrainState; tokenizerJson: string; manifest: CheckpointManifest }> {
  const manifest = await readManifest(store, ref.manifest, options);
  const [policy, optimizer] = await Promise.all([
    readPolicy(store, ref, manifest, options),
    store.get(manifest.files['optimizer.safetensors'], options),
  ]);
  const { config, weights, tokenizerJson } = policy;
  const { tensors } = readSafetensors(optimizer);
  const moments = (prefix: string): Weights =>
    tensors.size === 0 ? new Map() : weightsOf(config, tensors, prefix);
  const state: TrainState = {
    config,
    weights,
    firstMoments: moments('m.'),
    secondMoments: moments('v.'),
    updates: manifest.updates,
  };
  return { state, tokenizerJson, manifest };
}

/** What a rollout worker needs: no optimizer state. */
export async function loadPolicy(
  store: ObjectStore,
  ref: CheckpointRef,
  options: CallOptions = {},
): Promise<{ config: ModelConfig; weights: Weights; tokenizerJson: string }> {
  return readPolicy(store, ref, await readManifest(store, ref.manifest, options), options);
}

export async function readManifest(
  store: ObjectStore,
  ref: BlobRef,
  options: CallOptions = {},
): Promise<CheckpointManifest> {
  return parseManifest(await store.getJson(ref, options), ref.key);
}

async function readPolicy(
  store: ObjectStore,
  ref: CheckpointRef,
  manifest: CheckpointManifest,
  options: CallOptions,
): Promise<{ config: ModelConfig; weights: Weights; tokenizerJson: string }> {
  refOf(ref.manifest, manifest, ref.weights);
  const { files } = manifest;
  const [configJson, model, tokenizer] = await Promise.all([
    store.getJson(files['config.json'], options),
    store.get(files['model.safetensors'], options),
    store.get(files['tokenizer.json'], options),
  ]);
  const config = fromHfConfig(configJson);
  const weights = weightsOf(config, readSafetensors(model).tensors);
  return { config, weights, tokenizerJson: new TextDecoder().decode(tokenizer) };
}

/** The ref of a manifest that must name these weights. */
function refOf(manifest: BlobRef, { files, step }: CheckpointManifest, weights: string): CheckpointRef {
  if (files['model.safetensors'].sha256 !== weights) throw conflict(manifest.key);
  return { manifest, weights, step };
}

function filesOf(content: CheckpointContent): Record<CheckpointFile, Uint8Array> {
  const { state, specialTokens, tokenizerJson } = content;
  const { config, weights, firstMoments, secondMoments } = state;
  const moments = (prefix: string, values: Weights) =>
    values.size === 0 ? [] : inOrder(config, values, prefix);
  const json = (value: unknown) => new TextEncoder().encode(`${JSON.stringify(value, null, 2)}\n`);
  return {
    'config.json': json(toHfConfig(config, specialTokens)),
    // Other software takes `format: pt` as the sign of PyTorch's layout of linear layers, [out, in], which this is.
    'model.safetensors': writeSafetensors(new Map(inOrder(config, weights)), { format: 'pt' }),
    'tokenizer.json': new TextEncoder().encode(tokenizerJson),
    'tokenizer_config.json': json(
      content.tokenizerConfig ?? {
        tokenizer_class: 'PreTrainedTokenizerFast',
        model_max_length: config.maxPositions,
      },
    ),
    'generation_config.json': json(toHfGenerationConfig(specialTokens)),
    'optimizer.safetensors': writeSafetensors(
      new Map([...moments('m.', firstMoments), ...moments('v.', secondMoments)]),
      { updates: String(state.updates) },
    ),
  };
}

const contentTypeOf = (name: CheckpointFile): string =>
  name.endsWith('.json') ? 'application/json' : 'application/octet-stream';

const conflict = (key: string): GradusError =>
  new GradusError(
    'store',
    'checkpoint-conflict',
    `${key} belongs to another checkpoint than this one with the same step and weights: ` +
      'run under another name, or delete its folder if nothing is writing it',
  );
