import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import type { Json } from '../../../core/json/json.ts';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { createDecoder } from '../../../engine/decoder/decoder.ts';
import { parseForeignJson } from '../../../engine/foreign-json.ts';
import { loadHfDirectory } from '../../../engine/hf-directory.ts';
import type { LoraAdapter } from '../../../engine/lora/adapter.ts';
import { ADAPTER_CONFIG, ADAPTER_MODEL, readPeftAdapter } from '../../../engine/lora/peft-format.ts';
import type { LocalPolicy } from '../../../engine/policy.ts';
import { Tokenizer } from '../../../engine/tokenizer/tokenizer.ts';

/** A model folder, read. */
export interface ModelFolder {
  config: ModelConfig;
  weights: Weights;
  tokenizer: Tokenizer;
  /** Ids that end a text. */
  eos: number[];
}

/** Throws what `loadHfDirectory` does. */
export async function readModelFolder(folder: string): Promise<ModelFolder> {
  const { config, weights, files } = await loadHfDirectory(folder);
  const text = new TextDecoder().decode(files.get('tokenizer.json'));
  const { eos_token_id: eos } = parseForeignJson(files.get('config.json')!) as { eos_token_id?: Json };
  const ids = z.union([z.array(z.int()), z.int().transform((id) => [id])]).safeParse(eos);
  return { config, weights, tokenizer: Tokenizer.fromJson(text), eos: ids.data ?? [] };
}

/** `fresh`, but with the matrix behind the last layer that `old` has. */
export function withHeadOf(old: ModelFolder, fresh: ModelFolder): ModelFolder {
  const head = old.weights.get('lm_head.weight') ?? old.weights.get('model.embed_tokens.weight')!;
  return {
    ...fresh,
    config: { ...fresh.config, tieEmbeddings: false },
    weights: new Map([...fresh.weights, ['lm_head.weight', head]]),
  };
}

/** A folder in PEFT's layout. Throws what `readPeftAdapter` does, and what reading a file does. */
export async function readAdapterFolder(folder: string, config: ModelConfig): Promise<LoraAdapter> {
  const [json, model] = await Promise.all(
    [ADAPTER_CONFIG, ADAPTER_MODEL].map((name) => readFile(path.join(folder, name))),
  );
  return readPeftAdapter(parseForeignJson(json!), model!, config);
}

/** A decoder of our own that computes with one set of weights for as long as it lives. */
export async function decoderOf(
  { config, weights }: Pick<ModelFolder, 'config' | 'weights'>,
  adapter?: LoraAdapter,
): Promise<LocalPolicy> {
  const decoder = createDecoder({ threads: 1, cacheBytes: 64 * 2 ** 20 });
  await decoder.load('served', config, weights, adapter);
  return decoder;
}
