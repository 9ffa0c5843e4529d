import { expect, test } from 'vitest';
import type { WarmStartSpec } from '../../../../core/spec.ts';
import { warmStart } from '../../../../core/training/warm-start.ts';
import type { WarmStartState } from '../../../../core/training/warm-start.ts';
import { stepReport } from '../../../../workflows/message-shapes.ts';
import {
  arm,
  checkpoint,
  go,
  optimizer,
  reward,
  sampling,
  ScriptedTraining,
  stopAfter,
} from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

const spec: WarmStartSpec = {
  arms: [arm(1), arm(2)],
  minibatch: 16,
  updatesPerRound: 10,
  maxRounds: 4,
  optimizer,
  graduation: { successAtLeast: 0.4, tasksPerArm: 50 },
};

async function run(
  script: Script,
  gate: (state: WarmStartState) => Promise<'go' | 'stop'> = go,
  from: WarmStartState | null = null,
) {
  const ports = new ScriptedTraining(script);
  const retention = { keepLast: 1, keepBest: 0, keepEvery: 0 };
  const input = {
    spec: { run: 'run', seed: 1, sampling, reward, warmStart: spec, retention },
    checkpoint: checkpoint('initial'),
  };
  return { ports, result: await warmStart(ports, input, from, gate) };
}

test('goes on round by round until every arm succeeds now and then', async () => {
  const { ports, result } = await run({ heldOut: [0.1, 0.3, 0.5] });
  expect(result).toEqual({
    checkpoint: checkpoint('warm-start-3', 3),
    ready: true,
    rounds: 3,
  });
  expect(ports.demonstrationRounds.map(({ round, count }) => [round, count])).toEqual([
    [1, 160],
    [2, 160],
    [3, 160],
  ]);
  expect(ports.trained.map(({ parent }) => parent.weights)).toEqual([
    'initial',
    'warm-start-1',
    'warm-start-2',
  ]);
  expect(ports.trained.map(({ resetOptimizer }) => resetOptimizer)).toEqual([true, false, false]);
  expect(ports.evaluations.every(({ tasks, split }) => tasks === 100 && split === 'heldout')).toBe(true);
});

test('asks when its rounds are used up, and does what is answered', async () => {
  const more = await run({
    heldOut: [0.1, 0.1, 0.1, 0.1, 0.1, 0.5],
    decisions: ['more-rounds'],
  });
  expect(more.ports.questions).toMatchObject([
    {
      reason: 'the warm start did not graduate in 4 rounds: not every level succeeds 40.0 % of the time',
      answers: [
        { answer: 'more-rounds', effect: 'give the warm start 4 more round(s)' },
        { answer: 'advance', effect: 'go on to RL with the model as it is' },
        { answer: 'stop', effect: 'end the run with its checkpoint' },
      ],
    },
  ]);
  expect(more.result).toMatchObject({ ready: true, rounds: 6 });
  expect(more.ports.reports.map(({ maxSteps }) => maxSteps)).toEqual([4, 4, 4, 4, 8, 8]);

  const again = await run({ heldOut: [0.1], decisions: ['more-rounds', 'advance'] });
  expect(again.result).toMatchObject({ ready: true, rounds: 8 });
  const stopped = await run({ heldOut: [0.1], decisions: ['stop'] });
  expect(stopped.result).toMatchObject({ ready: false, rounds: 4 });
});

test('stops with what it has', async () => {
  const { result } = await run({ heldOut: [0.1] }, stopAfter(2));
  expect(result).toEqual({
    checkpoint: checkpoint('warm-start-2', 2),
    ready: false,
    rounds: 2,
  });
});

test('goes on from a carried state without resetting the optimizer', async () => {
  const from = { round: 2, maxRounds: 4, checkpoint: checkpoint('warm-start-2', 2) };
  const { ports, result } = await run({ heldOut: [0.5] }, go, from);
  expect(result).toMatchObject({ ready: true, rounds: 3 });
  expect(ports.trained).toMatchObject([{ stageStep: 3, resetOptimizer: false, parent: from.checkpoint }]);
});

test('asks when nothing could be judged, rather than training on blindly', async () => {
  const { ports, result } = await run({ heldOut: [null, 0.5], decisions: ['continue'] });
  expect(ports.questions.map(({ reason }) => reason)).toEqual([
    'no held-out episode of round 1 could be judged: 100 failed',
  ]);
  expect(ports.questions[0]!.answers.map(({ answer }) => answer)).toEqual(['continue', 'advance', 'stop']);
  expect(result).toMatchObject({ ready: true, rounds: 2 });
  // The curriculum takes in what such a round reports, with the incidents that say why.
  const manifest = { key: 'manifest.json', sha256: '0'.repeat(64), bytes: 1 };
  for (const report of ports.reports) {
    const reported = { ...report, checkpoint: { ...report.checkpoint, manifest } };
    expect(stepReport({ ...reported, secondsSince: report.seconds }, 'report')).toBeNull();
  }
  const stopped = await run({ heldOut: [null], decisions: ['stop'] });
  expect(stopped.result).toMatchObject({ ready: false, rounds: 1 });
});
