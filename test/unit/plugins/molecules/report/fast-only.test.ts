import { expect, test } from 'vitest';
import { parseSpec } from '../../../../../spec/parse-spec.ts';
import { fastTierOnly } from '../../../../../plugins/molecules/report/fast-only.ts';
import { builtInEnvironments } from '../../../../../environments/families/index.ts';

const tasks = [{ environment: 'molecules', levels: [1] }];
const spec = {
  reward: {
    components: [
      { verifier: 'ladder', role: 'outcome' },
      { verifier: 'format', role: 'bonus', weight: 0.1 },
    ],
  },
  verification: {
    rungs: [
      { verifier: 'molecule', passAtLeast: 1 },
      { verifier: 'xtb', passAtLeast: 0.5 },
      { verifier: 'dft', passAtLeast: 0.9 },
    ],
  },
  stages: [
    { kind: 'supervised', name: 'warm-start', tasks, graduation: { successAtLeast: 0.5 } },
    {
      name: 'design',
      tasks,
      maxSteps: 4,
      budgets: { dft: { count: 3 } },
      graduation: { successAtLeast: 0.5 },
    },
  ],
  evaluation: { tasks, count: 16 },
};
const environments = new Map(builtInEnvironments.map((environment) => [environment.name, environment]));

test('without the higher tiers the lowest tier decides, and the parser takes the spec', () => {
  expect(parseSpec(spec, 'whole', environments).verification?.rungs).toHaveLength(3);
  const parsed = parseSpec(fastTierOnly(spec), 'fast', environments);
  expect(parsed.verification).toBeUndefined();
  expect(parsed.reward.components.map(({ verifier, role }) => [verifier, role])).toEqual([
    ['molecule', 'outcome'],
    ['format', 'bonus'],
  ]);
  expect(parsed.stages[1]).not.toHaveProperty('budgets');
});

test('a spec without a ladder stays as it is', () => {
  const { verification: _, ...plain } = spec;
  expect(fastTierOnly(plain)).toBe(plain);
  expect(fastTierOnly({ nonsense: true })).toEqual({ nonsense: true });
});
