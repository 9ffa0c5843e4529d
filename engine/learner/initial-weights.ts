import { normal, randomKey } from '../../core/random.ts';
import { atOnce } from '../in-pieces.ts';
import type { InPieces } from '../in-pieces.ts';
import { weightShapes, type ModelConfig, type Weights } from '../../core/model/config.ts';

/** Standard deviation of a fresh weight, as in GPT-2 and Llama. */
const DEVIATION = 0.02;

/**
 * Fresh weights: normal(0, 0.02), gains 1, biases 0, and the two projections that write into the residual stream scaled by
 * 1/√(2 · layers) so that its variance does not grow with depth (Radford et al. 2019, section 2.3). A pure
 * function of the configuration and the seed.
 */
export const initialWeights = (config: ModelConfig, seed: number): Weights =>
  atOnce(initialWeightsInPieces(config, seed));

/** Numbers between two breaks: about a millisecond. */
const PIECE = 8192;

/** The same, with breaks: ten seconds of work for 55 million weights. */
export function* initialWeightsInPieces(config: ModelConfig, seed: number): InPieces<Weights> {
  const residual = DEVIATION / Math.sqrt(2 * config.layers);
  const weights: Weights = new Map();
  for (const [name, shape] of weightShapes(config)) {
    const size = shape.reduce((product, extent) => product * extent, 1);
    const key = randomKey(seed, 'initial-weights', name);
    const deviation = /(o_proj|down_proj)\.weight$/.test(name) ? residual : DEVIATION;
    const data = new Float32Array(size);
    if (shape.length === 1) {
      data.fill(name.endsWith('.bias') ? 0 : 1);
    } else {
      for (let i = 0; i < size; i++) {
        if (i % PIECE === 0) yield;
        data[i] = deviation * normal(key, i);
      }
    }
    weights.set(name, { shape, data });
  }
  return weights;
}
