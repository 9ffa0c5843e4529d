import { beforeAll, describe, expect, it } from 'vitest';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../engine/learner/tensorflow/backend.ts';
import { decoderHidden } from '../../../../engine/learner/model/decoder.ts';
import { linear } from '../../../../engine/learner/model/linear.ts';
import { supervised } from '../../../../engine/learner/losses/supervised.ts';
import { trainingProgram } from '../../../../engine/learner/programs/policy-programs.ts';
import { loraScale, parameterShapes } from '../../../../engine/lora/adapter-shapes.ts';
import { mergeAdapter } from '../../../../engine/lora/merge-adapter.ts';
import {
  adapterOf,
  base,
  CASES,
  config,
  expected,
  LENGTH,
  ROWS,
} from '../../../support/engine/peft-fixtures.ts';

let backend: TensorflowBackend;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
});

const largest = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Array.from(a).reduce((most, value, i) => Math.max(most, Math.abs(value - b[i]!)), 0);

describe.each(CASES)('an adapter made by PEFT: %s', (name) => {
  const adapter = adapterOf(name);
  const { lora } = adapter;
  const { frozen, trained } = parameterShapes({ config, lora });
  const shapes = [...frozen, ...trained];
  const given = expected(name);
  const upload = () =>
    shapes.map(([key]) => {
      const { shape, data } = (base.get(key) ?? adapter.weights.get(key))!;
      return backend.tf.tensor(data.slice(), [...shape]);
    });

  it('gives the logits of PyTorch within 1e-4, beside its base and merged into it', () => {
    const { tf } = backend;
    const logits = (parameters: Map<string, ReturnType<typeof tf.tensor>>) => {
      const { hidden, head } = decoderHidden(
        backend,
        config,
        parameters,
        tf.tensor1d(given.tokens, 'int32'),
        tf.zeros([ROWS, LENGTH], 'int32'),
        { temperature: 1, gradientCheckpointing: false, loraScale: loraScale(lora) },
      );
      return linear(backend, hidden, head).dataSync();
    };
    const tensors = upload();
    const beside = logits(new Map(shapes.map(([key], i) => [key, tensors[i]!])));
    expect(largest(beside, given.logits)).toBeLessThan(1e-4);
    const merged = mergeAdapter(config, base, adapter);
    const alone = new Map([...merged].map(([key, { shape, data }]) => [key, tf.tensor(data, [...shape])]));
    expect(largest(logits(alone), given.logits)).toBeLessThan(1e-4);
  });

  it('has the gradients of PyTorch within 1e-3 of the largest', () => {
    const { tf } = backend;
    const count = ROWS * LENGTH;
    const isLast = (i: number) => i % LENGTH === LENGTH - 1;
    const targets = Int32Array.from(given.tokens, (_, i) => (isLast(i) ? 0 : given.tokens[i + 1]!));
    const mask = Float32Array.from({ length: count }, (_, i) => (isLast(i) ? 0 : 1));
    const program = trainingProgram(backend, { config, lora }, supervised, true);
    const [loss, , , , , ...gradients] = program.compute([
      ...upload(),
      tf.tensor1d(given.tokens, 'int32'),
      tf.tensor1d(targets, 'int32'),
      tf.zeros([ROWS, LENGTH], 'int32'),
      tf.tensor1d(mask),
      tf.tensor1d(mask.map((value) => value / (ROWS * (LENGTH - 1)))),
    ]);
    expect(Math.abs(loss!.dataSync()[0]! - given.loss)).toBeLessThan(1e-5);
    expect(given.gradients.map(([key]) => key).toSorted()).toEqual(trained.map(([key]) => key).toSorted());
    for (const [key, { data }] of given.gradients) {
      const ours = gradients[trained.findIndex(([own]) => own === key)]!.dataSync();
      expect(largest(ours, data), key).toBeLessThan(1e-3 * largest(data, new Float32Array(data.length)));
    }
  });

  it('merges into the weights that PEFT merges it into, within 1e-6', () => {
    const merged = mergeAdapter(config, base, adapter);
    expect(given.merged.length).toBe(lora.targetModules.length * config.layers);
    for (const [key, { data }] of given.merged) {
      expect(largest(merged.get(key)!.data, data), key).toBeLessThan(1e-6);
    }
    const untouched = [...merged].filter(([key]) => !given.merged.some(([other]) => other === key));
    for (const [key, tensor] of untouched) expect(tensor).toBe(base.get(key));
  });
});
