import { expect, it } from 'vitest';
import { initialWeights } from '../../../../engine/learner/initial-weights.ts';
import { weightShapes } from '../../../../core/model/config.ts';
import { bytes, TINY } from '../../../support/engine/tiny.ts';

const config = { ...TINY, hiddenSize: 64, intermediateSize: 128, headSize: 16 };

it('gives every weight of the model, with the deviation of its kind', () => {
  const weights = initialWeights(config, 1);
  expect([...weights].map(([name, { shape }]) => [name, [...shape]])).toEqual(weightShapes(config));
  const deviation = (name: string) => {
    const { data } = weights.get(name)!;
    return Math.sqrt(data.reduce((sum, value) => sum + value * value, 0) / data.length);
  };
  expect(deviation('model.layers.0.mlp.up_proj.weight')).toBeCloseTo(0.02, 3);
  expect(deviation('model.layers.1.mlp.down_proj.weight')).toBeCloseTo(0.01, 3);
  expect([...weights.get('model.norm.weight')!.data].every((gain) => gain === 1)).toBe(true);
});

it('is the same for the same seed only', () => {
  expect(bytes(initialWeights(config, 1)).equals(bytes(initialWeights(config, 1)))).toBe(true);
  expect(bytes(initialWeights(config, 1)).equals(bytes(initialWeights(config, 2)))).toBe(false);
});
