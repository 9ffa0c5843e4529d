import { expect, test } from 'vitest';
import type { SpecEnvironment } from '../../../core/schema/check.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { webShopEnvironment } from '../../../environments/families/web-shop/environment.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { synthesisSpec } from '../../support/synthesis-spec.ts';

const calculator = hostedHere(calculatorEnvironment());
const silent: SpecEnvironment = {
  name: 'silent',
  levels: [1],
  taskCount: () => Infinity,
  verifiers: calculator.verifiers,
  demonstrates: false,
};
const environments = new Map<string, SpecEnvironment>(
  [calculator, hostedHere(webShopEnvironment()), silent].map((one) => [one.name, one]),
);

/** The spec with another first stage. */
function parse(first: object) {
  const { stages, ...spec } = synthesisSpec();
  return parseSpec({ ...spec, stages: [{ ...stages[0], ...first }, stages[1]] }, 'run', environments);
}

test('a supervised stage may make its data, of so many tasks with so many alternatives', () => {
  expect(parse({ synthesis: { kind: 'actions' } }).stages[0]).toMatchObject({
    synthesis: { tasks: 256, alternatives: 3, weights: { first: 1, plans: 1, choices: 1 } },
  });
  expect(parse({ synthesis: { kind: 'actions', weights: { plans: 0 } } }).stages[0]).toMatchObject({
    synthesis: { weights: { first: 1, plans: 0, choices: 1 } },
  });
});

test.each([
  ['data of its own', { data: 'given.jsonl' }, /makes the data of the stage, and "data" gives it/],
  [
    'preferences',
    { algorithm: { kind: 'dpo' } },
    /makes examples to imitate, and no preferences: leave out algorithm/,
  ],
  [
    'nothing that weighs anything',
    { synthesis: { kind: 'actions', weights: { first: 0, plans: 0, choices: 0 } } },
    /are all 0, so that nothing is made/,
  ],
  [
    'two environments',
    {
      tasks: [
        { environment: 'calculator', levels: [1] },
        { environment: 'web-shop', levels: [1] },
      ],
    },
    /are of calculator and web-shop, and data is made for the tools of one environment/,
  ],
  [
    'an environment without an expert',
    { tasks: [{ environment: 'silent', levels: [1] }] },
    /nothing is made of the tasks of "silent": it has no expert/,
  ],
  ['another kind', { synthesis: { kind: 'dreams' } }, /actions/],
])('synthesis with %s is refused', (__, first, why) => {
  expect(() => parse(first)).toThrow(why);
});
