import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { OTHER_NAMES } from '../../../spec/other-names.ts';
import { curriculumJsonSchema } from '../../../spec/json-schema.ts';
import { parseSpec, readNames } from '../../../spec/parse-spec.ts';
import { environments } from './problems-of.ts';

const calculator = (): Record<string, never> & { stages: Record<string, unknown>[] } =>
  JSON.parse(readFileSync(new URL('../../../examples/calculator.json', import.meta.url), 'utf8'));

/** The example, its RL stages with these fields in place of their own method, optimizer and size of groups. */
function withStage(fields: object) {
  const spec = calculator();
  const stages = spec.stages.map((stage) => {
    if (stage['kind'] === 'supervised') return stage;
    const { numGenerations: _, groupsPerStep: __, algorithm: ___, optimizer: ____, ...rest } = stage;
    return { ...rest, ...fields };
  });
  return { ...spec, stages };
}

const own = {
  numGenerations: 8,
  groupsPerStep: 4,
  algorithm: { kind: 'grpo', clipRatioLow: 0.1, clipRatioHigh: 0.3, beta: 0.01 },
  optimizer: { learningRate: 1e-4, maxGradientNorm: 0.5, epsilon: 1e-7 },
};

test.each([
  [
    'TRL',
    {
      num_generations: 8,
      groupsPerStep: 4,
      algorithm: { kind: 'grpo', epsilon: 0.1, epsilon_high: 0.3, beta: 0.01 },
      optimizer: { learning_rate: 1e-4, max_grad_norm: 0.5, adam_epsilon: 1e-7 },
    },
  ],
  [
    'verl',
    {
      n: 8,
      groupsPerStep: 4,
      algorithm: { kind: 'grpo', clip_ratio_low: 0.1, clip_ratio_high: 0.3, kl_loss_coef: 0.01 },
      optimizer: { lr: 1e-4, grad_clip: 0.5, epsilon: 1e-7 },
    },
  ],
  [
    'OpenRLHF',
    {
      n_samples_per_prompt: 8,
      rollout_batch_size: 4,
      algorithm: { kind: 'grpo', clipRatioLow: 0.1, clipRatioHigh: 0.3, beta: 0.01 },
      optimizer: { learning_rate: 1e-4, max_norm: 0.5, epsilon: 1e-7 },
    },
  ],
])('a spec with names of %s is the same run as one with the names of Gradus', (_, stage) => {
  expect(parseSpec(withStage(stage), 'run', environments)).toEqual(
    parseSpec(withStage(own), 'run', environments),
  );
});

test('what a name is read as is said once, with its path; a spec with own names stays as it is', () => {
  const { hints } = readNames({
    sampling: { max_completion_length: 64 },
    stages: [{ algorithm: { epsilon: 0.1 } }],
  });
  expect(hints).toEqual([
    'sampling.max_completion_length is read as maxCompletionTokens',
    'stages[0].algorithm.epsilon is read as clipRatioLow',
  ]);
  const written = calculator();
  expect(readNames(written)).toEqual({ written, hints: [] });
});

test('two names of a field are refused, and so are two other names', () => {
  const twice = { numGenerations: 8, num_generations: 8 };
  const message =
    /stages\[0\]\.num_generations: is another name of numGenerations, which is written too: leave one out/;
  expect(() => readNames({ stages: [twice] })).toThrow(message);
  expect(() => readNames({ sampling: { maxCompletionLength: 1, max_response_length: 1 } })).toThrow(
    /sampling\.max_response_length: is another name of maxCompletionTokens/,
  );
});

test('a name is not read where another trainer means something else by it', () => {
  const stages = [
    { algorithm: { kind: 'cispo', epsilon_high: 5 } },
    { algorithm: { kind: 'dpo', kl_loss_coef: 0.1 } },
    { optimizer: { epsilon: 1e-8 } },
  ];
  expect(readNames({ stages })).toEqual({ written: { stages }, hints: [] });
});

test('names that a person chose are no fields', () => {
  const spec = { stages: [{ budgets: { my_verifier: { per_step: 3 } } }] };
  const { written } = readNames(spec);
  expect(written).toEqual({ stages: [{ budgets: { my_verifier: { perStep: 3 } } }] });
});

test('each other name stands for a field that there is', () => {
  const schema = curriculumJsonSchema();
  const none = Object.values(OTHER_NAMES).filter((field) => !schema.includes(`"${field}": {`));
  expect(none).toEqual([]);
});
