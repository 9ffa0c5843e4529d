import { describe, expect, test } from 'vitest';
import type { Rules } from '../../../../core/diagnosis/act.ts';
import { noBehaviour } from '../../../../core/training/behaviour.ts';
import type { BehaviourCounts } from '../../../../core/training/step-facts.ts';
import { initialStageState, trainStage } from '../../../../core/training/stage.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput, stageSpec, stopAfter } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';
import { settingOf } from '../../../../core/training/act-on-alarms.ts';
import { algorithmWith } from '../../../support/algorithm.ts';

// A stage whose episodes repeat their calls from step 21 on, which is named at its 24th: four of the latest eight
// steps make the median a third, the limit is a fifth.

const ONSET = 20;
const NAMED = 24;

const behaving = (faults: Partial<BehaviourCounts>) => ({
  behaviour: {
    ...noBehaviour(),
    episodes: 8,
    rewardGroups: 1,
    rewardVariance: 0.25,
    calls: { calculator: 10 },
    ...faults,
  },
});

const looping: Script = {
  heldOut: [0.5],
  group: ({ step }) => behaving({ repeatedCalls: step > ONSET ? 9 : 0 }),
};

const stageWith = (rules: Partial<Rules>, maxSteps = 30) =>
  stageInput({
    maxSteps,
    diagnosis: { ...stageSpec.diagnosis, ...rules },
    graduation: { ...stageSpec.graduation, everySteps: 4, successAtLeast: 0.9 },
    plateau: { ...stageSpec.plateau, evaluations: 100 },
  });

/** The run of such a stage, and the number of the call after which its alarm is there. */
async function runWith(rules: Partial<Rules>, script: Partial<Script> = {}) {
  const training = new ScriptedTraining({ ...looping, ...script });
  const result = await trainStage(training, stageWith(rules), null, go);
  return { training, result };
}

describe('an alarm of a stage', () => {
  test('is in the facts of its step and is told, and changes nothing unless the spec says so', async () => {
    const { training, result } = await runWith({});
    const raised = training.facts.filter(({ alarms }) => alarms.length > 0);
    expect(raised.map(({ stageStep, alarms }) => [stageStep, alarms[0]!.name, alarms[0]!.actions])).toEqual([
      [NAMED, 'loops', []],
    ]);
    expect(training.reports.filter(({ alarms }) => alarms).map(({ stageStep }) => stageStep)).toEqual([
      NAMED,
    ]);
    // It stands on, which the last step of the stage says.
    const standing = training.facts.filter((facts) => facts.standing?.join() === 'loops');
    expect(standing.map(({ stageStep }) => stageStep)).toEqual(
      Array.from({ length: training.facts.length - NAMED + 1 }, (_, i) => NAMED + i),
    );
    expect(training.reports.at(-1)).toMatchObject({ standing: ['loops'] });
    expect(training.facts[NAMED - 2]).not.toHaveProperty('standing');
    expect(result.end).toBe('exhausted');
    const settings = training.rollouts.map(([request]) => request!.sampling.temperature);
    expect(new Set(settings)).toEqual(new Set([1]));
  });

  test('explores, slows down and filters from the next step on', async () => {
    const { training } = await runWith({ loops: ['explore', 'slow-down', 'filter'] });
    const temperatures = training.rollouts.map(([request]) => request!.sampling.temperature);
    expect(temperatures[NAMED - 1]).toBe(1);
    expect(temperatures[NAMED]).toBeCloseTo(1.2, 12);
    const { objective, optimizer } = training.trained[NAMED]!;
    expect(objective).toMatchObject({ temperature: 1.2 });
    expect(optimizer.learningRate).toBeCloseTo(stageSpec.optimizer.learningRate / 2, 12);
    expect(training.batches[NAMED - 1]).not.toHaveProperty('keepGroups');
    expect(training.batches[NAMED]).toMatchObject({ keepGroups: 0.5 });
    // What it is measured by stays what the spec says.
    expect(training.evaluations.every(({ sampling }) => sampling.temperature === 1)).toBe(true);
    expect(training.facts[NAMED]!.adjusted).toEqual({
      temperatureFactor: expect.closeTo(1.2, 12),
      learningRateFactor: 0.5,
      keepGroups: 0.5,
    });
  });

  test('rolls back to the last healthy checkpoint, which was kept', async () => {
    const { training } = await runWith({ loops: ['rollback'] });
    // Measured at 4, 8, … Of 12 it was known at 20 that eight steps without an alarm lie behind it.
    const target = 'rl-12';
    expect(training.trained[NAMED]!.parent.weights).toBe(target);
    expect(training.trained[NAMED]).toMatchObject({ resetOptimizer: true });
    expect(training.facts[NAMED - 1]!.decision).toMatchObject({ kind: 'alarm', action: 'rollback' });
    const pinned = training.retained.map((request) => request.pinned.map(({ weights }) => weights));
    expect(pinned.at(-1)).toContain(target);
    // What the policy left behind was like does not count for the one that it went back to.
    const again = training.facts.slice(NAMED).find(({ alarms }) => alarms.length > 0);
    expect(again?.stageStep ?? Infinity).toBeGreaterThanOrEqual(NAMED + 5);
  });

  test('asks a person, who sees the figures and where a roll-back goes', async () => {
    const { training } = await runWith({ loops: ['ask'] }, { decisions: ['continue'] });
    expect(training.questions).toHaveLength(1);
    const [{ reason, answers }] = training.questions as [(typeof training.questions)[0]];
    expect(reason).toMatch(/^loops: part of calls that the episode has made before, with the same result: /);
    expect(answers.find(({ answer }) => answer === 'rollback')!.effect).toContain(
      'the last healthy checkpoint, that of step 12',
    );
  });

  test('asks once no roll-back is left', async () => {
    const training = new ScriptedTraining({ ...looping, decisions: ['stop'] });
    const input = stageWith({ loops: ['rollback'] }, 60);
    const collapse = { ...input.stage.collapse, maxRollbacks: 1 };
    const { end } = await trainStage(training, { ...input, stage: { ...input.stage, collapse } }, null, go);
    expect([end, training.questions.length]).toEqual(['stopped', 1]);
  });

  test('does not keep a stage from graduating', async () => {
    const training = new ScriptedTraining({ ...looping, heldOut: [0.5, 0.5, 0.5, 0.5, 0.5, 1] });
    const { end } = await trainStage(training, stageWith({ loops: ['ask'] }), null, go);
    expect(end).toBe('graduated');
    expect(training.facts.at(-1)).toMatchObject({ stageStep: NAMED, alarms: [{ name: 'loops' }] });
  });
});

test('a stage that is carried elsewhere as JSON after any step does the same', async () => {
  const rules: Partial<Rules> = { loops: ['explore', 'rollback'] };
  const whole = await runWith(rules);
  for (const at of [10, 22, 24, 26]) {
    const first = new ScriptedTraining(looping);
    let state: StageState = initialStageState(stageWith(rules));
    const stop = stopAfter(at);
    await trainStage(first, stageWith(rules), null, async (now) => {
      state = JSON.parse(JSON.stringify(now)) as StageState;
      return stop();
    });
    const second = new ScriptedTraining(looping);
    await trainStage(second, stageWith(rules), state, go);
    const done = [...first.trained, ...second.trained].map(({ parent, objective }) => [
      parent.weights,
      objective,
    ]);
    expect(done).toEqual(whole.training.trained.map(({ parent, objective }) => [parent.weights, objective]));
  }
});

test('diagnoses are told what is clipped and what the KL is measured to', () => {
  const of = (written: Parameters<typeof algorithmWith>[0]) => {
    const { clipsSequences, klTo } = settingOf(stageInput(algorithmWith(written)), 1, undefined);
    return [clipsSequences, klTo];
  };
  expect(of({ kind: 'grpo' })).toEqual([false, 'reference']);
  expect(of({ kind: 'gspo' })).toEqual([true, 'reference']);
  expect(of({ kind: 'opd', teachers: [{ from: 'teacher' }] })).toEqual([false, 'teachers']);
});

test('diagnoses are told how far an asynchronous stage may be ahead, and for how many steps what is in flight is enough', () => {
  const of = (collect: RlStageSpec['collect']) =>
    settingOf(stageInput({ collect, groupsPerStep: 4 }), 1, undefined).asynchronous;
  expect(of({ kind: 'asynchronous', maxStaleness: 2, inFlight: 6 })).toEqual({
    maxStaleness: 2,
    inFlight: 1.5,
  });
  expect(of({ kind: 'asynchronous', maxStaleness: 2 })).toEqual({ maxStaleness: 2, inFlight: Infinity });
  expect(of({ kind: 'asynchronous', maxStaleness: 0 })).toBeNull();
  // All samples of a pipelined step are as old as its lag.
  expect(of({ kind: 'pipelined', lag: 2 })).toBeNull();
});

test('diagnoses are told what must differ for a method to learn, and until when the temperature is on its way', () => {
  const of = (written: Parameters<typeof algorithmWith>[0]) =>
    settingOf(stageInput(algorithmWith(written)), 1, undefined).contrast;
  for (const kind of ['grpo', 'dapo', 'rloo', 'gigpo', 'dpo', 'starpo-s'] as const)
    expect(of({ kind })).toBe('task');
  for (const kind of ['ppo', 'vapo', 'vtrace', 'rft', 'kto'] as const) expect(of({ kind })).toBe('step');
  expect(of({ kind: 'reinforce++' })).toBe('task');
  expect(of({ kind: 'reinforce++', baseline: 'none' })).toBe('step');
  expect(of({ kind: 'hindsight' })).toBe('none');
  expect(of({ kind: 'opd', teachers: [{ from: 'teacher' }] })).toBe('none');
  const cooled = stageInput({
    exploration: { temperature: { from: 1.5, to: 0.5, steps: 10 }, toolChoice: 0 },
  });
  const moves = (step: number) => settingOf(cooled, step, undefined).temperatureMoves;
  expect([moves(1), moves(10), moves(11)]).toEqual([true, true, false]);
});

test('a checkpoint that an alarm came soon after is no healthy one, though that alarm is gone by the next measurement', async () => {
  // Tools that there are not are called in the steps 13 to 17; loops begin at 37, whose alarm goes back.
  const training = new ScriptedTraining({
    heldOut: [0.3, 0.6, 0.5],
    group: ({ step }) =>
      behaving({ unknownTools: step > 12 && step <= 17 ? 9 : 0, repeatedCalls: step > 36 ? 9 : 0 }),
  });
  const input = stageWith({ loops: ['rollback'] }, 42);
  const graduation = { ...input.stage.graduation, everySteps: 12 };
  await trainStage(training, { ...input, stage: { ...input.stage, graduation } }, null, go);
  const raised = training.facts.flatMap(({ stageStep, alarms }) =>
    alarms.map(({ name }) => [name, stageStep]),
  );
  expect(raised.slice(0, 2)).toEqual([
    ['tool-hallucination', 16],
    ['loops', 40],
  ]);
  // That of step 12 had four steps without an alarm behind it, and that of 36 as many: the best measured one is left.
  expect(training.trained[40]!.parent.weights).toBe('rl-24');
});

test('groups that fail as a whole have no contrast for a method that goes by success, though shaping pays them differently', async () => {
  const named = async (filter: 'correctness' | 'reward', mixedGroups: number) => {
    const training = new ScriptedTraining({
      heldOut: [0.1],
      group: () => behaving({ rewardGroups: 10, mixedGroups, rewardVariance: 0.01 }),
    });
    const input = stageInput({
      ...algorithmWith({ kind: 'dapo', filter }),
      maxSteps: 12,
      graduation: { ...stageSpec.graduation, everySteps: 4, successAtLeast: 0.9 },
    });
    await trainStage(training, input, null, go);
    return training.facts.flatMap(({ alarms }) => alarms.map(({ name }) => name));
  };
  expect(await named('correctness', 0)).toEqual(['no-contrast']);
  expect(await named('correctness', 10)).toEqual([]);
  expect(await named('reward', 0)).toEqual([]);
});
