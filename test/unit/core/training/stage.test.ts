import { algorithmWith } from '../../../support/algorithm.ts';
import { describe, expect, test } from 'vitest';
import { noOutcomes } from '../../../../core/episode/outcome.ts';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import type { GroupResult } from '../../../../core/requests/verification.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import {
  checkpoint,
  go,
  ScriptedTraining,
  stageInput,
  stageSpec,
  stopAfter,
  unsolved,
} from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

const { checkpoint: warm, reference } = stageInput();

async function train(
  script: Script,
  over: Partial<RlStageSpec> = {},
  gate: (state: StageState) => Promise<'go' | 'stop'> = go,
  from: StageState | null = null,
) {
  const ports = new ScriptedTraining(script);
  const result = await trainStage(ports, stageInput(over), from, gate);
  return { ports, result };
}

test('the policy judges itself in the stages that say so, by the weights that sample or by those of the reference', async () => {
  const judge = {
    rubric: 'One point for each thing that is right.',
    samples: 2,
    temperature: 1,
    maxTokens: 20,
  };
  const judgesOf = async (reward: object): Promise<(string | undefined)[]> => {
    const ports = new ScriptedTraining({ heldOut: [0.5, 0.96] });
    const { spec, ...input } = stageInput();
    await trainStage(ports, { ...input, spec: { ...spec, reward: { ...spec.reward, ...reward } } }, null, go);
    return ports.rollouts.map(([group]) => group!.judge?.checkpoint.weights);
  };
  expect(await judgesOf({ judge: { ...judge, by: 'policy' } })).toEqual(['warm-start-3', 'rl-1']);
  expect(await judgesOf({ judge: { ...judge, by: 'reference' } })).toEqual(['reference', 'reference']);
  expect(await judgesOf({ judge: { ...judge, by: 'policy', stages: ['other'] } })).toEqual([
    undefined,
    undefined,
  ]);
});

const reasons = (ports: ScriptedTraining): string[] => ports.questions.map(({ reason }) => reason);

/** A group of which no episode came to an end, as the durable run reports it. */
const lost = ({ tasks, samples }: GroupRequest): Partial<GroupResult> => ({
  trajectories: null,
  failure: 'no such checkpoint',
  arms: [],
  outcomes: { ...noOutcomes(), failed: tasks.length * samples },
  rewardSum: 0,
  rewardCount: 0,
});

describe('a stage', () => {
  test('trains from step to step on what the last step made, and graduates with its newest checkpoint', async () => {
    const { ports, result } = await train({ heldOut: [0.5, 0.7, 0.96] });
    expect(result).toMatchObject({ end: 'graduated', checkpoint: checkpoint('rl-3', 6), steps: 6 });
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual(['warm-start-3', 'rl-1', 'rl-2']);
    expect(ports.rollouts.map(([group]) => group!.checkpoint.weights)).toEqual([
      'warm-start-3',
      'rl-1',
      'rl-2',
    ]);
    expect(ports.trained.map(({ step, stageStep }) => [step, stageStep])).toEqual([
      [4, 1],
      [5, 2],
      [6, 3],
    ]);
    expect(ports.trained.map(({ resetOptimizer }) => resetOptimizer)).toEqual([true, false, false]);
    expect(ports.reports.at(-1)).toMatchObject({ note: expect.stringMatching(/^graduate: /) as string });
  });

  test('measures what it has just trained, on held-out tasks under a name of its own', async () => {
    const { ports } = await train(
      { heldOut: [0.5] },
      { maxSteps: 5, graduation: { ...stageSpec.graduation, everySteps: 2 } },
    );
    expect(ports.evaluations.map(({ step, checkpoint }) => [step, checkpoint.weights])).toEqual([
      [2, 'rl-2'],
      [4, 'rl-4'],
      // The last step, so that nothing ends unmeasured.
      [5, 'rl-5'],
    ]);
    expect(ports.evaluations.every(({ split, name }) => split === 'heldout' && name !== 'rl')).toBe(true);
  });

  test('asks for the reference only where a KL is measured', async () => {
    const without = await train({ heldOut: [0.5] }, { maxSteps: 1 });
    expect(without.ports.trained[0]!.reference).toBeNull();
    const withKl = algorithmWith({ beta: 0.01 });
    const { ports } = await train({ heldOut: [0.5] }, { maxSteps: 1, ...withKl });
    expect(ports.trained[0]!.reference).toEqual(reference);
  });

  test('that has done its steps ends with the best checkpoint, not the last', async () => {
    const { result } = await train({ heldOut: [0.5, 0.8, 0.7] }, { maxSteps: 3 });
    expect(result).toMatchObject({ end: 'exhausted', checkpoint: checkpoint('rl-2', 5), steps: 6 });
  });

  test('that never sees a success does not end as if it had learnt', async () => {
    const arm = stageSpec.arms[0]!;
    const failing = (): Partial<GroupResult> => ({ arms: [{ arm, successes: 0, trials: 8 }] });
    const { result } = await train({ heldOut: [0, 0], group: failing }, { maxSteps: 2 });
    expect(result).toMatchObject({
      end: 'no-success',
      reason: expect.stringContaining('2 steps are done and no episode of them succeeded') as string,
    });
    const measured = await train({ heldOut: [0, 0.1], group: failing }, { maxSteps: 2 });
    expect(measured.result.end).toBe('exhausted');
  });

  test('that no longer gains advances with the best checkpoint', async () => {
    const { ports, result } = await train({ heldOut: [0.6, 0.8, 0.79, 0.78, 0.77] });
    expect(result).toMatchObject({ end: 'plateau', checkpoint: checkpoint('rl-2', 5), steps: 7 });
    expect(reasons(ports)).toEqual([]);
  });

  test('may stop, or ask, at a plateau instead', async () => {
    const flat = [0.6, 0.6, 0.6, 0.6];
    const stopping = await train({ heldOut: flat }, { plateau: { ...stageSpec.plateau, action: 'stop' } });
    expect(stopping.result.end).toBe('stopped');
    const asking = await train(
      { heldOut: flat, decisions: ['continue', 'advance'] },
      { plateau: { ...stageSpec.plateau, action: 'ask' } },
    );
    // Asked at step 4, and again after four more evaluations without a gain.
    expect(asking.ports.questions).toHaveLength(2);
    expect(asking.result).toMatchObject({ end: 'plateau', steps: 3 + 8 });
  });

  test('stopped by a person ends with its newest checkpoint and trains no more', async () => {
    const { ports, result } = await train({ heldOut: [0.5] }, {}, stopAfter(2));
    expect(result).toMatchObject({ end: 'stopped', checkpoint: checkpoint('rl-2', 5), steps: 5 });
    expect(ports.trained).toHaveLength(2);
  });

  test('that cannot trust what was sampled trains nothing in that step, and asks', async () => {
    const { ports, result } = await train(
      { heldOut: [0.5, 0.6, 0.96], gapAt: 2, decisions: ['continue'] },
      { maxSteps: 4 },
    );
    expect(reasons(ports)).toEqual(['step 2 was not trained: 0.3 nats a token']);
    expect(ports.askedBy).toEqual([{ stage: 'rl', stageStep: 2 }]);
    // The third step begins with what the first has made, and its samples are new.
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual([
      'warm-start-3',
      'rl-1',
      'rl-1',
      'rl-3',
    ]);
    expect(ports.rollouts.map(([group]) => group!.step)).toEqual([1, 2, 3, 4]);
    expect(ports.facts[1]).toMatchObject({ learner: null });
    expect(result).toMatchObject({ end: 'graduated' });
  });

  test('goes on from a carried state as if it had never been away', async () => {
    const script = () => ({ heldOut: [0.5, 0.55, 0.6, 0.65, 0.96] });
    const whole = await train(script());
    const states: StageState[] = [];
    const until = async (state: StageState) => {
      states.push(state);
      return states.length <= 2 ? ('go' as const) : ('stop' as const);
    };
    const first = await train(script(), {}, until);
    // As continue-as-new carries it: through JSON.
    const carried = JSON.parse(JSON.stringify(states.at(-1))) as StageState;
    const second = await train({ heldOut: script().heldOut.slice(2) }, {}, go, carried);
    expect(second.result).toEqual(whole.result);
    expect([...first.ports.rollouts, ...second.ports.rollouts]).toEqual(whole.ports.rollouts);
    expect([...first.ports.trained, ...second.ports.trained]).toEqual(whole.ports.trained);
  });
});

describe('a step', () => {
  test('that teaches nothing trains nothing, and keeps checkpoint and optimizer', async () => {
    const { ports } = await train({ heldOut: [0.5], nothingToLearn: [1, 3] }, { maxSteps: 4 });
    expect(ports.trained.map(({ stageStep }) => stageStep)).toEqual([2, 4]);
    // The first step that trains is the one that starts cold.
    expect(ports.trained.map(({ resetOptimizer }) => resetOptimizer)).toEqual([true, false]);
    expect(ports.rollouts.map(([group]) => group!.checkpoint.weights)).toEqual([
      'warm-start-3',
      'warm-start-3',
      'rl-2',
      'rl-2',
    ]);
    expect(ports.reports[0]).toMatchObject({ metrics: null, checkpoint: warm, degenerateGroups: 4 });
  });

  test('of which some groups failed goes on with the others', async () => {
    const { ports } = await train(
      { heldOut: [0.5], group: (group) => (group.group === 0 ? lost(group) : {}) },
      { maxSteps: 2 },
    );
    expect(reasons(ports)).toEqual([]);
    expect(ports.trained).toHaveLength(2);
    expect(ports.reports[0]).toMatchObject({ meanReward: 0.5, outcomes: { scored: 24, failed: 8 } });
  });

  test('draws the tasks again that were failed, and those not yet drawn stay in line', async () => {
    const failing = (group: GroupRequest) => (group.group < 2 ? unsolved(group) : {});
    const { ports } = await train({ heldOut: [0.5], group: failing }, { maxSteps: 3 });
    const tasks = ports.rollouts.map((groups) => groups.map((group) => group.tasks[0]!));
    expect(tasks[1]![0]).toEqual(tasks[0]![0]);
    expect(ports.rollouts.map((groups) => groups.map(({ retries }) => retries))).toEqual([
      [0, 0, 0, 0],
      [1, 0, 0, 0],
      [1, 0, 0, 0],
    ]);
    expect(tasks[2]![0]).toEqual(tasks[0]![1]);
  });

  test('of which every group failed asks a person with the reason, and loses nothing', async () => {
    const { ports, result } = await train(
      {
        heldOut: [0.5],
        group: (group) => (group.step === 2 ? lost(group) : unsolved(group)),
        decisions: ['continue'],
      },
      { maxSteps: 3 },
    );
    expect(reasons(ports)).toEqual(['every rollout group of step 2 failed: no such checkpoint']);
    expect(ports.reports[1]).toMatchObject({ meanReward: null, trainSuccess: null });
    expect(result).toMatchObject({ end: 'exhausted', steps: 6 });
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual(['warm-start-3', 'rl-1']);
    // The failure of step 1 that step 2 had drawn again is drawn again in step 3.
    const retried = ports.rollouts.map((groups) => groups[0]!.tasks[0]!);
    expect(retried[1]).toEqual(ports.rollouts[0]![0]!.tasks[0]);
    expect(retried[2]).toEqual(retried[1]);
  });

  test('of which every episode failed, though no group did, asks as well', async () => {
    const broken: Partial<GroupResult> = {
      arms: [],
      outcomes: { ...noOutcomes(), failed: 7, abstained: 1 },
      rewardSum: 0,
      rewardCount: 0,
    };
    const { ports, result } = await train({ heldOut: [0.5], group: () => broken, decisions: ['stop'] });
    expect(reasons(ports)).toEqual(['no episode of step 1 could be judged: 4 abstained, 28 failed']);
    expect(result).toMatchObject({ end: 'stopped', checkpoint: warm });
    expect(ports.trained).toEqual([]);
  });

  test('whose evaluation judged nothing is no success of zero: it asks, and forgets nothing', async () => {
    const { ports, result } = await train({ heldOut: [0.8, null, 0.8, 0.96], decisions: ['continue'] });
    expect(reasons(ports)).toEqual(['no held-out episode of step 2 could be judged: 200 failed']);
    expect(result).toMatchObject({ end: 'graduated', checkpoint: checkpoint('rl-4', 7) });
  });
});

describe('a collapse', () => {
  test('rolls back to the best checkpoint with cold moments and a lower rate', async () => {
    const { ports, result } = await train({ heldOut: [0.8, 0.2, 0.81, 0.1, 0.96] });
    expect(result.end).toBe('graduated');
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual([
      'warm-start-3',
      'rl-1',
      'rl-1',
      'rl-3',
      'rl-3',
    ]);
    expect(ports.trained.map(({ resetOptimizer }) => resetOptimizer)).toEqual([
      true,
      false,
      true,
      false,
      true,
    ]);
    expect(ports.trained.map(({ optimizer }) => optimizer.learningRate)).toEqual([
      0.01, 0.01, 0.005, 0.005, 0.0025,
    ]);
    // Steps count on, so that no checkpoint takes the name of the one that was given up.
    expect(ports.trained.map(({ step }) => step)).toEqual([4, 5, 6, 7, 8]);
  });

  test('after the last roll-back asks a person', async () => {
    const { ports, result } = await train({ heldOut: [0.8, 0.2, 0.2, 0.2], decisions: ['advance'] });
    expect(reasons(ports)).toEqual([expect.stringContaining('fell to 20.0 %')]);
    expect(result).toMatchObject({ end: 'plateau', checkpoint: checkpoint('rl-1', 4) });
  });

  test('lets a person roll back once more, or go on from where it is', async () => {
    const collapse = { ...stageSpec.collapse, maxRollbacks: 0 };
    const { ports } = await train(
      { heldOut: [0.8, 0.2, 0.2, 0.2, 0.96], decisions: ['continue', 'rollback', 'continue'] },
      { collapse },
    );
    expect(ports.questions).toHaveLength(3);
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual([
      'warm-start-3',
      'rl-1',
      'rl-2',
      'rl-1',
      'rl-4',
    ]);
  });

  test('is asked about with the answers that can be given where the stage stands', async () => {
    const collapse = { ...stageSpec.collapse, maxRollbacks: 0 };
    const answers = async (script: Script, changed: Partial<RlStageSpec> = {}) => {
      const { ports } = await train({ decisions: ['advance'], ...script }, { collapse, ...changed });
      return Object.fromEntries(ports.questions[0]!.answers.map(({ answer, effect }) => [answer, effect]));
    };
    expect(await answers({ heldOut: [0.8, 0.2] })).toEqual({
      continue: 'train on from the newest checkpoint; 8 of 10 steps are left',
      rollback:
        'go back to the best checkpoint, that of step 1, and train on from there with 0.5 times the learning rate',
      advance:
        'end this stage with its best checkpoint, and go on to the next one, or after the last to the report',
      stop: 'end the run with its best checkpoint of this stage',
    });
    // Nothing was trained yet: there is nothing to go back to.
    const first = await answers({ heldOut: [0.8], group: lost });
    expect(Object.keys(first)).toEqual(['continue', 'advance', 'stop']);
    // The stage has no steps left to train.
    const last = await answers({ heldOut: [0.8, 0.2] }, { maxSteps: 2 });
    expect(Object.keys(last)).toEqual(['advance', 'stop']);
  });

  test('of the entropy before any measurement goes back to where the stage began', async () => {
    const { ports } = await train(
      { heldOut: [0.5], entropy: (step) => (step === 1 ? 0.01 : 1) },
      {
        maxSteps: 2,
        collapse: { ...stageSpec.collapse, entropyBelow: 0.05 },
        graduation: { ...stageSpec.graduation, everySteps: 5 },
      },
    );
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual(['warm-start-3', 'warm-start-3']);
  });

  test('is seen when every group is degenerate, so that nothing is learnt and nobody else measures', async () => {
    const { ports } = await train(
      {
        heldOut: [0.5],
        entropy: (step) => (step >= 2 ? 0.001 : 1),
        nothingToLearn: [2, 3],
        decisions: ['stop'],
      },
      {
        collapse: { ...stageSpec.collapse, entropyBelow: 0.05, maxRollbacks: 1 },
        graduation: { ...stageSpec.graduation, everySteps: 10 },
      },
    );
    expect(ports.reports.map(({ metrics, entropy }) => [metrics === null, entropy])).toEqual([
      [false, 1],
      [true, 0.001],
      [true, 0.001],
    ]);
    expect(ports.rollouts.map(([group]) => group!.checkpoint.weights)).toEqual([
      'warm-start-3',
      'rl-1',
      'warm-start-3',
    ]);
    expect(ports.questions.map(({ reason }) => reason)).toEqual(['entropy 0.0010 nats is below 0.05']);
  });

  test('of the entropy does not come back to the policy that collapsed, however well it does', async () => {
    const { ports } = await train(
      { heldOut: [0.5, 0.8, 0.5], entropy: (step) => (step === 2 ? 0.01 : 1) },
      { maxSteps: 3, collapse: { ...stageSpec.collapse, entropyBelow: 0.05 } },
    );
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual(['warm-start-3', 'rl-1', 'rl-1']);
  });
});

test('policies that stages after it name are never deleted', async () => {
  const ports = new ScriptedTraining({ heldOut: [0.5] });
  const policies = [checkpoint('base'), checkpoint('earlier')];
  await trainStage(ports, { ...stageInput({ maxSteps: 2 }), policies }, null, go);
  expect(ports.retained).toHaveLength(2);
  for (const { pinned } of ports.retained) expect(pinned).toEqual(expect.arrayContaining(policies));
});

test('what a stage may still need is never deleted: the reference, the newest, and what it would roll back to', async () => {
  const { ports } = await train(
    { heldOut: [0.8, 0.6, 0.7], entropy: (step) => (step === 1 ? 0.01 : 1) },
    { maxSteps: 3, collapse: { ...stageSpec.collapse, entropyBelow: 0.05 } },
  );
  const pinned = ports.retained.map((request) => request.pinned.map(({ weights }) => weights));
  expect(pinned).toEqual([
    ['reference', 'rl-1', 'warm-start-3'],
    ['reference', 'rl-2', 'rl-2'],
    ['reference', 'rl-3', 'rl-3'],
  ]);
});
