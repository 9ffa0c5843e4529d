import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadHfDirectory } from '../../engine/hf-directory.ts';
import { writeHfWeights } from '../../engine/hf-weights.ts';
import { initialWeights } from '../../engine/learner/initial-weights.ts';
import type { ModelConfig, Weights } from '../../core/model/config.ts';
import { newModelFiles } from '../../engine/new-model-files.ts';
import { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';

/**
 * A folder with a Qwen2 of random weights, stored in bfloat16, with a field of its maker's own; and perhaps with a
 * `tokenizer_config.json` of its own. Gives the weights as they are stored.
 */
export async function writeTinyQwen(
  folder: string,
  tokenizerJson: string,
  { maxPositions, tokenizerConfig }: { maxPositions: number; tokenizerConfig?: object },
): Promise<Weights> {
  const config: ModelConfig = {
    vocabSize: Tokenizer.fromJson(tokenizerJson).vocabSize,
    hiddenSize: 32,
    intermediateSize: 64,
    layers: 2,
    attentionHeads: 2,
    keyValueHeads: 1,
    headSize: 16,
    maxPositions,
    rmsNormEpsilon: 1e-6,
    ropeTheta: 10_000,
    tieEmbeddings: true,
    biases: ['qkv'],
  };
  const files = newModelFiles(config, tokenizerJson);
  const written = {
    ...(JSON.parse(new TextDecoder().decode(files.get('config.json'))) as object),
    architectures: ['Qwen2ForCausalLM'],
    model_type: 'qwen2',
    dtype: 'bfloat16',
    makers_own: { anything: true },
  };
  await mkdir(folder);
  for (const [name, bytes] of files) await writeFile(path.join(folder, name), bytes);
  await writeFile(path.join(folder, 'config.json'), JSON.stringify(written));
  if (tokenizerConfig)
    await writeFile(path.join(folder, 'tokenizer_config.json'), JSON.stringify(tokenizerConfig));
  await writeHfWeights(folder, config, initialWeights(config, 3), { dtype: 'BF16', maxShardBytes: 20_000 });
  return (await loadHfDirectory(folder)).weights;
}
