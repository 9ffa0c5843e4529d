import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';
import { writeHfWeights } from '../../../engine/hf-weights.ts';
import { CASE_MODEL } from '../../support/engine/learner-cases.ts';

/** Of the case's size, with what a Qwen3 has. */
export const QWEN3: ModelConfig = {
  ...CASE_MODEL,
  attentionHeads: 2,
  keyValueHeads: 1,
  headSize: 16,
  queryKeyNorm: true,
};

/** A folder in Hugging Face's layout with a Qwen3, one of the two families that SkyRL has in JAX. Gives its small files. */
export async function writeQwen3(
  folder: string,
  config: ModelConfig,
  weights: Weights,
  files: ReadonlyMap<string, Uint8Array>,
): Promise<Map<string, Uint8Array>> {
  const small = new Map(files);
  const written = JSON.parse(new TextDecoder().decode(small.get('config.json'))) as object;
  const qwen = { ...written, architectures: ['Qwen3ForCausalLM'], model_type: 'qwen3' };
  small.set('config.json', Buffer.from(JSON.stringify(qwen)));
  small.set('tokenizer_config.json', Buffer.from('{"tokenizer_class":"PreTrainedTokenizerFast"}'));
  await mkdir(folder);
  await writeHfWeights(folder, config, weights, { dtype: 'F32', maxShardBytes: 1e9 });
  for (const [name, bytes] of small) await writeFile(path.join(folder, name), bytes);
  return small;
}
