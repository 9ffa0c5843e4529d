import { createHash } from 'node:crypto';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import { tokenizerConfigOf } from '../../engine/dialect/checkpoint-dialect.ts';
import { assertTemplatesRender } from '../../engine/dialect/assert-templates-render.ts';
import { dialectsSpoken } from '../../engine/dialect/dialects-spoken.ts';
import type { DialectsSpoken } from '../../engine/dialect/dialects-spoken.ts';
import { withDtype } from '../../engine/hf-dtype.ts';
import { openHfDirectory } from '../../engine/hf-directory.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { assertServable } from '../../engine/onnx/decoder-graph.ts';
import { largestIdIn } from '../../engine/tokenizer/ids-without-token.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { saveCheckpoint, textOf } from './checkpoints.ts';
import type { PolicyContent } from './checkpoints.ts';
import { CREATED_BY } from './manifest.ts';
import { claimRun, ownerOfName } from '../run/claim-run.ts';
import type { RunClaim } from '../run/run-claim.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

/**
 * A Hugging Face folder as checkpoint 0 of a run of its own: the same small files to the byte, except that
 * `config.json` says float32, which is what the weights are stored as. The same model under the same name again is the
 * same checkpoint.
 * Throws what `openHfDirectory`, `assertUsable` and `readWeights` throw, and GradusError('store', 'name-taken').
 */
export async function importModel(
  store: ObjectStore,
  folder: string,
  name: string,
  options: CallOptions = {},
): Promise<Imported> {
  const { config, files, readWeights } = await openHfDirectory(folder);
  assertUsable(folder, config, files);
  return saveImported(store, folder, name, { config, weights: await readWeights(), files }, options);
}

/**
 * Throws what `assertServable` throws, and GradusError('policy', 'tokenizer' | 'dialect' | 'chat-template') for a
 * tokenizer or chat template that cannot be used: before the weights are read, which takes minutes.
 */
export function assertUsable(folder: string, config: ModelConfig, files: PolicyContent['files']): void {
  assertServable(config);
  const tokenizerJson = JSON.parse(textOf(files, 'tokenizer.json')) as Json;
  const largest = largestIdIn(tokenizerJson);
  if (largest >= config.vocabSize) {
    throw new GradusError(
      'policy',
      'tokenizer',
      `${folder}: tokenizer.json has tokens up to ${largest} and the model knows ${config.vocabSize}: they do not belong together`,
    );
  }
  Tokenizer.fromJson(tokenizerJson as object);
  assertTemplatesRender(tokenizerConfigOf(files));
}

/** Whether a model may come under this name, before its weights are read. Throws GradusError('store', 'name-taken'). */
export async function assertNameFree(
  store: ObjectStore,
  name: string,
  options: CallOptions = {},
): Promise<void> {
  const owner = await ownerOfName(store, name, options);
  if (owner === 'left over' || (owner && owner.import === undefined)) throw nameTaken(name);
}

const nameTaken = (name: string): GradusError =>
  new GradusError(
    'store',
    'name-taken',
    `a run or another model is called "${name}" in this store, or one that was deleted has left something there: choose another name with --as`,
  );

export interface Imported {
  ref: CheckpointRef;
  config: ModelConfig;
  dialects: DialectsSpoken;
}

/** A model that came out of `folder`, and perhaps out of `parent`, and is usable, as `importModel` says. */
export async function saveImported(
  store: ObjectStore,
  folder: string,
  name: string,
  { config, weights, files }: { config: ModelConfig; weights: Weights; files: Map<string, Uint8Array> },
  { parent, ...options }: CallOptions & { parent?: CheckpointRef | undefined } = {},
): Promise<Imported> {
  files.set('config.json', withDtype(files.get('config.json')!, 'F32'));
  const state = { config, weights, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
  // The claim names the content, so that another model cannot come under the same name.
  const content = createHash('sha256');
  for (const bytes of files.values()) content.update(bytes);
  for (const { data } of weights.values()) content.update(data);
  const claim: RunClaim = { import: content.digest('hex'), spec: null };
  const taken = await claimRun(store, name, claim, options);
  if (taken?.import !== claim.import) throw nameTaken(name);
  const ref = await saveCheckpoint(
    store,
    { run: name, stage: 'import', step: 0, parent, backend: 'none', createdBy: CREATED_BY, state, files },
    options,
  );
  const tokenizer = Tokenizer.fromJson(textOf(files, 'tokenizer.json'));
  return { ref, config, dialects: dialectsSpoken(tokenizer, tokenizerConfigOf(files)) };
}
