import { expect, test } from 'vitest';
import { assertTinkerTrains } from '../../../../activities/training/tinker/assert-run.ts';
import type { TinkerServer } from '../../../../activities/training/tinker/capabilities.ts';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { parseSpec } from '../../../../spec/parse-spec.ts';
import { tinySpec } from '../../../support/tiny-spec.ts';

// What a later stage asks for is known when a run begins.

const environments = new Map([['calculator', hostedHere(calculatorEnvironment())]]);
const server: TinkerServer = {
  baseModel: 'tiny',
  losses: ['cross_entropy', 'importance_sampling', 'ppo'],
  clipsGradients: true,
  knowsSequence: false,
  wire: 'json',
};
const tiny = tinySpec();
const [warmStart, rl] = tiny.stages;
const lora = { rank: 4, alpha: 32 };
const ready = { ...rl, algorithm: { ...rl.algorithm, beta: 0 } };

/** A run of a warm start and a stage, on that server. */
function trains(stage: object, more: object = {}, by: Partial<TinkerServer> = {}): void {
  const { model: _, ...rest } = tiny;
  const spec = { ...rest, model: { from: 'brought', lora }, stages: [warmStart, stage], ...more };
  assertTinkerTrains(parseSpec(spec, 'run', environments), { ...server, ...by });
}

test('a run that the server can train is trained', () => {
  expect(() => trains(ready)).not.toThrow();
});

test.each([
  ['a KL', { ...rl, algorithm: { ...rl.algorithm, beta: 0.1 } }, {}, {}, /^stage rl: .*a KL to a reference/],
  ['a critic', { ...rl, algorithm: { kind: 'ppo' } }, {}, {}, /^stage rl: .*scores of tokens/],
  ['scores', { ...rl, algorithm: { kind: 'gspo' } }, {}, {}, /^stage rl: .*the loss gspo/],
  ['a loss of other servers', { ...rl, algorithm: { kind: 'cispo' } }, {}, {}, /^stage rl: .*cispo on this/],
  [
    'a temperature',
    ready,
    { sampling: { ...tiny.sampling, temperature: 0.7 } },
    {},
    /^stage rl: .*temperature 0\.7/,
  ],
  [
    'a schedule of temperatures',
    { ...ready, exploration: { temperature: { from: 1.2, to: 1, steps: 2 } } },
    {},
    {},
    /^stage rl: .*temperatures from 1\.2 to 1/,
  ],
  [
    'a clip that the server lacks',
    ready,
    {},
    { clipsGradients: false },
    /^stage warm-start: .*a clip of the gradient/,
  ],
  ['an alpha', ready, { model: { from: 'brought', lora: { rank: 4 } } }, {}, /^stage warm-start: .*by 32/],
  ['all weights', ready, { model: { from: 'brought' } }, {}, /^stage warm-start: .*training of all weights/],
])('%s that it lacks is found out before the first stage', (_, stage, more, by, why) => {
  expect(() => trains(stage, more, by)).toThrow(why);
});
