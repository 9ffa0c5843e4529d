import type { Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { ModelConfig } from '../../../core/model/config.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import { checkpointed } from '../tensorflow/checkpointed.ts';
import { attentionMask } from './attention.ts';
import { decoderLayer, type LayerInputs, type OwnInputs } from './decoder-layer.ts';
import { embed } from './embedding.ts';
import { rmsNorm } from './rms-norm.ts';
import { ropeTables } from './rope.ts';
import type { SharedPositions } from './shared-positions.ts';

export interface DecoderModelOptions {
  /** Logits are divided by it. */
  temperature: number;
  /** Compute each layer's activations again in the backward pass. */
  gradientCheckpointing: boolean;
  /** What the product of LoRA's matrices counts for; where there are such all else is frozen. */
  loraScale: number | undefined;
  /** Absent: each place is a position of its own. */
  shared?: SharedPositions | undefined;
}

/**
 * The decoder but for its last product: logits / temperature are hidden [B · T, d] by head [V, d]. `tokens` [N]
 * (int32) are laid out in B rows of T places, N = B · T unless places share positions. `segments` [B, T] tells the
 * sequences of a row apart. Attention works on places and all else on positions. `parameters` are weights by their Hugging Face names, and LoRA's matrices by PEFT's.
 *
 * Positions count from the start of the row, not of the sequence: attention after RoPE depends on distances alone
 * (Su et al. 2021, eq. 16).
 */
export function decoderHidden(
  backend: TensorflowBackend,
  config: ModelConfig,
  parameters: ReadonlyMap<string, Tensor>,
  tokens: Tensor1D,
  segments: Tensor2D,
  { temperature, gradientCheckpointing, loraScale, shared }: DecoderModelOptions,
): { hidden: Tensor2D; head: Tensor2D } {
  const { tf } = backend;
  const length = segments.shape[1];
  const { cos, sin } = ropeTables(tf, length, config);
  const scale = 1 / Math.sqrt(config.headSize);
  const apart: OwnInputs = [
    tokens,
    attentionMask(tf, segments),
    cos,
    sin,
    tf.mul(cos, scale),
    tf.mul(sin, scale),
  ];
  const inputs: LayerInputs = shared ? [...apart, shared.positionOf, shared.placeOf] : apart;
  const matrix = (name: string) => parameters.get(name) as Tensor2D;
  const frozen = loraScale !== undefined;

  let x = embed(backend, matrix('model.embed_tokens.weight'), tokens, frozen);
  for (let layer = 0; layer < config.layers; layer++) {
    const own = [...parameters].filter(([name]) => name.includes(`model.layers.${layer}.`));
    const trained = own.filter(([name]) => !frozen || name.includes('.lora_'));
    const compute = (inputs: LayerInputs, x: Tensor2D, ...weights: Tensor[]) => {
      const named = new Map([...own, ...trained.map(([name], i): [string, Tensor] => [name, weights[i]!])]);
      return decoderLayer(backend, config, layer, named, loraScale, inputs, x);
    };
    const weights = trained.map(([, tensor]) => tensor);
    x = gradientCheckpointing
      ? checkpointed(tf, compute, inputs)(x, ...weights)
      : compute(inputs, x, ...weights);
  }
  // The head is linear, so dividing the last gain [d] divides the logits [N, V].
  const lastGain = parameters.get('model.norm.weight') as Tensor1D;
  const scaled = temperature === 1 ? lastGain : tf.div<Tensor1D>(lastGain, temperature);
  return {
    hidden: rmsNorm(tf, x, scaled, config.rmsNormEpsilon),
    head: matrix(config.tieEmbeddings ? 'model.embed_tokens.weight' : 'lm_head.weight'),
  };
}
