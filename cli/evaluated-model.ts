import { readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { GradusError, messageOf } from '../core/errors.ts';
import { withStoreOf, withWritableStore } from './connection.ts';
import type { ConnectionOptions } from './connection.ts';
import { note } from './printable.ts';

// What the arguments of `gradus evaluate` name: who is measured, where it samples, and who makes the episodes.

/** Flags that say so. */
export interface EvaluatedOptions extends ConnectionOptions {
  as?: string;
  agent?: string | false;
  tokenizer?: string;
  at?: string;
  server: string;
  servedModel?: string;
  folder?: string;
  serverFolder?: string;
  apiKeyVariable?: string;
}

export const isFolder = (model: string): boolean =>
  statSync(model, { throwIfNoEntry: false })?.isDirectory() === true || /^[./~]/.test(model);

/** Addresses of servers, with commas between them. */
export const isAddress = (model: string): boolean => /^https?:\/\//.test(model);

/** Servers that hold the model, or that are given it. */
export function policyOf(options: EvaluatedOptions, model: string): Record<string, unknown> | undefined {
  const { server, servedModel, folder, serverFolder, apiKeyVariable, at } = options;
  const urls = isAddress(model) ? model : at;
  if (urls === undefined) return undefined;
  const through = isAddress(model) ? {} : { folder: folder && path.resolve(folder), serverFolder };
  return written({
    kind: 'http',
    server,
    urls: urls.split(','),
    model: servedModel,
    ...through,
    apiKeyVariable,
  });
}

/** The checkpoint that a model stands for; a folder is brought into the store. */
export function checkpointOf(options: EvaluatedOptions, model: string): Promise<string> | string {
  if (isAddress(model)) return tokenizerOf(options);
  return isFolder(model) ? imported(options, model) : model;
}

/**
 * What an evaluation would bring into the store before it begins, in words; null of a checkpoint, which is there. Nothing is
 * stored, and no weights are read. Throws what the import would, but for what the weights alone say.
 */
export async function wouldStore(options: EvaluatedOptions, model: string): Promise<string | null> {
  if (isAddress(model)) {
    const { readTokenizer } = await import('../store/training/import-tokenizer.ts');
    const { folder, name } = tokenizerFolder(options);
    const { run } = await readTokenizer(folder, name);
    return `would store the tokenizer of ${folder} as the run ${run}; the servers are asked then`;
  }
  if (!isFolder(model)) return null;
  const [{ openHfDirectory }, { parameterCount }, { assertNameFree, assertUsable }] = await Promise.all([
    import('../engine/hf-directory.ts'),
    import('../core/model/config.ts'),
    import('../store/training/import-model.ts'),
  ]);
  const { config, files } = await openHfDirectory(model);
  assertUsable(model, config, files);
  const name = options.as ?? nameOf(model);
  await withStoreOf(options, (store) => assertNameFree(store, name));
  const size = (parameterCount(config) / 1e6).toFixed(1);
  return `would import ${model} as the run ${name}: ${size} million parameters, which are read then`;
}

/** The small files of the model that servers hold, as a run of their own. */
async function tokenizerOf(options: EvaluatedOptions): Promise<string> {
  const { folder, name } = tokenizerFolder(options);
  const { importTokenizer } = await import('../store/training/import-tokenizer.ts');
  const { run, ref } = await withWritableStore(options, (store) => importTokenizer(store, folder, name));
  note(`the tokenizer of ${folder} is the run ${run}`);
  return ref.manifest.key;
}

/** Throws GradusError('spec', 'no-tokenizer'). */
function tokenizerFolder({ tokenizer, as }: EvaluatedOptions): { folder: string; name: string } {
  if (tokenizer === undefined)
    throw new GradusError(
      'spec',
      'no-tokenizer',
      'servers are asked by tokens: give the folder of the model that they hold by --tokenizer FOLDER; its config.json, tokenizer.json and chat template are read, and no weights',
    );
  return { folder: tokenizer, name: as ?? `${nameOf(tokenizer)}-tokenizer` };
}

const nameOf = (folder: string): string =>
  path.basename(path.resolve(folder)).replaceAll(/[^A-Za-z0-9_-]+/g, '-');

/** The folder's model as checkpoint 0 of a run; the same model under the same name is the same. */
async function imported(options: EvaluatedOptions, folder: string): Promise<string> {
  const { importModel } = await import('../store/training/import-model.ts');
  const name = options.as ?? nameOf(folder);
  const { ref } = await withWritableStore(options, (store) => importModel(store, folder, name));
  note(`${folder} is the run ${name}`);
  return ref.manifest.key;
}

/** null: none. */
export function agentOf(given: string | false): unknown {
  if (given === false) return null;
  if (isAddress(given)) return { url: given };
  return sectionOf(given, 'agent', '--agent', ', or the URL of a server that is an agent');
}

/** A section of a spec, from a file that has it, or is it. */
export function sectionOf(file: string, name: string, flag: string, or = ''): unknown {
  try {
    const json: unknown = JSON.parse(readFileSync(file, 'utf8'));
    return typeof json === 'object' && json !== null && name in json
      ? (json as Record<string, unknown>)[name]
      : json;
  } catch (cause) {
    const why = `${flag} ${file} cannot be read (${messageOf(cause)}): give a JSON file with "${name}" as in a spec${or}`;
    throw new GradusError('spec', `no-${name}`, why, { cause });
  }
}

/** Fields that nobody wrote are left out. */
export const written = (fields: Record<string, unknown>): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
