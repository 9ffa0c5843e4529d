import { createHash } from 'node:crypto';
import type { ModelConfig, Weights } from '../../../core/model/config.ts';

/** Rows of an embedding are a multiple of this in vLLM: the rest is zero. */
const VOCABULARY_MULTIPLE = 64;
/** Parameters that servers keep as one, in this order. */
const FUSED = [
  { into: 'self_attn.qkv_proj', parts: ['self_attn.q_proj', 'self_attn.k_proj', 'self_attn.v_proj'] },
  { into: 'mlp.gate_up_proj', parts: ['mlp.gate_proj', 'mlp.up_proj'] },
];

const sha256 = (parts: readonly (string | Uint8Array)[]): string => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
};

/** SHA-256 of the bytes of each parameter in float32, under the names of the servers' own modules. */
export function checksumsOf(
  { vocabSize, tieEmbeddings }: ModelConfig,
  weights: Weights,
): Record<string, string> {
  const parameters = new Map<string, Uint8Array[]>();
  for (const [name, { shape, data }] of weights) {
    if (name === 'lm_head.weight' && tieEmbeddings) continue;
    const fused = FUSED.find(({ parts }) => parts.some((part) => name.includes(`.${part}.`)));
    const part = fused?.parts.find((one) => name.includes(`.${one}.`));
    const own = part === undefined ? name : name.replace(part, fused!.into);
    const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
    const rows = Math.ceil(vocabSize / VOCABULARY_MULTIPLE) * VOCABULARY_MULTIPLE - vocabSize;
    const isVocabulary = name === 'model.embed_tokens.weight' || name === 'lm_head.weight';
    const padding = isVocabulary ? [new Uint8Array(4 * rows * shape[1]!)] : [];
    parameters.set(own, [...(parameters.get(own) ?? []), bytes, ...padding]);
  }
  return Object.fromEntries([...parameters].map(([name, parts]) => [name, sha256(parts)]));
}

/** One digest over all of them, as SGLang makes it. */
export const overallChecksum = (checksums: Readonly<Record<string, string>>): string =>
  sha256(
    Object.keys(checksums)
      .toSorted()
      .flatMap((name) => [name, checksums[name]!]),
  );

export const digestOf = (text: string): string => sha256([text]);
