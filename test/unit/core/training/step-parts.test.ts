import { describe, expect, test } from 'vitest';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { figuresOf } from '../../../../core/training/figures.ts';
import type { StepFacts } from '../../../../core/training/step-facts.ts';
import { noBehaviour } from '../../../../core/training/behaviour.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import { taskIndexes } from '../../../../core/training/task-draw.ts';
import { algorithmWith } from '../../../support/algorithm.ts';
import {
  checkpoint,
  go,
  sampling,
  ScriptedTraining,
  stageInput,
  stageSpec,
  unsolved,
} from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

async function train(written: Parameters<typeof algorithmWith>[0], script: Partial<Script>, maxSteps = 1) {
  const ports = new ScriptedTraining({ heldOut: [0.5], ...script });
  const over: Partial<RlStageSpec> = { ...algorithmWith(written, sampling), maxSteps };
  await trainStage(ports, stageInput(over), null, go);
  return ports;
}

/** So many tasks of each rollout tell their samples apart: by success, or by reward alone. */
const tellApart =
  (counts: readonly number[], by: 'success' | 'reward' = 'success'): NonNullable<Script['group']> =>
  ({ tasks, firstTask, group }: GroupRequest) => {
    const before = counts.slice(0, group).reduce((a, b) => a + b, 0);
    expect(firstTask).toBeGreaterThanOrEqual(before);
    return {
      behaviour: {
        ...noBehaviour(),
        rewardGroups: tasks.length,
        equalRewards: tasks.length - (counts[group] ?? 0),
        mixedGroups: by === 'success' ? (counts[group] ?? 0) : 0,
      },
    };
  };

describe('a step is refilled', () => {
  const dapo = { kind: 'dapo', maxRefills: 3 } as const;
  const tasksOf = (ports: ScriptedTraining) =>
    ports.rollouts.map((groups) => groups.flatMap(({ tasks }) => tasks));

  test('until as many tasks as it has tell their samples apart', async () => {
    // Four tasks, a workflow each; two of them teach, then one of the two that were drawn in their place, then one.
    const ports = await train(dapo, { group: tellApart([1, 0, 1, 0, 1, 0, 1]) });
    expect(tasksOf(ports).map(({ length }) => length)).toEqual([4, 2, 1]);
    expect(ports.rollouts.flat().map(({ group, firstTask }) => [group, firstTask])).toEqual(
      [0, 1, 2, 3, 4, 5, 6].map((place) => [place, place]),
    );
    expect(ports.batches[0]!.groups).toHaveLength(7);
  });

  test('also where only shaping tells the samples of a task apart, unless it goes by rewards', async () => {
    const shaped = { group: tellApart([1, 1, 1, 1], 'reward') };
    expect(tasksOf(await train(dapo, shaped)).map(({ length }) => length)).toEqual([4, 4, 4, 4]);
    expect(
      tasksOf(await train({ ...dapo, filter: 'reward' as const }, shaped)).map(({ length }) => length),
    ).toEqual([4]);
    // GRPO learns from any difference of rewards.
    const grpo = await train({ kind: 'grpo', maxRefills: 3 }, shaped);
    expect(tasksOf(grpo).map(({ length }) => length)).toEqual([4]);
  });

  test('as often as the method says at most, and learns from what there is', async () => {
    const ports = await train(dapo, { group: tellApart([]) });
    expect(tasksOf(ports).map(({ length }) => length)).toEqual([4, 4, 4, 4]);
    expect(ports.batches).toHaveLength(1);
  });

  test('with tasks that no other step of the run draws', async () => {
    const ports = await train(dapo, { group: tellApart([]) }, 5);
    const fresh = tasksOf(ports)
      .flat()
      .map(({ level, index }) => `${level}/${index}`);
    const [first] = ports.rollouts;
    expect(new Set(fresh).size).toBe(fresh.length);
    expect(
      Math.max(
        ...tasksOf(ports)
          .flat()
          .map(({ index }) => index),
      ),
    ).toBeLessThan(taskIndexes({ ...stageSpec, ...algorithmWith(dapo), maxSteps: 5 }));
    expect(first![0]!.tasks[0]!.index).toBe(16);
  });

  test('not while there is nothing to tell apart, be it that a tool is away or that verdicts are to come', async () => {
    const outage = await train(dapo, { group: () => ({ behaviour: noBehaviour(), rewardCount: 0 }) });
    expect(outage.rollouts).toHaveLength(1);
  });

  test('or not at all', async () => {
    const ports = await train({}, { group: tellApart([]) });
    expect(ports.rollouts).toHaveLength(1);
  });
});

test('a greedy sample of each task is a baseline, and counts nowhere else', async () => {
  const ports = await train({ kind: 'remax' }, {});
  const [samples, greedy] = ports.rollouts;
  expect(greedy!.map(({ tasks }) => tasks)).toEqual(samples!.map(({ tasks }) => tasks));
  expect(greedy!.map(({ samples: each, sampling: { topK } }) => [each, topK])).toEqual(
    greedy!.map(() => [1, 1]),
  );
  // Their own places: what is sampled there must be nothing that is sampled elsewhere.
  const places = [...samples!, ...greedy!].map(({ group, firstTask }) => `${group}/${firstTask}`);
  expect(new Set(places).size).toBe(places.length);
  expect(ports.batches[0]).toMatchObject({ groups: { length: 4 }, greedy: { length: 4 } });
  expect(ports.reports[0]).toMatchObject({ outcomes: { scored: 4 * 8 } });
});

test('a person is asked where every greedy sample failed: the stage would go on and learn nothing', async () => {
  const ports = await train(
    { kind: 'remax' },
    {
      group: ({ samples }) => (samples === 1 ? { trajectories: null, failure: 'the tool is away' } : {}),
      decisions: ['stop'],
    },
    3,
  );
  expect(ports.questions.map(({ reason }) => reason)).toEqual([
    expect.stringMatching(/^every greedy sample of step 1 failed.*: the tool is away/),
  ]);
  expect(ports.trained).toEqual([]);
});

describe('tokens are scored before credit', () => {
  test('where the method asks for it, by the policy that the step starts from and the reference', async () => {
    const ports = await train({ kind: 'ppo', klCoefficient: 0.1 }, {}, 2);
    const input = stageInput();
    expect(ports.scored).toMatchObject([
      { scores: ['values', 'reference'], policy: input.checkpoint, reference: input.reference, step: 1 },
      { policy: { weights: 'rl-1' }, step: 2 },
    ]);
    expect(ports.batches.map(({ scores }) => scores?.key)).toEqual(['scores/1', 'scores/2']);
    // The penalty is in the reward, and nothing in the loss needs the reference.
    expect(ports.trained[0]!.reference).toBeNull();
  });

  test('and not otherwise', async () => {
    const ports = await train({}, {});
    expect(ports.scored).toEqual([]);
    expect(ports.batches[0]).not.toHaveProperty('scores');
  });
});

test('teachers go before the learner as the run was opened with them, in the order of their weights', async () => {
  const teachers = [{ from: 'b@3', weight: 3 }, { from: 'a' }];
  const checkpoints = { a: checkpoint('a'), 'b@3': checkpoint('b', 3) };
  const ports = new ScriptedTraining({ heldOut: [0.5] });
  const over = { ...algorithmWith({ kind: 'opd', teachers }, sampling), maxSteps: 1 };
  await trainStage(ports, stageInput(over, { checkpoints }), null, go);
  expect(ports.trained).toMatchObject([
    { teachers: [checkpoints['b@3'], checkpoints.a], objective: { teacherWeights: [0.75, 0.25] } },
  ]);
  expect((await train({}, {})).trained[0]).not.toHaveProperty('teachers');
});

describe('stored episodes', () => {
  const collect = { kind: 'stored', stage: 'earlier', steps: { from: 2 } } as const;
  const taking = (over: object) =>
    trainStored({ ...algorithmWith({ kind: 'rft' }, sampling), collect, maxSteps: 2, ...over });
  async function trainStored(over: Partial<RlStageSpec>) {
    const ports = new ScriptedTraining({ heldOut: [0.5] });
    await trainStage(ports, stageInput(over), null, go);
    return ports;
  }

  test('take the place of rollouts, and cost no tokens', async () => {
    const ports = await taking({});
    expect(ports.rollouts).toEqual([]);
    expect(ports.takenFromStore).toMatchObject([
      { step: 1, from: { run: 'run', stage: 'earlier', steps: { from: 2 } }, count: 4, arms: stageSpec.arms },
      { step: 2 },
    ]);
    expect(ports.batches.map(({ groups }) => groups.length)).toEqual([1, 1]);
    expect(ports.reports.map(({ sampledTokens, entropy }) => [sampledTokens, entropy])).toEqual([
      [0, null],
      [0, null],
    ]);
  });

  test('may be of another run', async () => {
    const ports = await taking({ collect: { ...collect, run: 'other' } });
    expect(ports.takenFromStore[0]!.from.run).toBe('other');
  });
});

describe('hindsight', () => {
  const failing: Script['group'] = (group: GroupRequest) =>
    group.failed
      ? {
          arms: [{ arm: { environment: 'calculator', level: 1 }, successes: 3, trials: 8 }],
          sampledTokens: 7,
        }
      : { ...(group.group % 2 === 0 && unsolved(group)), sampledTokens: 10 };

  test('asks failed tasks again with a hint, in places of their own, and learns from that besides', async () => {
    const ports = await train({ kind: 'hindsight', corrections: 3 }, { group: failing });
    const [first, again] = ports.rollouts;
    expect(again).toMatchObject(
      [0, 2].map((i) => ({
        tasks: first![i]!.tasks,
        samples: 3,
        group: 4 + i,
        firstTask: 4 + i,
        checkpoint: first![i]!.checkpoint,
        failed: { key: `rl/1/${i}` },
      })),
    );
    expect(ports.batches[0]!.groups.map(({ key }) => key)).toEqual([
      'rl/1/0',
      'rl/1/1',
      'rl/1/2',
      'rl/1/3',
      'rl/1/4',
      'rl/1/6',
    ]);
    // What they cost counts, and what they are worth does not: success is that without hints.
    expect(ports.reports[0]).toMatchObject({ outcomes: { scored: 4 * 8 } });
    expect(ports.reports[0]!.sampledTokens).toBe(4 * 10 + 2 * 7);
    expect(ports.relabelled).toEqual([]);
    const [{ rollout }] = ports.facts as [StepFacts];
    expect(rollout!.hinted).toEqual({ successes: 2 * 3, trials: 2 * 8 });
    expect(figuresOf(ports.facts[0]!)['success/hinted']).toBe(0.375);
  });

  test('asks a teacher where the method names one', async () => {
    const ports = new ScriptedTraining({ heldOut: [0.5], group: failing });
    const algorithm = algorithmWith({ kind: 'hindsight', teacher: 'expert@9' }, sampling);
    const checkpoints = { 'expert@9': checkpoint('expert', 9) };
    await trainStage(ports, stageInput({ ...algorithm, maxSteps: 1 }, { checkpoints }), null, go);
    expect(ports.rollouts[1]!.map(({ checkpoint: of }) => of)).toEqual([
      checkpoints['expert@9'],
      checkpoints['expert@9'],
    ]);
    expect(ports.trained[0]).not.toHaveProperty('teachers');
  });

  /** The first group has samples that failed as well, of tasks that are solved more often than not. */
  const solving: Script['group'] = ({ tasks, group }) => ({
    arms: [
      {
        arm: { environment: 'calculator', level: tasks[0]!.level },
        successes: group === 0 ? 6 : 8,
        trials: 8,
      },
    ],
  });

  test('asks nothing where nothing failed', async () => {
    const group: Script['group'] = (request) => solving({ ...request, group: 1 });
    const ports = await train({ kind: 'hindsight', relabel: true }, { group });
    expect(ports.rollouts).toHaveLength(1);
    expect(ports.relabelled).toEqual([]);
    expect(ports.facts[0]!.rollout).not.toHaveProperty('hinted');
  });

  test('looks for other tasks that failed episodes solved, however often their own are solved', async () => {
    const ports = await train({ kind: 'hindsight', corrections: 0, relabel: true }, { group: solving });
    expect(ports.rollouts).toHaveLength(1);
    expect(ports.relabelled).toMatchObject([{ step: 1, groups: [{ key: 'rl/1/0' }] }]);
    expect(ports.batches[0]!.groups.at(-1)!.key).toBe('relabelled/1');
  });
});

test('a critic is trained beside the policy by its own rate, at first alone', async () => {
  const critic = { learningRate: 0.004, valueClip: 0.5, pretrainingSteps: 2 };
  const ports = await train({ kind: 'ppo', critic }, {}, 3);
  expect(ports.trained.map(({ objective }) => objective?.kind ?? null)).toEqual([null, null, 'clipped']);
  expect(ports.trained[2]!.critic).toEqual({
    clip: 0.5,
    optimizer: { ...stageSpec.optimizer, learningRate: 0.004 },
  });
  expect(ports.trained[2]!.optimizer.learningRate).toBe(stageSpec.optimizer.learningRate);
  expect((await train({}, {})).trained[0]).not.toHaveProperty('critic');
});

describe('a tree', () => {
  const collect = { kind: 'tree', roots: 2, branches: 4, width: 2, exploration: 0.5 } as const;
  async function growTree(script: Partial<Script> = {}, over: Partial<RlStageSpec> = {}) {
    const ports = new ScriptedTraining({ heldOut: [0.5], ...script });
    await trainStage(
      ports,
      stageInput({ collect, numGenerations: 8, groupsPerWorkflow: 2, maxSteps: 1, ...over }),
      null,
      go,
    );
    return ports;
  }
  const keysOf = (groups: readonly { key: string }[]) => groups.map(({ key }) => key);

  test('grows in rounds, each from all before it, until a task has its samples', async () => {
    const { rollouts, batches } = await growTree();
    const [roots, first, second, ...rest] = rollouts;
    expect(rest).toEqual([]);
    expect(roots!.map(({ group, samples, grows }) => [group, samples, grows])).toEqual([
      [0, 2, undefined],
      [1, 2, undefined],
    ]);
    expect(first!.map(({ group, samples, grows }) => [group, samples, keysOf(grows!.trees)])).toEqual([
      [2, 4, ['rl/1/0']],
      [3, 4, ['rl/1/1']],
    ]);
    expect(second!.map(({ group, samples, grows }) => [group, samples, keysOf(grows!.trees)])).toEqual([
      [4, 2, ['rl/1/0', 'rl/1/2']],
      [5, 2, ['rl/1/1', 'rl/1/3']],
    ]);
    expect(second!.map(({ tasks, firstTask }) => [tasks, firstTask])).toEqual(
      roots!.map(({ tasks, firstTask }) => [tasks, firstTask]),
    );
    expect(second![0]!.grows).toMatchObject({ width: 2, exploration: 0.5 });
    expect(keysOf(batches[0]!.groups)).toEqual([0, 1, 2, 3, 4, 5].map((group) => `rl/1/${group}`));
  });

  test('is not grown where its beginning failed as a whole, and goes on without a round that did', async () => {
    const failed = { trajectories: null, failure: 'no worker' };
    const { rollouts } = await growTree({ group: ({ group }) => ([1, 2].includes(group) ? failed : {}) });
    expect(
      rollouts.map((groups) =>
        groups.map(({ group, grows }) => [group, ...keysOf(grows?.trees ?? [])].join(' ')),
      ),
    ).toEqual([['0', '1'], ['2 rl/1/0'], ['3 rl/1/0']]);
  });

  test('has greedy samples of its tasks under numbers that no round has', async () => {
    const { rollouts } = await growTree({}, algorithmWith({ kind: 'remax' }, sampling));
    const numbers = rollouts.flat().map(({ group }) => group);
    expect(numbers).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    expect(rollouts.at(-1)!.map(({ samples, grows }) => [samples, grows])).toEqual([
      [1, undefined],
      [1, undefined],
    ]);
  });
});
