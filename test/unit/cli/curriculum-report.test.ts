import { expect, test } from 'vitest';
import { reportRun, summarizeRun } from '../../../cli/curriculum-report.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { noTime } from '../../../core/time/time-split.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import type { StepReport } from '../../../core/ports.ts';
import { noOutcomes } from '../../../core/episode/outcome.ts';
import { progressLine } from '../../../cli/show-progress.ts';
import { reportOf } from '../../../core/training/step-report.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { someHeldOut, someStep } from '../../support/some-step.ts';
import { arm, checkpoint } from '../core/training/scripted-training.ts';

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

test('what was not judged is shown with the success that it is left out of, or counts in', () => {
  const arms = [{ arm: arm(1), successes: 6, trials: 9, toolFailures: 2 }];
  const before = {
    arms: [{ arm: arm(1), successes: 5, trials: 10 }],
    outcomes: { ...noOutcomes(), scored: 10 },
    meanReward: 0.5,
    sampledTokens: 10,
    spans: [],
  };
  const after = { ...before, arms, outcomes: { ...noOutcomes(), scored: 7, failed: 3 } };
  const lines: string[] = [];
  reportRun({ ...result, before, after }, progress, 0.95, 281, (line) => lines.push(line));
  expect(lines[1]).toBe('after: 3 failed; 2 failed at a tool, which is no success');
  expect(summarizeRun({ ...result, before, after }, progress, 0.95, 281)).toMatchObject({
    before: { trials: 10, toolFailures: 0 },
    after: { trials: 9, toolFailures: 2, outcomes: { failed: 3 } },
  });
  const alone: string[] = [];
  reportRun({ ...result, after }, progress, 0.95, 281, (line) => alone.push(line));
  // A run of supervised stages alone has nothing before RL.
  expect(alone[0]).toMatch(/calculator:1\t–\t66\.7 %/u);
  const step = { stage: 'rl', stageStep: 3, maxSteps: 9, seconds: noTime(), meanReward: null } as StepReport;
  expect(progressLine({ status: 'running', step, heldOut: { arms, step: 3 } } as Progress)).toContain(
    'held-out 66.7 % (L1 66.7 %)  2 of 9 failed at a tool',
  );
});

test('the line of a warm start says that its entropy is of demonstrations, and has no reward', () => {
  const learner = { entropy: 5.9 } as StepFacts['learner'];
  const step = reportOf(someStep({ stage: 'warm-start', learner, heldOut: someHeldOut(2, 4) }));
  const line = progressLine({ status: 'running', step, heldOut: null } as unknown as Progress);
  expect(line).toContain('entropy on demonstrations 5.900');
  expect(line).not.toContain('reward');
});

test('a narrow terminal has the whole of what matters, and no half of a word', () => {
  const alarm = { stage: 'rl', name: 'no-contrast', stageStep: 12 };
  const step = {
    stage: 'rl',
    stageStep: 3,
    maxSteps: 9,
    sampledTokens: 9000,
    seconds: { ...noTime(), rollout: 1 },
    meanReward: 0.5,
    entropy: 0.25,
    equalGroups: 0.95,
  } as unknown as StepReport;
  const shown = { status: 'running', step, heldOut: null, alarms: [alarm] } as unknown as Progress;
  const whole = progressLine(shown);
  const narrow = progressLine(shown, 80);
  expect(whole.length).toBeGreaterThan(80);
  expect(narrow.length).toBeLessThanOrEqual(80);
  expect(narrow).toContain('3/9');
  expect(narrow).toContain('held-out –');
  expect(narrow).toContain('alarm no-contrast at step 12');
  expect(narrow).not.toMatch(/tokens|entropy/u);
  expect(whole).toMatch(/9\.0k tokens\/s$/u);
  for (const field of narrow.split('  ').filter((one) => !one.includes('░'))) expect(whole).toContain(field);
});

test('groups that teach nothing, and a stage that did not graduate, stand in the report of a run', () => {
  const lines: string[] = [];
  const stage = {
    name: 'rl',
    kind: 'rl' as const,
    end: 'exhausted' as const,
    reason: '40 steps are done',
    steps: 40,
  };
  const step = { stage: 'rl', equalGroups: 0.95, standing: ['no-contrast'] } as unknown as StepReport;
  const shown = { ...progress, step, tokens: { rl: { sampled: 4000, taught: 560 } } };
  reportRun({ ...result, stages: [stage] }, shown, 0.95, 281, (line) => lines.push(line));
  expect(lines).toContain('stage rl did not graduate: 40 steps are done');
  expect(lines.join('\n')).toContain('in the last step 95.0 % of the groups had equal rewards');
  expect(lines).toContain('stage rl sampled 4000 tokens; 14.0 % of them are trained tokens');
  expect(summarizeRun(result, shown, 0.95, 281)).toMatchObject({
    tokens: { rl: { sampled: 4000, taught: 560 } },
    standing: ['no-contrast'],
    equalGroups: 0.95,
  });
});

test('a stage that never saw a success is said to have had none', () => {
  const lines: string[] = [];
  const stage = {
    name: 'rl',
    kind: 'rl' as const,
    end: 'no-success' as const,
    reason: 'begin easier',
    steps: 40,
  };
  reportRun({ ...result, end: 'no-success', stages: [stage] }, progress, 0.95, 281, (line) =>
    lines.push(line),
  );
  expect(lines[0]).toBe('stage rl had no success: begin easier');
});

test('what the diagnoses have found stands in the line of a run and in its report', () => {
  const alarm = {
    stage: 'rl',
    name: 'loops' as const,
    stageStep: 12,
    evidence: [{ what: 'a figure', now: 0.5, before: 0.1, limit: 0.2 }],
    remedy: 'Do something.',
    actions: ['slow-down' as const],
  };
  const lines: string[] = [];
  reportRun(result, { ...progress, alarms: [alarm] }, 0.95, 281, (line) => lines.push(line));
  expect(lines[0]).toBe(
    'step 12 of rl: loops: a figure: 0.5 (at first 0.1, limit 0.2). Do something. Done: slow-down.',
  );
  expect(summarizeRun(result, { ...progress, alarms: [alarm] }, 0.95, 281).alarms).toEqual([alarm]);
  const step = {
    stage: 'rl',
    stageStep: 13,
    maxSteps: 20,
    seconds: noTime(),
    meanReward: null,
  } as StepReport;
  const shown = { status: 'running', step, heldOut: null, alarms: [alarm] } as unknown as Progress;
  expect(progressLine(shown)).toContain('alarm loops at step 12');
  expect(progressLine({ ...shown, step: { ...step, stage: 'next' } })).not.toContain('alarm');
  expect(progressLine({ ...shown, step: { ...step, stageStep: step.stageStep + 5 } })).not.toContain('alarm');
});

test('the line of a run says which activity is tried again and why, also before its first step', () => {
  const retrying = [
    {
      activity: 'trainStep',
      workflow: 'run/warm-start',
      attempts: 3,
      lastFailure: 'the worker for learner died (SIGKILL)',
    },
  ];
  const first = { status: 'running', phase: 'warm-start', step: null, retrying } as unknown as Progress;
  expect(progressLine(first)).toBe(
    'warm-start …  trainStep: attempt 3, because the worker for learner died (SIGKILL)',
  );
  const step = { stage: 'rl', stageStep: 3, maxSteps: 9, seconds: noTime(), meanReward: null } as StepReport;
  expect(progressLine({ ...first, step, heldOut: null })).toMatch(
    /3\/9 {2}trainStep: attempt 3, because the worker for learner died/,
  );
});

test('a narrow terminal is told of what is tried again, too, as much of it as fits', () => {
  const lastFailure = `store/unreachable: object store at http://127.0.0.1:9000, ${'put runs/a/b '.repeat(20)}`;
  const retrying = [{ activity: 'trainStep', workflow: 'run/rl', attempts: 3, lastFailure }];
  const heldOut = { arms: [{ arm: { environment: 'calculator', level: 1 }, successes: 3, trials: 4 }] };
  const step = { stage: 'rl', stageStep: 3, maxSteps: 9, seconds: noTime(), meanReward: 0.5 } as StepReport;
  const shown = { status: 'running', phase: 'rl', step, heldOut, retrying } as unknown as Progress;
  for (const progress of [shown, { ...shown, step: null }]) {
    const line = progressLine(progress, 80);
    expect(line.length).toBeLessThanOrEqual(80);
    expect(line).toContain('trainStep: attempt 3, because store/un');
  }
  expect(progressLine(shown)).toContain(lastFailure.trim());
});

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
