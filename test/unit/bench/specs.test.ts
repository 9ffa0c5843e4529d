import { expect, test } from 'vitest';
import { parseSpec } from '../../../spec/parse-spec.ts';
import { cutCalculator, sizeOf, WARM_START } from '../../../bench/specs.ts';
import { loadEnvironments } from '../../../environments/families/index.ts';

test('the cut main job is legal, keeps its shapes, and is a fixed amount of work', async () => {
  const written = cutCalculator({ updates: 480, steps: 12, reports: 300 });
  const spec = parseSpec(written, 'bench', await loadEnvironments([]));
  const [warmStart, stage] = spec.stages;
  // Nobody is there to be asked: the warm start graduates whatever it learnt.
  expect(warmStart).toMatchObject({ name: WARM_START, maxRounds: 1, graduation: { successAtLeast: 0 } });
  expect(stage).toMatchObject({ groupsPerStep: 64, numGenerations: 8, maxSteps: 12 });
  expect(sizeOf(written)).toBe('12 RL steps of 64 × 8 episodes');
});
