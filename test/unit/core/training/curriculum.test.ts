import { describe, expect, test } from 'vitest';
import { runCurriculum, uniqueArms } from '../../../../core/training/curriculum.ts';
import type { CurriculumPorts, CurriculumState } from '../../../../core/training/curriculum.ts';
import type { EvaluationRequest, InitializeRequest } from '../../../../core/requests.ts';
import type { CurriculumSpec } from '../../../../core/spec.ts';
import { drawTasks } from '../../../../core/training/task-draw.ts';
import type { StageInput, StageResult } from '../../../../core/training/stage.ts';
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
  warmStart: {
    arms: [arm(1)],
    minibatch: 16,
    updatesPerRound: 10,
    maxRounds: 4,
    optimizer,
    graduation: { successAtLeast: 0.4, tasksPerArm: 50 },
  },
  stages: [
    { ...stageSpec, name: 'easy', arms: [arm(1), arm(2)] },
    { ...stageSpec, name: 'hard', arms: [arm(2), arm(3)] },
  ],
  evaluation: { arms: [arm(3)], tasks: 100, confidence: 0.95 },
  retention: { keepLast: 3, keepBest: 1, keepEvery: 0 },
};

interface Plan {
  spec?: CurriculumSpec;
  warm?: { ready: boolean };
  stageEnd?: (name: string) => StageResult['end'];
}

/** Stages take five steps each and leave a checkpoint of their name. */
class ScriptedRun implements CurriculumPorts {
  readonly training = new ScriptedTraining({ heldOut: [0.5, 0.9] });
  readonly phases: string[] = [];
  readonly stages: StageInput[] = [];
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
  async warmStart() {
    return { checkpoint: checkpoint('warm'), ready: true, rounds: 7, ...this.plan.warm };
  }
  async stage(input: StageInput): Promise<StageResult> {
    this.stages.push(input);
    const { name } = input.stage;
    const end = this.plan.stageEnd?.(name) ?? 'graduated';
    return { end, reason: 'scripted', checkpoint: checkpoint(name), steps: input.stepsBefore + 5 };
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
      ['warm', 'warm', 7],
      ['easy', 'warm', 12],
    ]);
    expect(result).toMatchObject({
      end: 'completed',
      checkpoint: checkpoint('hard'),
      reference: checkpoint('warm'),
      steps: 17,
    });
    expect(result.stages).toEqual([
      { name: 'easy', end: 'graduated', reason: 'scripted', steps: 5 },
      { name: 'hard', end: 'graduated', reason: 'scripted', steps: 5 },
    ]);
    expect(result.before).toMatchObject({ meanReward: 0.5 });
    expect(result.after).toMatchObject({ meanReward: 0.9 });
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

  test('reports on the same test tasks before and after', async () => {
    const { ports } = await run();
    const [before, after] = ports.training.evaluations;
    expect([before!.checkpoint.weights, after!.checkpoint.weights]).toEqual(['warm', 'hard']);
    expect({ ...after, name: '', checkpoint: null }).toEqual({ ...before, name: '', checkpoint: null });
    expect(before!.split).toBe('test');
  });

  test('goes on after a stage that did not graduate, and ends where one was stopped', async () => {
    const plateau = await run({ stageEnd: () => 'plateau' });
    expect(plateau.result).toMatchObject({ end: 'completed', checkpoint: checkpoint('hard') });
    const { ports, result } = await run({ stageEnd: () => 'stopped' });
    expect(ports.stages).toHaveLength(1);
    expect(result).toMatchObject({ end: 'stopped', checkpoint: checkpoint('easy'), after: null, steps: 12 });
  });

  test('stopped between stages keeps what the stages before made', async () => {
    const { result } = await run({}, stopAfter(1));
    expect(result).toMatchObject({
      end: 'stopped',
      checkpoint: checkpoint('easy'),
      stages: [{ name: 'easy' }],
    });
    expect(result.before).not.toBeNull();
  });

  test('goes on from a carried state with the next stage, and does not begin again', async () => {
    let carried: CurriculumState | null = null;
    await run({}, async (state) => {
      carried = state;
      return state.stages.length === 0 ? 'go' : 'stop';
    });
    const { ports, result } = await run({}, go, JSON.parse(JSON.stringify(carried)) as CurriculumState);
    expect(ports.phases).toEqual(['hard', 'report']);
    expect(ports.initialized).toEqual([]);
    expect(result).toMatchObject({
      end: 'completed',
      steps: 17,
      stages: [{ name: 'easy' }, { name: 'hard' }],
    });
  });

  test('stopped in the warm start leaves its checkpoint', async () => {
    const { ports, result } = await run({ warm: { ready: false } });
    expect(result).toMatchObject({ end: 'stopped', checkpoint: checkpoint('warm'), steps: 7, stages: [] });
    expect(ports.training.evaluations).toEqual([]);
  });

  test('with a model that is there already goes without a warm start: RL begins with it', async () => {
    const brought = {
      ...spec,
      model: { kind: 'from' as const, checkpoint: checkpoint('mine') },
      warmStart: null,
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

  test('learns its tokenizer from every arm that it will meet, each once', async () => {
    const { ports } = await run();
    expect(ports.initialized[0]!.arms).toEqual([arm(1), arm(2), arm(3)]);
    expect(uniqueArms(spec)).toEqual([arm(1), arm(2), arm(3)]);
  });
});
