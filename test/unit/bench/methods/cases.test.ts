import { expect, test } from 'vitest';
import { GROUPS } from '../../../../bench/methods/claims.ts';
import { LONG, METHOD_CASES, unmasked } from '../../../../bench/methods/cases.ts';
import { trialSpec } from '../../../../bench/methods/trial.ts';
import { METHOD_KINDS } from '../../../../core/algorithms/index.ts';
import { inThisProcess } from '../../../../environments/host/hosted-environment.ts';
import { builtInEnvironments } from '../../../../environments/families/index.ts';
import { parseSpec } from '../../../../spec/parse-spec.ts';

const environments = inThisProcess(builtInEnvironments);

test('every method has a case, and every case is a spec that is accepted', () => {
  expect(METHOD_CASES.map(({ name }) => name)).toEqual([...METHOD_KINDS, 'hindsight-relabel']);
  const all = [{ setting: LONG, cases: METHOD_CASES }, ...GROUPS];
  for (const { setting, cases } of all) {
    for (const one of cases) {
      const { stages } = parseSpec(trialSpec(setting, one, 11, 'warm'), 'run', environments);
      expect(stages, one.name).toMatchObject([{ kind: 'rl', ...one.stage }]);
    }
  }
});

test('every claim compares two cases of its group, and no case is there for nothing', () => {
  for (const { cases, claims } of GROUPS) {
    const compared = claims.flatMap(({ ours, anchor }) => [ours, anchor]);
    expect(new Set(compared)).toEqual(new Set(cases.map(({ name }) => name)));
  }
});

test('observations are learnt from with the advantage of the token before them, and prompts are not', () => {
  const altered = unmasked({
    tokens: Int32Array.of(1, 2, 3, 4, 5, 6, 7, 8),
    offsets: Int32Array.of(0, 6, 8),
    mask: Float32Array.of(0, 1, 0, 0, 1, 0, 0, 1),
    streams: { advantages: Float32Array.of(0, 2, 0, 0, 3, 0, 0, -1), samplerLogprobs: new Float32Array(8) },
    sequences: {},
    updates: [Int32Array.of(0, 1)],
  });
  expect([...altered.mask]).toEqual([0, 1, 1, 1, 1, 1, 0, 1]);
  expect([...altered.streams.advantages!]).toEqual([0, 2, 2, 2, 3, 3, 0, -1]);
});
