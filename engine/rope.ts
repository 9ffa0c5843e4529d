import type { ModelConfig } from '../core/model/config.ts';

/** cos and sin of position × frequency, times the attention factor; each [length, D/2]. */
export interface RotaryTables {
  cos: Float32Array;
  sin: Float32Array;
}

/**
 * Tables for positions 0 … length − 1 (Su et al. 2021). Frequencies and angles are rounded to float32 as Hugging Face's
 * implementation does: at position 10,000 an exact angle differs by more than the model's tolerance.
 */
export function rotaryTables(
  config: Pick<ModelConfig, 'headSize' | 'ropeTheta' | 'ropeScaling'>,
  length: number,
): RotaryTables {
  const frequencies = rotaryFrequencies(config);
  const half = frequencies.length;
  const factor = config.ropeScaling?.kind === 'yarn' ? config.ropeScaling.attentionFactor : 1;
  const cos = new Float32Array(length * half);
  const sin = new Float32Array(length * half);
  for (let position = 0; position < length; position++) {
    for (let i = 0; i < half; i++) {
      const angle = Math.fround(position * frequencies[i]!);
      cos[position * half + i] = Math.fround(Math.cos(angle)) * factor;
      sin[position * half + i] = Math.fround(Math.sin(angle)) * factor;
    }
  }
  return { cos, sin };
}

/** Radians per position of each pair of dimensions, [D/2]. */
function rotaryFrequencies({
  headSize,
  ropeTheta,
  ropeScaling,
}: Pick<ModelConfig, 'headSize' | 'ropeTheta' | 'ropeScaling'>): Float32Array {
  const plain = Float32Array.from({ length: headSize / 2 }, (_, i) =>
    Math.fround(1 / Math.fround(ropeTheta ** ((2 * i) / headSize))),
  );
  if (ropeScaling === undefined) return plain;
  const { factor } = ropeScaling;
  if (ropeScaling.kind === 'linear') return plain.map((frequency) => frequency / factor);
  if (ropeScaling.kind === 'llama3') {
    const { lowFrequencyFactor, highFrequencyFactor, originalPositions } = ropeScaling;
    return plain.map((frequency) => {
      const rotations = originalPositions / ((2 * Math.PI) / frequency);
      const kept = clamp((rotations - lowFrequencyFactor) / (highFrequencyFactor - lowFrequencyFactor));
      return (1 - kept) * (frequency / factor) + kept * frequency;
    });
  }
  const { betaFast, betaSlow, originalPositions, truncate } = ropeScaling;
  // The dimension whose wave turns so many times within the original context.
  const dimensionOf = (rotations: number): number =>
    (headSize * Math.log(originalPositions / (rotations * 2 * Math.PI))) / (2 * Math.log(ropeTheta));
  const [fast, slow] = [dimensionOf(betaFast), dimensionOf(betaSlow)];
  const low = Math.max(truncate ? Math.floor(fast) : fast, 0);
  const high = Math.min(truncate ? Math.ceil(slow) : slow, headSize - 1);
  const width = low === high ? 0.001 : high - low;
  return plain.map((frequency, i) => {
    const interpolated = clamp((i - low) / width);
    return interpolated * (frequency / factor) + (1 - interpolated) * frequency;
  });
}

/** YaRN's attention factor where `config.json` gives none (Peng et al. 2023, eq. 22); `mscale` as DeepSeek added it. */
export function yarnAttentionFactor(factor: number, mscale?: number, mscaleAllDim?: number): number {
  const scale = (weight: number): number => (factor <= 1 ? 1 : 0.1 * weight * Math.log(factor) + 1);
  return mscale && mscaleAllDim ? scale(mscale) / scale(mscaleAllDim) : scale(1);
}

const clamp = (x: number): number => Math.min(1, Math.max(0, x));
