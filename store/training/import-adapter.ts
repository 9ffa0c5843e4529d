import { existsSync } from 'node:fs';
import path from 'node:path';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import { parseForeignJson } from '../../engine/foreign-json.ts';
import { openHfDirectory } from '../../engine/hf-directory.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { mergeInPieces } from '../../engine/lora/merge-adapter.ts';
import { readRegularFile } from '../../engine/regular-file.ts';
import { ADAPTER_CONFIG, ADAPTER_MODEL, readPeftAdapter } from '../../engine/lora/peft-format.ts';
import { loadPolicy } from './checkpoints.ts';
import type { PolicyContent } from './checkpoints.ts';
import { assertUsable, saveImported } from './import-model.ts';
import type { Imported } from './import-model.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

/** Whose weights an adapter was made for: a Hugging Face folder, or a checkpoint of the store. */
export type AdapterBase = { folder: string } | { checkpoint: CheckpointRef };

/** Whether a folder has an adapter in PEFT's layout and no model. */
export const isAdapterFolder = (folder: string): boolean =>
  existsSync(path.join(folder, ADAPTER_CONFIG)) && !existsSync(path.join(folder, 'config.json'));

/** What the adapter itself says that it was made for, for people. */
export async function statedBase(folder: string): Promise<string | undefined> {
  const stated = (await adapterConfig(folder))['base_model_name_or_path'];
  return typeof stated === 'string' ? stated : undefined;
}

/**
 * A LoRA adapter in PEFT's layout, merged into its base, as checkpoint 0 of a run of its own, with the base's small
 * files. Throws what `importModel` and `readPeftAdapter` throw, and GradusError('store', 'invalid-adapter') for a folder
 * without both files.
 */
export async function importAdapter(
  store: ObjectStore,
  folder: string,
  base: AdapterBase,
  name: string,
  options: CallOptions = {},
): Promise<Imported> {
  const json = await adapterConfig(folder);
  const bytes = await fileOf(folder, ADAPTER_MODEL);
  const { config, weights, files }: PolicyContent =
    'folder' in base ? await usableFolder(base.folder) : await loadPolicy(store, base.checkpoint, options);
  const adapter = readPeftAdapter(json, bytes, config);
  for (const [tensor, { data }] of adapter.weights) {
    const broken = data.findIndex((value) => !Number.isFinite(value));
    if (broken >= 0) throw invalid(folder, `${tensor}[${broken}] is ${data[broken]}: the adapter is damaged`);
  }
  const merged = {
    config,
    weights: await inTurns(mergeInPieces(config, weights, adapter)),
    files: new Map(files),
  };
  const parent = 'checkpoint' in base ? base.checkpoint : undefined;
  return saveImported(store, folder, name, merged, { ...options, parent });
}

async function usableFolder(folder: string): Promise<PolicyContent> {
  const { config, files, readWeights } = await openHfDirectory(folder);
  assertUsable(folder, config, files);
  return { config, files, weights: await readWeights() };
}

async function adapterConfig(folder: string): Promise<{ [key: string]: Json }> {
  const bytes = await fileOf(folder, ADAPTER_CONFIG);
  try {
    const json = parseForeignJson(bytes);
    if (typeof json === 'object' && json !== null && !Array.isArray(json)) return { ...json };
  } catch (cause) {
    throw invalid(folder, `${ADAPTER_CONFIG} is not JSON (${messageOf(cause)})`, cause);
  }
  throw invalid(folder, `${ADAPTER_CONFIG} is not a JSON object`);
}

async function fileOf(folder: string, name: string): Promise<Uint8Array> {
  try {
    return await readRegularFile(path.join(folder, name));
  } catch (cause) {
    throw invalid(folder, `${name} cannot be read (${messageOf(cause)})`, cause);
  }
}

const invalid = (folder: string, what: string, cause?: unknown): GradusError =>
  new GradusError('store', 'invalid-adapter', `${folder}: ${what}`, { cause });
