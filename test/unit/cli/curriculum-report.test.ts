import { expect, test } from 'vitest';
import { reportRun, summarizeRun } from '../../../cli/curriculum-report.ts';
import type { CurriculumResult } from '../../../core/curriculum.ts';
import type { Progress } from '../../../workflows/messages.ts';
import { checkpoint } from '../core/scripted-training.ts';

// A run that was interrupted after some 400 s, and whose last start took 281 s.
const result: CurriculumResult = {
  end: 'completed',
  checkpoint: checkpoint('last'),
  reference: null,
  before: null,
  after: null,
  steps: 40,
  stages: [],
};
const progress = {
  run: 'run',
  learnerBackend: 'cpu',
  seconds: { rollout: 60, tool: 0, verification: 545, learner: 70, data: 5, orchestration: 2 },
} as Progress;

test('the total of a resumed run is that of its parts, and this start is told apart', () => {
  const { seconds, sinceStart } = summarizeRun(result, progress, 0.95, 281);
  expect(seconds).toEqual({ total: 682, ...progress.seconds });
  expect(sinceStart).toBe(281);
  const lines: string[] = [];
  reportRun(result, progress, 0.95, 281, (line) => lines.push(line));
  expect(lines[0]).toBe(
    'steps 40, 682 s (rollout 60.0 s, verification 545.0 s, learner 70.0 s, data 5.0 s, orchestration 2.0 s); 281 s since this start',
  );
});
