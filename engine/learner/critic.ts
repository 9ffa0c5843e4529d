import { mergeAdapter } from '../lora/merge-adapter.ts';
import { weightShapes, type ModelConfig, type Weights } from '../../core/model/config.ts';
import type { CriticState, TrainState } from './contract.ts';

const OUTPUT_MATRIX = 'lm_head.weight';

/**
 * Weights of a critic by name and shape, in the order in which they are stored: those of a policy of this shape but for an
 * output matrix of its own, and a head that makes a number of the last hidden state. V(s) = hidden · weight + bias.
 */
export const criticShapes = (config: ModelConfig): [name: string, shape: number[]][] => [
  ...weightShapes(config).filter(([name]) => name !== OUTPUT_MATRIX),
  ['value_head.weight', [1, config.hiddenSize]],
  ['value_head.bias', [1]],
];

/** A critic that expects 0 of every state: the network of the policy, an adapter merged into it, under a head of zeros. */
export function beginCritic({
  config,
  weights,
  adapter,
}: Pick<TrainState, 'config' | 'weights' | 'adapter'>): CriticState {
  const policy = adapter ? mergeAdapter(config, weights, adapter) : weights;
  const begun: Weights = new Map();
  for (const [name, shape] of criticShapes(config)) {
    const size = shape.reduce((product, extent) => product * extent, 1);
    begun.set(name, { shape, data: policy.get(name)?.data ?? new Float32Array(size) });
  }
  return { weights: begun, firstMoments: new Map(), secondMoments: new Map(), updates: 0 };
}

/** A policy that learns without its critic leaves it behind: it would no longer know what is to come. */
export function withoutCritic(state: TrainState): TrainState {
  const { critic: _, ...rest } = state;
  return rest;
}
