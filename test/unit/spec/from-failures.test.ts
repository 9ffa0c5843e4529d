import { describe, expect, test } from 'vitest';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { programsEnvironment } from '../../../environments/families/programs/environment.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { fromFailuresSpec } from '../../support/from-failures-spec.ts';

const environments = new Map(
  [programsEnvironment(), calculatorEnvironment()].map((one) => [one.name, hostedHere(one)]),
);

/** The spec with another second phase, or another first one. */
function phases(second: object, first: object = {}) {
  const { stages, ...spec } = fromFailuresSpec();
  const [warmStart, one, two] = stages;
  const changed = [warmStart, { ...one, ...first }, { ...two, ...second }];
  return parseSpec({ ...spec, stages: changed }, 'run', environments);
}
const from = (over: object) => ({ fromFailures: { stage: 'phase-1', ...over } });

describe('a stage with tasks from failures', () => {
  test('says which earlier stage it is of, and how much of a step comes from it', () => {
    expect(phases(from({})).stages[2]).toMatchObject({
      fromFailures: { stage: 'phase-1', part: 0.5, variations: 4, mostFailures: 128 },
    });
    expect(phases(from({ values: {} })).stages[2]).toMatchObject({
      fromFailures: { values: { from: 0.05, to: 0.75 } },
    });
  });

  test('may leave the filter out, with a critic or without', () => {
    expect(phases(from({ values: null })).stages[2]).toMatchObject({ fromFailures: { values: null } });
    expect(phases(from({}), { algorithm: { kind: 'grpo' } })).toBeDefined();
  });

  test.each([
    ['a stage that is none', from({ stage: 'phase-2' }), /"phase-2" is no earlier stage that collects/],
    ['a stage that collects nothing', from({ stage: 'warm-start' }), /no earlier stage that collects/],
    [
      'other tasks than that stage had',
      { ...from({}), tasks: [{ environment: 'calculator', levels: [5] }] },
      /rolls out none of the tasks of this stage, but calculator:1/,
    ],
    [
      'an environment that varies nothing',
      { ...from({}), tasks: [{ environment: 'programs', levels: [1] }] },
      /no tasks are made of failed ones of "programs": it has no vary\(\)/,
    ],
    ['more than can be made', from({ variations: 64, mostFailures: 65 }), /makes up to 4160 variations/],
    ['a part that is no task', from({ part: 0.01 }), /is none of the \d+ tasks of a step/],
    ['bounds with nothing between', from({ values: { from: 0.5, to: 0.5 } }), /leaves nothing/],
    [
      'stored episodes',
      { ...from({}), collect: { kind: 'stored', stage: 'phase-1' } },
      /draws tasks to sample/,
    ],
  ])('is refused with %s', (_, second, why) => {
    expect(() => phases(second)).toThrow(why);
  });

  test('is refused with bounds that no critic knows', () => {
    expect(() => phases(from({ values: {} }), { algorithm: { kind: 'grpo' } })).toThrow(
      /of the critic of the stage that this one goes on with, which has none/,
    );
  });
});
