import { expect, test } from 'vitest';
import { DIAGNOSES } from '../../../../core/diagnosis/alarm.ts';
import { RandomStream } from '../../../../core/random.ts';
import { alarmsOf, factsOf, stageOf } from './stages.ts';
import type { Told } from './stages.ts';

// Each diagnosis speaks in one of a hundred of these stages at most. They are drawn within limits of our own, so that is
// a check and no rate: rates are measured on simulated policies (`npm run bench -- alarms`, docs/diagnosis.md).

const STAGES = 300;
const AT_MOST = 0.01;

test.each([
  ['200 steps, measured at every tenth', { steps: 200, everySteps: 10, missing: 0.05 }],
  ['60 steps, measured at each', { steps: 60, everySteps: 1, missing: 0.05 }],
  [
    '200 steps, of which many lack rollout, learner or new tasks',
    { steps: 200, everySteps: 10, missing: 0.2 },
  ],
])('of healthy stages of %s one in a hundred raises an alarm, if any', (_, shape) => {
  const raised = new Map<string, number>();
  for (let seed = 0; seed < STAGES; seed++) {
    const alarms = alarmsOf(stageOf(seed, undefined, shape), {
      look: { left: 1, looks: shape.steps / shape.everySteps },
    });
    for (const name of new Set(alarms.map((alarm) => alarm.name))) {
      raised.set(name, (raised.get(name) ?? 0) + 1);
    }
  }
  for (const name of DIAGNOSES) expect(raised.get(name) ?? 0, name).toBeLessThanOrEqual(AT_MOST * STAGES);
});

/** Rewards of two groups of four samples a step, as chance deals them; the tasks are more and less hard. */
function smallStages(seed: number): Told[] {
  const random = new RandomStream('few groups', seed);
  const between = (low: number, high: number) => low + (high - low) * random.uniform();
  const [from, slowness, entropyFalls, alike] = [
    between(0.1, 0.6),
    between(15, 120),
    between(0, 0.75),
    between(0, 0.5),
  ];
  const to = between(from, 0.97);
  return Array.from({ length: 200 }, (_, at) => {
    const progress = 1 - Math.exp(-(at + 1) / slowness);
    const truth = from + (to - from) * progress;
    const solved = [0, 1].map(() => {
      const odds = (truth / (1 - truth)) * Math.exp(between(-2, 2));
      return [0, 1, 2, 3].filter(() => random.uniform() < odds / (1 + odds)).length;
    });
    const success = (solved[0]! + solved[1]!) / 8;
    const variances = solved.map((count) => ((count / 4) * (1 - count / 4) * 4) / 3);
    return factsOf(at + 1, {
      reward: success,
      success,
      variance: (variances[0]! + variances[1]!) / 2,
      equal: variances.filter((variance) => variance === 0).length / 2,
      entropy: (1 - entropyFalls * progress) * between(0.75, 1.25),
      gradientNorm: Math.exp(between(-1, 1)),
      duplicates: alike * between(0.5, 1.5),
    });
  });
}

test('of healthy stages with two groups of four samples a step hardly one more does', () => {
  const names = Array.from({ length: 200 }, (_, seed) => [
    ...new Set(alarmsOf(smallStages(seed)).map(({ name }) => name)),
  ]).flat();
  for (const name of DIAGNOSES)
    expect(names.filter((raised) => raised === name).length, name).toBeLessThanOrEqual(6);
});
