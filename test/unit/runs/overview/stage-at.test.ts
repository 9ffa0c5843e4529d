import { expect, test } from 'vitest';
import { stageText } from '../../../../runs/overview/stage-at.ts';
import type { CurriculumSpec } from '../../../../core/schema/curriculum-spec.ts';

const spec = {
  stages: [
    { kind: 'supervised', name: 'warm-start', maxRounds: 5 },
    { kind: 'rl', name: 'rl', maxSteps: 12 },
  ],
} as unknown as CurriculumSpec;
const warm = { stage: 'warm-start', stageStep: 5, maxSteps: 5 };
const rl = { stage: 'rl', stageStep: 3, maxSteps: 12 };

test.each([
  ['rl', warm, 'rl, its first step of 12; the last step was warm-start, step 5 of 5'],
  ['rl', rl, 'rl, step 3 of 12'],
  [null, rl, 'rl, step 3 of 12'],
  ['warm-start', null, 'warm-start, its first step of 5'],
  ['report', rl, 'report; the last step was rl, step 3 of 12'],
  ['initialize', null, 'initialize'],
  [null, null, '–'],
])('a run at %s is not said to be at the step of another stage', (phase, last, text) =>
  expect(stageText(phase, last, spec)).toBe(text),
);
