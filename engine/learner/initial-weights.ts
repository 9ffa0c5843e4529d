import { normal, randomKey } from '../../core/random.ts';
import { weightShapes, type ModelConfig, type Weights } from '../model-config.ts';

/** Standard deviation of a fresh weight, as in GPT-2 and Llama. */
const DEVIATION = 0.02;

/**
 * Fresh weights: normal(0, 0.02), gains 1, biases 0, and the two projections that write into the residual stream scaled by
 * 1/√(2 · layers) so that its variance does not grow with depth (Radford et al. 2019, section 2.3). A pure
 * function of the configuration and the seed.
 */
export function initialWeights(config: ModelConfig, seed: number): Weights {
  const residual = DEVIATION / Math.sqrt(2 * config.layers);
  const weights: Weights = new Map();
  for (const [name, shape] of weightShapes(config)) {
    const size = shape.reduce((product, extent) => product * extent, 1);
    const key = randomKey(seed, 'initial-weights', name);
    const deviation = /(o_proj|down_proj)\.weight$/.test(name) ? residual : DEVIATION;
    const data =
      shape.length === 1
        ? new Float32Array(size).fill(name.endsWith('.bias') ? 0 : 1)
        : Float32Array.from({ length: size }, (_, i) => deviation * normal(key, i));
    weights.set(name, { shape, data });
  }
  return weights;
}
