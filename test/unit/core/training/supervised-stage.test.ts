import { describe, expect, test } from 'vitest';
import type { SupervisedStageSpec } from '../../../../core/schema/stages/supervised.ts';
import { noneSolved } from '../../../../core/training/how-solved.ts';
import type { StepFacts } from '../../../../core/training/step-facts.ts';
import { superviseStage } from '../../../../core/training/supervised-stage.ts';
import type { SupervisedInput, SupervisedState } from '../../../../core/training/supervised-stage.ts';
import { stepReport } from '../../../../workflows/control/message-shapes.ts';
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

const stage: SupervisedStageSpec = {
  kind: 'supervised',
  name: 'warm-start',
  arms: [arm(1), arm(2)],
  minibatch: 16,
  updatesPerRound: 10,
  maxRounds: 4,
  optimizer,
  graduation: { successAtLeast: 0.4, tasksPerLevel: 50, unjudgedAtMost: 0.02 },
};

async function run(
  script: Script,
  gate: (state: SupervisedState) => Promise<'go' | 'stop'> = go,
  from: SupervisedState | null = null,
  over: Partial<SupervisedInput> = {},
) {
  const ports = new ScriptedTraining(script);
  const retention = { keepLast: 1, keepBest: 0, keepEvery: 0 };
  const input = {
    spec: { run: 'run', seed: 1, sampling, reward, retention },
    stage,
    checkpoint: checkpoint('initial'),
    reference: null,
    stepsBefore: 0,
    shownBefore: { rounds: 0, tasks: 0 },
    ...over,
  };
  return { ports, result: await superviseStage(ports, input, from, gate) };
}

test('goes on round by round until every arm succeeds now and then', async () => {
  const { ports, result } = await run({ heldOut: [0.1, 0.3, 0.5] });
  expect(result).toEqual({
    end: 'graduated',
    reason: 'every level succeeds at least 40.0 % of the time',
    checkpoint: checkpoint('warm-start-3', 3),
    steps: 3,
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
      reason: 'warm-start did not graduate in 4 rounds: not every level succeeds 40.0 % of the time',
      answers: [
        { answer: 'more-rounds', effect: 'give the stage 4 more rounds' },
        { answer: 'advance', effect: 'go on to the next stage with the model as it is' },
        { answer: 'stop', effect: 'end the run with its checkpoint' },
      ],
    },
  ]);
  expect(more.result).toMatchObject({ end: 'graduated', steps: 6 });
  expect(more.ports.reports.map(({ maxSteps }) => maxSteps)).toEqual([4, 4, 4, 4, 8, 8]);
  const asked = { kind: 'stuck', action: 'ask', question: more.ports.questions[0] };
  expect(more.ports.facts[3]).toMatchObject({ rollout: null, batch: { sequences: 160 }, decision: asked });
  expect(more.ports.askedBy).toEqual([{ stage: 'warm-start', stageStep: 4 }]);
  expect(more.ports.facts.at(-1)!.decision).toMatchObject({ kind: 'graduate', question: null });

  const again = await run({ heldOut: [0.1], decisions: ['more-rounds', 'advance'] });
  expect(again.result).toMatchObject({ end: 'exhausted', steps: 8 });
  const stopped = await run({ heldOut: [0.1], decisions: ['stop'] });
  expect(stopped.result).toMatchObject({ end: 'stopped', steps: 4 });
});

test('stops with what it has', async () => {
  const { result } = await run({ heldOut: [0.1] }, stopAfter(2));
  expect(result).toEqual({
    end: 'stopped',
    reason: 'stopped by a person',
    checkpoint: checkpoint('warm-start-2', 2),
    steps: 2,
  });
});

test('goes on from a carried state without resetting the optimizer', async () => {
  const from = { round: 2, maxRounds: 4, checkpoint: checkpoint('warm-start-2', 2) };
  const { ports, result } = await run({ heldOut: [0.5] }, go, from);
  expect(result).toMatchObject({ end: 'graduated', steps: 3 });
  expect(ports.trained).toMatchObject([{ stageStep: 3, resetOptimizer: false, parent: from.checkpoint }]);
});

test('a later one counts on in the run, shows what nobody has shown, and keeps the reference', async () => {
  const { ports, result } = await run({ heldOut: [0.1, 0.5] }, go, null, {
    stage: { ...stage, name: 'polish' },
    reference: checkpoint('reference'),
    stepsBefore: 40,
    shownBefore: { rounds: 3, tasks: 480 },
  });
  expect(result).toMatchObject({ end: 'graduated', steps: 42 });
  expect(ports.demonstrationRounds).toMatchObject([
    { stage: 'polish', round: 1, shownBefore: { rounds: 3, tasks: 480 } },
    { stage: 'polish', round: 2, shownBefore: { rounds: 3, tasks: 480 } },
  ]);
  expect(ports.trained.map(({ stage, stageStep, step }) => [stage, stageStep, step])).toEqual([
    ['polish', 1, 41],
    ['polish', 2, 42],
  ]);
  expect(ports.trained[0]!.resetOptimizer).toBe(true);
  expect(ports.evaluations.map(({ name }) => name)).toEqual(['polish', 'polish']);
  expect(ports.retained.at(-1)!.pinned).toContainEqual(checkpoint('reference'));
});

test('keeps the policies that later stages go on with', async () => {
  const policies = [checkpoint('base')];
  const { ports } = await run({ heldOut: [0.2, 0.5] }, go, null, { policies });
  expect(ports.retained).toHaveLength(2);
  for (const { pinned } of ports.retained) expect(pinned).toContainEqual(checkpoint('base'));
});

test('asks when nothing could be judged, rather than training on blindly', async () => {
  const { ports, result } = await run({ heldOut: [null, 0.5], decisions: ['continue'] });
  expect(ports.questions.map(({ reason }) => reason)).toEqual([
    'no held-out episode of round 1 could be judged: 100 failed',
  ]);
  expect(ports.questions[0]!.answers.map(({ answer }) => answer)).toEqual(['continue', 'advance', 'stop']);
  expect(result).toMatchObject({ end: 'graduated', steps: 2 });
  // The curriculum takes in what such a round reports, with the incidents that say why.
  const manifest = { key: 'manifest.json', sha256: '0'.repeat(64), bytes: 1 };
  for (const report of ports.reports) {
    const reported = { ...report, checkpoint: { ...report.checkpoint, manifest } };
    expect(stepReport({ ...reported, secondsSince: report.seconds }, 'report')).toBeNull();
  }
  const stopped = await run({ heldOut: [null], decisions: ['stop'] });
  expect(stopped.result).toMatchObject({ end: 'stopped', steps: 1 });
});

describe('a stage that asks whether it is enough', () => {
  const enough = { lossFallBelow: 0.1, rounds: 2, formatAtLeast: 0.9, distinctAtLeast: 0.25, samples: 4 };
  const asking = { ...stage, graduation: { ...stage.graduation, successAtLeast: 0, enough } };
  const conduct = (compliant: number) => [{ ...noneSolved(), arm: arm(1), episodes: 400, compliant }];
  const distinct = (successes: number) => ({ successes, trials: 300 });
  const values = (facts: StepFacts) => facts.criteria!.map(({ value, met }) => [value, met]);

  test('ends when the loss no longer falls, the format is right, and samples still differ', async () => {
    const measured = { conduct: conduct(380), distinct: distinct(150) };
    const { ports, result } = await run({ heldOut: [0.1], losses: [4, 2, 1.9], measured }, go, null, {
      stage: asking,
    });
    expect(result).toMatchObject({
      end: 'graduated',
      steps: 3,
      reason:
        'every level succeeds at least 0.0 % of the time; loss falls by 5.0 %; format 95.0 %; diversity 50.0 %',
    });
    expect(ports.evaluations).toMatchObject(
      Array.from({ length: 3 }, () => ({ tasks: 100, samples: 4, distinct: true })),
    );
    const others = [
      [0.95, true],
      [0.5, true],
    ];
    expect(ports.facts.map(values)).toEqual([
      [[null, false], ...others],
      [[0.5, false], ...others],
      [[expect.closeTo(0.05), true], ...others],
    ]);
    expect(ports.reports.at(-1)!.criteria).toEqual(ports.facts.at(-1)!.criteria);
  });

  test.each([
    ['the format is wrong', conduct(350), distinct(150), 'format 87.5 %, at least 90.0 % wanted'],
    ['samples are alike', conduct(400), distinct(30), 'diversity 10.0 %, at least 25.0 % wanted'],
    [
      'nothing says how they differ',
      conduct(400),
      undefined,
      'diversity not known yet, at least 25.0 % wanted',
    ],
  ])('goes on while %s, and says so to the person that is asked', async (_, how, differ, why) => {
    const measured = { conduct: how, ...(differ && { distinct: differ }) };
    const script: Script = { heldOut: [0.1], losses: [1], measured, decisions: ['advance'] };
    const { ports } = await run(script, go, null, { stage: asking });
    expect(ports.questions[0]!.reason).toBe(`warm-start did not graduate in 4 rounds: ${why}`);
  });

  test('goes on from the losses that were carried', async () => {
    const measured = { conduct: conduct(400), distinct: distinct(300) };
    const from = { round: 2, maxRounds: 4, checkpoint: checkpoint('warm-start-2', 2), losses: [9, 1] };
    const { result } = await run({ heldOut: [0.1], losses: [0.99], measured }, go, from, { stage: asking });
    expect(result).toMatchObject({ end: 'graduated', steps: 3 });
  });
});

test('preferences are held to what the stage begins with, which is kept', async () => {
  const objective = {
    kind: 'dpo',
    variant: 'sigmoid',
    beta: 0.1,
    labelSmoothing: 0,
    temperature: 1,
    topK: 0,
  } as const;
  const given = { key: 'data/x.jsonl', sha256: 'x', bytes: 1 };
  const prefers = { ...stage, data: 'x.jsonl', given, objective };
  const { ports } = await run({ heldOut: [0.1, 0.5] }, go, null, { stage: prefers });
  expect(ports.demonstrationRounds[1]).toMatchObject({
    count: 160,
    given: { source: 'x.jsonl', ref: given, prefers: 'dpo' },
    updates: { minibatch: 32 },
  });
  expect(ports.trained).toMatchObject(
    Array.from({ length: 2 }, () => ({ objective, reference: checkpoint('initial') })),
  );
  expect(ports.retained[1]!.pinned).toContainEqual(checkpoint('initial'));
});

test('a stage that makes its data does so once, before its first round, and is shown nothing else', async () => {
  const synthesis = {
    kind: 'actions' as const,
    tasks: 8,
    alternatives: 3,
    weights: { first: 1, plans: 1, choices: 1 },
  };
  const over = { stage: { ...stage, synthesis } };
  const states: SupervisedState[] = [];
  const watched = async (state: SupervisedState): Promise<'go'> => {
    states.push(state);
    return 'go';
  };
  const { ports } = await run({ heldOut: [0.1, 0.3, 0.5] }, watched, null, over);
  expect(ports.synthesized).toMatchObject([{ run: 'run', stage: 'warm-start', how: synthesis, reward }]);
  expect(ports.synthesized[0]!.checkpoint).toEqual(checkpoint('initial'));
  const given = { source: 'made.jsonl', ref: { key: 'made.jsonl', sha256: 'm', bytes: 1 } };
  expect(ports.demonstrationRounds.map((round) => round.given)).toEqual([given, given, given]);
  expect(ports.facts.map(({ synthesis: facts }) => facts?.source)).toEqual(['m', 'm', 'm']);
  // Where it was carried elsewhere after a round, it goes on with what it has made.
  const later = await run({ heldOut: [0.5] }, go, states[1], over);
  expect(later.ports.synthesized).toEqual([]);
  expect(later.ports.demonstrationRounds.map((round) => round.given)).toEqual([given]);
  expect((await run({ heldOut: [0.5] })).ports.facts[0]).not.toHaveProperty('synthesis');
});
