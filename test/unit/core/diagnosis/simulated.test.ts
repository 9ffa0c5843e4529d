import { describe, expect, test } from 'vitest';
import { befallen, EXPECTED, raisedIn } from '../../../../bench/alarms/alarms.ts';
import { KINDS, ONSET, SICKNESSES, simulatedStage } from '../../../../bench/alarms/simulated-policy.ts';

// A few of the stages that `npm run bench -- alarms` measures; docs/diagnosis.md has the rates of all of them.

const STAGES = 3;
const STEPS = 100;

test.each(KINDS)('of simulated policies of the kind "%s" no alarm is raised but what is so', async (kind) => {
  for (let seed = 0; seed < STAGES; seed++) {
    const raised = raisedIn(await simulatedStage(seed, { kind, steps: STEPS }));
    // Where steps wait for slow groups the others may be as old as allowed when they are taken.
    if (kind === 'uneven') raised.delete('stale-samples');
    // Nine of ten tasks that nobody solves are nine of ten groups without contrast.
    expect([...raised.keys()], `seed ${seed}`).toEqual(kind === 'hard' ? ['no-contrast'] : []);
  }
});

describe.each(SICKNESSES)('a simulated policy that falls ill of %s', (sickness) => {
  test('is named', async () => {
    let named = 0;
    for (let seed = 0; seed < STAGES; seed++) {
      const stage = await simulatedStage(seed, {
        kind: befallen(sickness)[0]!,
        steps: STEPS,
        ill: { sickness, strength: 'strong' },
      });
      const at = raisedIn(stage).get(EXPECTED[sickness]) ?? [];
      if (at.some((step) => step > ONSET)) named++;
    }
    expect(named).toBeGreaterThanOrEqual(STAGES - 1);
  });
});
