import { expect, test } from 'vitest';
import { DIAGNOSES } from '../../../../core/diagnosis/alarm.ts';
import { alarmsOf, stageOf } from './stages.ts';

// What is promised of each diagnosis: it speaks in one of a hundred healthy stages at most. docs/diagnosis.md has what
// a thousand stages gave.

const STAGES = 300;
const PROMISED = 0.01;

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
  for (const name of DIAGNOSES) expect(raised.get(name) ?? 0, name).toBeLessThanOrEqual(PROMISED * STAGES);
});
