import { describe, expect, test } from 'vitest';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { environments } from './problems-of.ts';

const ladder = [
  { verifier: 'molecule', passAtLeast: 1 },
  { verifier: 'xtb', passAtLeast: 0.5 },
  { verifier: 'dft', passAtLeast: 0.9, budget: { count: 40 } },
];

function parsed(verification: unknown, over: object = {}) {
  const tasks = [{ environment: 'molecules', levels: [1] }];
  const spec = {
    reward: { components: [{ verifier: 'ladder', role: 'outcome' }] },
    verification,
    model: { from: 'warm' },
    stages: [{ name: 'design', tasks, maxSteps: 10, graduation: { successAtLeast: 0.9 } }],
    evaluation: { tasks },
    ...over,
  };
  return parseSpec(spec, 'run', environments);
}

describe('a ladder', () => {
  test('is filled in, with the tiers of its verifiers', () => {
    const { verification, reward } = parsed({ rungs: ladder });
    expect(verification!.rungs.map(({ tier }) => tier)).toEqual(['fast', 'simulation', 'high-fidelity']);
    expect(verification!.rungs[1]).toMatchObject({
      wait: true,
      missing: 'cheaper',
      abstains: 'zero',
      budget: {},
    });
    expect(reward.ladder).toEqual({ verifier: 'molecule', passAtLeast: 1 });
  });

  test.each([
    ['the highest tier that all can have', ladder, 'xtb'],
    ['the lowest one where each has a budget', [ladder[0], ladder[2]], 'molecule'],
    ['no tier that steps do not wait for', [ladder[0], { ...ladder[1], wait: false }], 'molecule'],
  ])('measures checkpoints by %s', (_, tiers, evaluateBy) => {
    expect(parsed({ rungs: tiers }).verification).toMatchObject({ evaluateBy });
  });

  test('measures them by the tier that the spec names', () => {
    expect(parsed({ rungs: ladder, evaluateBy: 'dft' }).verification).toMatchObject({ evaluateBy: 'dft' });
  });

  const refused = (verification: unknown, over?: object) => () => parsed(verification, over);

  test('is refused, with the path and what to write', () => {
    expect(refused({ rungs: ladder, evaluateBy: 'dftt' })).toThrow(
      /verification\.evaluateBy: no tier has this verifier.*"dft"/,
    );
    expect(refused({ rungs: [ladder[0], { ...ladder[1], verifier: 'xbt' }] })).toThrow(
      /verification\.rungs\[1\]\.verifier: .*"xtb"/,
    );
    expect(refused({ rungs: [ladder[0], ladder[2], ladder[1]] })).toThrow(
      /rungs\[2\]\.verifier: of tier simulation lies above "dft" of tier high-fidelity/,
    );
    expect(refused({ rungs: [ladder[1], ladder[2]] })).toThrow(/rungs\[0\].*lowest one must be fast/);
    expect(refused({ rungs: [ladder[0], ladder[1], ladder[1]] })).toThrow(/"xtb" is already a tier/);
    expect(refused({ rungs: [ladder[0]] })).toThrow(/verification\.rungs/);
    const other = { components: [{ verifier: 'molecule', role: 'outcome' }] };
    expect(refused({ rungs: ladder }, { reward: other })).toThrow(/does nothing unless reward\.components/);
  });
});
