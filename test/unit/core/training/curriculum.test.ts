import { describe, expect, test } from 'vitest';
import { runCurriculum, uniqueArms } from '../../../../core/training/curriculum.ts';
import type { CurriculumPorts, CurriculumState } from '../../../../core/training/curriculum.ts';
import type { EvaluationRequest } from '../../../../core/requests/evaluation.ts';
import type { InitializeRequest } from '../../../../core/requests/run.ts';
import type { CurriculumSpec } from '../../../../core/schema/curriculum-spec.ts';
import type { SupervisedStageSpec } from '../../../../core/schema/stages/supervised.ts';
import { drawTasks, taskIndexes } from '../../../../core/training/task-draw.ts';
import type { RewardStageSpec } from '../../../../core/schema/stages/reward.ts';
import type { RewardStageInput } from '../../../../core/training/reward-stage.ts';
import type { StageInput, StageResult } from '../../../../core/training/stage.ts';
import type { SupervisedInput } from '../../../../core/training/supervised-stage.ts';
import {
  arm,
  checkpoint,
  go,
  optimizer,
  reward,
  sampling,
  ScriptedTraining,
  stageSpec,
  stopAfter,
} from './scripted-training.ts';

const warmStart: SupervisedStageSpec = {
  kind: 'supervised',
  name: 'warm-start',
  arms: [arm(1)],
  minibatch: 16,
  updatesPerRound: 10,
  maxRounds: 4,
  optimizer,
  graduation: { successAtLeast: 0.4, tasksPerLevel: 50, unjudgedAtMost: 0.02 },
};
const easy = { ...stageSpec, name: 'easy', arms: [arm(1), arm(2)] };
const hard = { ...stageSpec, name: 'hard', arms: [arm(2), arm(3)] };

const spec: CurriculumSpec = {
  run: 'run',
  seed: 1,
  model: {
    kind: 'scratch',
    shape: {
      vocabSize: 512,
      hiddenSize: 64,
      intermediateSize: 128,
      layers: 2,
      attentionHeads: 4,
      keyValueHeads: 2,
      headSize: 16,
      maxPositions: 256,
      tieEmbeddings: true,
    },
  },
  sampling,
  reward,
  stages: [warmStart, easy, hard],
  evaluation: { arms: [arm(3)], count: 100, samples: 1, confidence: 0.95 },
  retention: { keepLast: 3, keepBest: 1, keepEvery: 0 },
};

interface Plan {
  spec?: CurriculumSpec;
  stageEnd?: (name: string) => StageResult['end'];
}

/** RL stages take five steps each, supervised ones seven; they leave a checkpoint of their name. */
class ScriptedRun implements CurriculumPorts {
  readonly training = new ScriptedTraining({ heldOut: [0.5, 0.9] });
  readonly phases: string[] = [];
  readonly stages: StageInput[] = [];
  readonly supervisedStages: SupervisedInput[] = [];
  readonly rewardStages: RewardStageInput[] = [];
  readonly initialized: InitializeRequest[] = [];
  private readonly plan: Plan;

  constructor(plan: Plan) {
    this.plan = plan;
  }

  evaluate(request: EvaluationRequest) {
    return this.training.evaluate(request);
  }
  async initialize(request: InitializeRequest) {
    this.initialized.push(request);
    return checkpoint('initial');
  }
  async supervised(input: SupervisedInput): Promise<StageResult> {
    this.supervisedStages.push(input);
    return this.ended(input.stage.name, input.stepsBefore + 7);
  }
  async stage(input: StageInput): Promise<StageResult> {
    this.stages.push(input);
    return this.ended(input.stage.name, input.stepsBefore + 5);
  }
  async reward(input: RewardStageInput): Promise<StageResult> {
    this.rewardStages.push(input);
    const { name } = input.stage;
    return {
      ...this.ended(name, input.stepsBefore + 3),
      checkpoint: input.checkpoint,
      rewardModels: [checkpoint(`${name}.model`)],
    };
  }
  private ended(name: string, steps: number): StageResult {
    const end = this.plan.stageEnd?.(name) ?? 'graduated';
    return { end, reason: 'scripted', checkpoint: checkpoint(name), steps };
  }
  entered(phase: string): void {
    this.phases.push(phase);
  }
}

async function run(
  plan: Plan = {},
  gate: (state: CurriculumState) => Promise<'go' | 'stop'> = go,
  from: CurriculumState | null = null,
) {
  const ports = new ScriptedRun(plan);
  return { ports, result: await runCurriculum(ports, plan.spec ?? spec, from, gate) };
}

describe('a curriculum', () => {
  test('gives the models of a reward stage to the rl stages after it, and the policy goes on unchanged', async () => {
    const judge: RewardStageSpec = {
      kind: 'reward',
      name: 'judge',
      arms: [arm(1)],
      episodes: { stage: 'first' },
      labels: 'outcomes',
      pairsPerTask: 4,
      models: 1,
      maxEpisodes: 100,
      heldOut: 0.2,
      minibatch: 8,
      maxRounds: 1,
      optimizer,
      graduation: { aucAtLeast: 0.8, calibrationErrorAtMost: 1 },
    };
    const rl = spec.stages.find((one) => one.kind === 'rl')!;
    const judged: CurriculumSpec = {
      ...spec,
      reward: { ...spec.reward, model: { stage: 'judge', by: 'minimum', deviations: 1 } },
      stages: [{ ...rl, name: 'first' }, judge, { ...rl, name: 'second' }],
    };
    const { ports, result } = await run({ spec: judged });
    expect(ports.stages.map(({ rewardModel }) => rewardModel ?? null)).toEqual([
      null,
      { models: [checkpoint('judge.model')], by: 'minimum', deviations: 1 },
    ]);
    expect(ports.stages[1]!.checkpoint).toEqual(checkpoint('first'));
    expect(ports.rewardStages[0]).toMatchObject({
      checkpoint: checkpoint('first'),
      stepsBefore: 5,
      others: [],
    });
    expect(result.stages.map(({ name, steps }) => [name, steps])).toEqual([
      ['first', 5],
      ['judge', 3],
      ['second', 5],
    ]);
  });

  test('runs its stages in order, each from where the last one ended, and reports before and after', async () => {
    const { ports, result } = await run();
    expect(ports.phases).toEqual(['initialize', 'warm-start', 'easy', 'hard', 'report']);
    expect(
      ports.stages.map(({ checkpoint, reference, stepsBefore }) => [
        checkpoint.weights,
        reference.weights,
        stepsBefore,
      ]),
    ).toEqual([
      ['warm-start', 'warm-start', 7],
      ['easy', 'warm-start', 12],
    ]);
    expect(result).toMatchObject({
      end: 'completed',
      checkpoint: checkpoint('hard'),
      reference: checkpoint('warm-start'),
      steps: 17,
    });
    expect(result.stages).toEqual([
      { name: 'warm-start', kind: 'supervised', end: 'graduated', reason: 'scripted', steps: 7 },
      { name: 'easy', kind: 'rl', end: 'graduated', reason: 'scripted', steps: 5 },
      { name: 'hard', kind: 'rl', end: 'graduated', reason: 'scripted', steps: 5 },
    ]);
    expect(result.before).toMatchObject({ meanReward: 0.5 });
    expect(result.after).toMatchObject({ meanReward: 0.9 });
  });

  test('tells all that samples who samples, and who acts', async () => {
    const policy = { kind: 'recorded' as const, run: 'other' };
    const agent = {
      url: 'http://127.0.0.1:1',
      model: 'policy',
      timeoutSeconds: 1,
      maxAttempts: 1,
      branches: 'train' as const,
      concurrency: 1,
    };
    const { ports } = await run({ spec: { ...spec, policy, agent } });
    const inputs = [...ports.stages, ...ports.supervisedStages].map((input) => input.spec);
    for (const one of [...inputs, ...ports.training.evaluations])
      expect(one).toMatchObject({ policy, agent });
  });

  test('keeps the task indexes of its stages apart, however many steps each of them takes', async () => {
    const { ports } = await run();
    const [easy, hard] = ports.stages;
    expect(easy!.tasksBefore).toBe(0);
    const indexes = ({ stage, tasksBefore }: StageInput) =>
      Array.from({ length: stage.maxSteps }, (_, step) =>
        drawTasks({
          seed: 1,
          stage: stage.name,
          step: step + 1,
          arms: stage.arms,
          count: stage.groupsPerStep,
          tasksBefore,
          estimates: {},
          failures: [],
          retryFailures: 0,
        }).tasks.map(({ index }) => index),
      ).flat();
    const all = [...indexes(easy!), ...indexes(hard!)];
    expect(new Set(all).size).toBe(all.length);
  });

  test('keeps them apart where a stage took more steps than were written', async () => {
    const { ports } = await run({ spec: { ...spec, stages: [warmStart, { ...easy, maxSteps: 2 }, hard] } });
    expect(ports.stages[1]!.tasksBefore).toBe(taskIndexes({ ...easy, maxSteps: 5 }));
  });

  test('reports on the same test tasks before and after', async () => {
    const { ports } = await run();
    const [before, after] = ports.training.evaluations;
    expect([before!.checkpoint.weights, after!.checkpoint.weights]).toEqual(['warm-start', 'hard']);
    expect({ ...after, name: '', checkpoint: null }).toEqual({ ...before, name: '', checkpoint: null });
    expect(before!.split).toBe('test');
  });

  test('goes on after a stage that did not graduate, and ends where one was stopped', async () => {
    const plateau = await run({ stageEnd: () => 'plateau' });
    expect(plateau.result).toMatchObject({ end: 'completed', checkpoint: checkpoint('hard') });
    const { ports, result } = await run({
      stageEnd: (name) => (name === 'easy' ? 'stopped' : 'graduated'),
    });
    expect(ports.stages).toHaveLength(1);
    expect(result).toMatchObject({ end: 'stopped', checkpoint: checkpoint('easy'), after: null, steps: 12 });
  });

  test('stopped between stages keeps what the stages before made', async () => {
    const { result } = await run({}, stopAfter(2));
    expect(result).toMatchObject({
      end: 'stopped',
      checkpoint: checkpoint('easy'),
      stages: [{ name: 'warm-start' }, { name: 'easy' }],
    });
    expect(result.before).not.toBeNull();
  });

  test('goes on from a carried state with the next stage, and does not begin again', async () => {
    let carried: CurriculumState | null = null;
    await run({}, async (state) => {
      carried = state;
      return state.stages.length < 2 ? 'go' : 'stop';
    });
    const { ports, result } = await run({}, go, JSON.parse(JSON.stringify(carried)) as CurriculumState);
    expect(ports.phases).toEqual(['hard', 'report']);
    expect(ports.initialized).toEqual([]);
    expect(result).toMatchObject({
      end: 'completed',
      steps: 17,
      stages: [{ name: 'warm-start' }, { name: 'easy' }, { name: 'hard' }],
    });
  });

  test('stopped in the warm start leaves its checkpoint', async () => {
    const { ports, result } = await run({ stageEnd: () => 'stopped' });
    expect(result).toMatchObject({
      end: 'stopped',
      checkpoint: checkpoint('warm-start'),
      reference: null,
      before: null,
      steps: 7,
      stages: [{ name: 'warm-start', end: 'stopped' }],
    });
    expect(ports.training.evaluations).toEqual([]);
  });

  test('with a model that is there already goes without a warm start: RL begins with it', async () => {
    const brought = {
      ...spec,
      model: { kind: 'from' as const, checkpoint: checkpoint('mine') },
      stages: [easy, hard],
    };
    const { ports, result } = await run({ spec: brought });
    expect(ports.phases).toEqual(['initialize', 'easy', 'hard', 'report']);
    expect(ports.initialized[0]).toMatchObject({ model: brought.model, arms: [arm(1), arm(2), arm(3)] });
    expect(ports.stages[0]).toMatchObject({
      checkpoint: checkpoint('initial'),
      reference: checkpoint('initial'),
      stepsBefore: 0,
    });
    expect(result).toMatchObject({ end: 'completed', reference: checkpoint('initial'), steps: 10 });
  });

  test('measures what RL begins with, after all supervised stages that stand first', async () => {
    const again = { ...warmStart, name: 'again', updatesPerRound: 20 };
    const late = { ...warmStart, name: 'late' };
    const { ports, result } = await run({ spec: { ...spec, stages: [warmStart, again, easy, late, hard] } });
    expect(ports.phases).toEqual(['initialize', 'warm-start', 'again', 'easy', 'late', 'hard', 'report']);
    expect(ports.training.evaluations.map(({ checkpoint }) => checkpoint.weights)).toEqual(['again', 'hard']);
    expect(ports.stages.map(({ reference }) => reference.weights)).toEqual(['again', 'again']);
    expect(
      ports.supervisedStages.map(({ stepsBefore, shownBefore, reference }) => [
        stepsBefore,
        shownBefore,
        reference?.weights ?? null,
      ]),
    ).toEqual([
      [0, { rounds: 0, tasks: 0 }, null],
      [7, { rounds: 7, tasks: 7 * 160 }, null],
      [19, { rounds: 14, tasks: 7 * 160 + 7 * 320 }, 'again'],
    ]);
    expect(ports.stages.map(({ tasksBefore }) => tasksBefore)).toEqual([0, expect.any(Number)]);
    expect(result).toMatchObject({ end: 'completed', reference: checkpoint('again'), steps: 31 });
  });

  test('goes on with the policy of an earlier stage where a stage names one, and keeps it until then', async () => {
    const stages = [
      warmStart,
      { ...easy, from: { stage: 'initialize' } },
      { ...hard, name: 'other' },
      { ...hard, from: { stage: 'easy' } },
    ];
    const carriedOver: CurriculumState[] = [];
    const { ports, result } = await run({ spec: { ...spec, stages } }, async (state) => {
      carriedOver.push(state);
      return 'go';
    });
    expect(ports.stages.map(({ checkpoint: { weights }, stage }) => [stage.name, weights])).toEqual([
      ['easy', 'initial'],
      ['other', 'easy'],
      ['hard', 'easy'],
    ]);
    const kept = [...ports.supervisedStages, ...ports.stages].map(({ policies = [] }) =>
      policies.map(({ weights }) => weights),
    );
    expect(kept).toEqual([['initial'], ['initial'], ['easy'], ['easy']]);
    // What RL began with is what its first stage did.
    expect(ports.training.evaluations[0]!.checkpoint.weights).toBe('initial');
    expect(result).toMatchObject({ reference: checkpoint('initial'), checkpoint: checkpoint('hard') });

    const again = JSON.parse(JSON.stringify(carriedOver.at(-1)!)) as CurriculumState;
    const resumed = await run({ spec: { ...spec, stages } }, go, again);
    expect(resumed.ports.stages).toEqual(ports.stages.slice(-1));
    expect(resumed.result.checkpoint).toEqual(result.checkpoint);
  });

  test('gives a stage the opponent that it names, and keeps it as long as the stage runs', async () => {
    const selfPlay = { proposer: { stage: 'easy' } } as NonNullable<(typeof hard)['selfPlay']>;
    const stages = [warmStart, easy, { ...hard, from: { stage: 'warm-start' }, selfPlay }];
    const { ports } = await run({ spec: { ...spec, stages } });
    expect(ports.stages[0]).not.toHaveProperty('opponents');
    expect(ports.stages[1]).toMatchObject({
      checkpoint: checkpoint('warm-start'),
      opponents: [{ stage: 'easy', checkpoint: checkpoint('easy') }],
      policies: [checkpoint('warm-start'), checkpoint('easy')],
    });
  });

  test('gives a stage all of its league', async () => {
    const selfPlay = { proposer: { stage: ['easy', 'warm-start'] } } as NonNullable<
      (typeof hard)['selfPlay']
    >;
    const { ports } = await run({ spec: { ...spec, stages: [warmStart, easy, { ...hard, selfPlay }] } });
    expect(ports.stages[1]).toMatchObject({
      checkpoint: checkpoint('easy'),
      opponents: ['easy', 'warm-start'].map((stage) => ({ stage, checkpoint: checkpoint(stage) })),
      policies: [checkpoint('easy'), checkpoint('warm-start')],
    });
  });

  test('stopped before a stage that goes on with an earlier policy ends with the newest one', async () => {
    const stages = [warmStart, easy, { ...hard, from: { stage: 'warm-start' } }];
    const { result } = await run({ spec: { ...spec, stages } }, stopAfter(2));
    expect(result).toMatchObject({ end: 'stopped', checkpoint: checkpoint('easy') });
  });

  test('of supervised stages alone reports what it ends with', async () => {
    const { ports, result } = await run({ spec: { ...spec, stages: [warmStart] } });
    expect(ports.phases).toEqual(['initialize', 'warm-start', 'report']);
    expect(result).toMatchObject({ end: 'completed', reference: null, before: null, steps: 7 });
    expect(result.after).not.toBeNull();
  });

  test('learns its tokenizer from every arm that it will meet, each once', async () => {
    const { ports } = await run();
    expect(ports.initialized[0]!.arms).toEqual([arm(1), arm(2), arm(3)]);
    expect(uniqueArms(spec)).toEqual([arm(1), arm(2), arm(3)]);
  });

  test('says whose episodes a stage will learn from, so that a new model with other tokens is refused', async () => {
    const stored = (run?: string) => ({ kind: 'stored' as const, stage: 'rl', ...(run && { run }) });
    const stages = [warmStart, { ...easy, collect: stored('theirs') }, { ...hard, collect: stored() }];
    const { ports } = await run({ spec: { ...spec, stages } });
    expect(ports.initialized[0]!.episodesOf).toEqual(['theirs']);
  });
});
