import { describe, expect, test } from 'vitest';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { fromFailuresSpec } from '../../support/from-failures-spec.ts';

const environments = new Map([calculatorEnvironment()].map((one) => [one.name, hostedHere(one)]));

/** A warm start and two phases, the second of which has tasks made of failures of the first. */
function phases(second: object, first: object = {}, model?: object) {
  const { stages, ...spec } = fromFailuresSpec();
  const [warmStart, one, two] = stages;
  const changed = [warmStart, { ...one, ...first }, { ...two, ...second }];
  return parseSpec({ ...spec, ...(model && { model }), stages: changed }, 'run', environments);
}

describe('a stage that goes on with an earlier policy', () => {
  test('names the stage that ended with it, or what the run began with', () => {
    const noFilter = { stage: 'phase-1', values: null };
    const second = { from: { stage: 'warm-start' }, fromFailures: noFilter };
    expect(phases(second).stages.map(({ from }) => from?.stage)).toEqual([
      undefined,
      undefined,
      'warm-start',
    ]);
    const base = { from: { stage: 'initialize' }, fromFailures: noFilter };
    expect(phases(base, {}, { from: 'other' }).stages[2]).toMatchObject({ from: { stage: 'initialize' } });
  });

  test.each([
    [
      'a later stage',
      {},
      { from: { stage: 'phase-2' } },
      /stages\[1\]\.from\.stage: "phase-2" is no earlier stage/,
    ],
    ['itself', { from: { stage: 'phase-2' } }, {}, /"phase-2" is no earlier stage/],
    ['a slip', { from: { stage: 'warm-strat' } }, {}, /no earlier stage; did you mean "warm-start"/],
    ['a fresh model', {}, { from: { stage: 'initialize' } }, /"initialize" is the policy before any stage/],
    ['the name alone', { from: 'phase-1' }, {}, /stages\[2\]\.from: expected object/],
    [
      'a policy without the critic that filters',
      { from: { stage: 'warm-start' } },
      {},
      /critic of the stage that this one goes on with, which has none/,
    ],
  ])('is refused with %s', (_, second, first, why) => {
    expect(() => phases(second, first)).toThrow(why);
  });
});
