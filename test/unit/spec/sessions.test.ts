import { expect, test } from 'vitest';
import type { Environment } from '../../../environments/contract/environment.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import type { SpecEnvironment } from '../../../core/schema/check.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { houseWith, WAYS } from '../../support/houses.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { environments, problemsOf } from './problems-of.ts';

const [warmStart, rl] = tinySpec().stages;

const rejection = { ...rl, algorithm: { kind: 'rft' } };

const houses = Object.keys(WAYS).map((way) => {
  const house: Environment = houseWith(WAYS[way]!(), { version: `1 ${way}` });
  delete house.demonstrate;
  return hostedHere(house);
});
const among: Map<string, SpecEnvironment> = new Map<string, SpecEnvironment>(environments);
for (const house of houses) among.set(house.name, house);

const specOf = (name: string, stages: object[]) => {
  const tasks = [{ environment: name, levels: [1] }];
  const reward = { components: [{ verifier: 'environment', role: 'outcome', weight: 1 }] };
  const { evaluation, ...tiny } = tinySpec();
  return {
    ...tiny,
    reward,
    stages: stages.map((stage) => ({ ...stage, tasks })),
    evaluation: { ...evaluation, tasks },
  };
};

test('an environment without an expert is none for a supervised stage, which says what to do instead', () => {
  expect(problemsOf(specOf('house-fold', [warmStart, rl]), among)).toEqual([
    expect.stringMatching(/^stages\[0\]\.tasks\[0\]\.environment: .*no expert.*model\.from/u),
  ]);
  expect(problemsOf(specOf('house-fold', [rejection]), among)).toEqual([]);
  expect(problemsOf(specOf('house-fold', [rl]), among)).toEqual([
    expect.stringContaining('stored episodes, a search or rejection sampling'),
  ]);
});

test.each([
  ['fold', 0],
  ['replay', 0],
  ['snapshot', 0],
  ['pin', 1],
  ['reattach', 1],
])('samples branch off in a tree where a beginning can be had twice: %s', (way, problems) => {
  const tree = { ...rl, collect: { kind: 'tree', roots: 2 } };
  const refused = problemsOf(specOf(`house-${way}`, [tree]), among);
  expect(refused.filter((line) => line.includes('come back by'))).toHaveLength(problems);
});

test('versions of the sources of tasks are kept with the spec', () => {
  expect(parseSpec(specOf('house-fold', [rejection]), 'run', among)).toMatchObject({
    taskVersions: { 'house-fold': '1 fold' },
  });
  expect(parseSpec(tinySpec(), 'run', among)).not.toHaveProperty('taskVersions');
});
