import { describe, expect, test } from 'vitest';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput, unsolved } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

const lagging = (lag: number, over: Partial<RlStageSpec> = {}): Partial<RlStageSpec> => ({
  maxSteps: 6,
  collect: { kind: 'pipelined', lag },
  mostTries: 6,
  graduation: { ...stageInput().stage.graduation, everySteps: 100 },
  ...over,
});

async function train(
  over: Partial<RlStageSpec>,
  script: Partial<Script> = {},
  gate: Parameters<typeof trainStage>[3] = go,
  from: StageState | null = null,
) {
  const ports = new ScriptedTraining({ heldOut: [0.5], ...script });
  const result = await trainStage(ports, stageInput(over), from, gate);
  return { ports, result };
}

const weightsByStep = (ports: ScriptedTraining): string[] =>
  ports.rollouts.map(([group]) => group!.checkpoint.weights);

describe('a pipelined stage', () => {
  test('samples each step with the weights of so many steps before', async () => {
    const { ports } = await train(lagging(2));
    expect(ports.rollouts.map(([group]) => group!.step)).toEqual([1, 2, 3, 4, 5, 6]);
    expect(weightsByStep(ports)).toEqual([...Array<string>(3).fill('warm-start-3'), 'rl-1', 'rl-2', 'rl-3']);
    expect(ports.trained.map(({ parent }) => parent.weights)).toEqual([
      'warm-start-3',
      'rl-1',
      'rl-2',
      'rl-3',
      'rl-4',
      'rl-5',
    ]);
    expect(ports.facts.map(({ rollout }) => rollout!.staleness)).toEqual([0, 1, 2, 2, 2, 2]);
    // The learner is told, and of a stage that waits it is not.
    expect(ports.batches.map(({ stepsAhead }) => stepsAhead)).toEqual([
      { 'warm-start-3': 0 },
      { 'warm-start-3': 1 },
      { 'warm-start-3': 2 },
      { 'rl-1': 2 },
      { 'rl-2': 2 },
      { 'rl-3': 2 },
    ]);
    const { ports: waiting } = await train(lagging(0));
    for (const batch of waiting.batches) expect(batch).not.toHaveProperty('stepsAhead');
  });

  test('says for how long it neither sampled nor learned, and one that waits does not', async () => {
    class Clocked extends ScriptedTraining {
      private clock = 0;
      override now(): number {
        return this.clock;
      }
      override async train(request: Parameters<ScriptedTraining['train']>[0]) {
        this.clock += 10_000;
        return super.train(request);
      }
    }
    const [ahead, waiting] = [new Clocked({ heldOut: [0.5] }), new Clocked({ heldOut: [0.5] })];
    const graduation = { ...stageInput().stage.graduation, everySteps: 1 };
    await trainStage(ahead, stageInput(lagging(1, { maxSteps: 1, graduation })), null, go);
    await trainStage(waiting, stageInput(lagging(0, { maxSteps: 1, graduation })), null, go);
    // The learner says nothing of its time here.
    expect(ahead.facts[0]!.circumstances.idle).toEqual({ rollout: 10, learner: 10 });
    expect(waiting.facts[0]!.circumstances).not.toHaveProperty('idle');
  });

  test('counts what the learner has done since, and no step that learned nothing', async () => {
    const { ports } = await train(lagging(2), { nothingToLearn: [2] });
    expect(ports.facts.map(({ rollout }) => rollout!.staleness)).toEqual([0, 1, 1, 1, 2, 2]);
  });

  test('has the next steps begun when the learner works on one', async () => {
    class Watched extends ScriptedTraining {
      readonly ahead: number[] = [];
      override train(request: Parameters<ScriptedTraining['train']>[0]) {
        this.ahead.push(this.rollouts.at(-1)![0]!.step - request.stageStep);
        return super.train(request);
      }
    }
    const ports = new Watched({ heldOut: [0.5] });
    await trainStage(ports, stageInput(lagging(1)), null, go);
    expect(ports.ahead).toEqual([1, 1, 1, 1, 1, 0]);
  });

  test('of no lag asks for what one on-policy asks for', async () => {
    const script = { group: (request: GroupRequest) => unsolved(request) };
    const [none, plain] = [
      await train(lagging(0), script),
      await train({ ...lagging(0), collect: { kind: 'on-policy' } }, script),
    ];
    expect(none.ports.rollouts).toEqual(plain.ports.rollouts);
    expect(none.ports.trained).toEqual(plain.ports.trained);
    expect(none.ports.facts).toEqual(plain.ports.facts);
  });

  test('draws a task that waits in one step, though others are begun with it', async () => {
    const over = lagging(3, { maxSteps: 12, retryFailures: 0.5 });
    const { ports } = await train(over, { group: (request) => unsolved(request) });
    const drawn = ports.rollouts.map((groups) =>
      groups.flatMap(({ tasks }) => tasks.map(({ level, index }) => `${level}/${index}`)),
    );
    for (const [i, tasks] of drawn.entries()) {
      const beside = drawn.slice(i + 1, i + 4).flat();
      expect(tasks.filter((task) => beside.includes(task))).toEqual([]);
    }
    const all = drawn.flat();
    expect(new Set(all).size).toBeLessThan(all.length);
  });

  test('goes on as if nothing had been when it is carried over at any step', async () => {
    const script = { group: (request: GroupRequest) => unsolved(request) };
    const whole = await train(lagging(2), script);
    for (const at of [0, 1, 3, 5]) {
      let carriedOver: StageState | null = null;
      const first = await train(lagging(2), script, async ({ step }, carried) => {
        if (step !== at) return 'go';
        carriedOver = JSON.parse(JSON.stringify(await carried())) as StageState;
        return 'stop';
      });
      const second = await train(lagging(2), script, go, carriedOver);
      expect([...first.ports.rollouts, ...second.ports.rollouts]).toEqual(whole.ports.rollouts);
      expect([...first.ports.trained, ...second.ports.trained]).toEqual(whole.ports.trained);
      expect(second.result).toEqual(whole.result);
    }
  });

  test('learns nothing from what the weights before a roll-back have sampled', async () => {
    const over = lagging(1, { graduation: stageInput().stage.graduation });
    const { ports, result } = await train(over, { heldOut: [0.8, 0.1, 0.8, 0.8, 0.8, 0.8] });
    // Step 2 has collapsed; step 3 was begun by then.
    expect(ports.trained.map(({ stageStep, parent }) => [stageStep, parent.weights])).toEqual([
      [1, 'warm-start-3'],
      [2, 'rl-1'],
      [4, 'rl-1'],
      [5, 'rl-4'],
      [6, 'rl-5'],
    ]);
    expect(weightsByStep(ports)).toEqual(['warm-start-3', 'warm-start-3', 'rl-1', 'rl-1', 'rl-1', 'rl-4']);
    const third = ports.facts[2]!;
    expect(third).toMatchObject({ stageStep: 3, learner: null, alarms: [], rollout: { givenUp: true } });
    expect(third.estimates).toEqual(ports.facts[1]!.estimates);
    expect(result.steps).toBe(9);
  });

  test('keeps the weights that sample from retention', async () => {
    const { ports } = await train(lagging(2, { graduation: stageInput().stage.graduation }));
    const pinned = ports.retained.map((request) => request.pinned.map(({ weights }) => weights));
    // After step 1 the steps 2 and 3 are begun, of the weights that the stage began with.
    expect(pinned[0]).toContain('warm-start-3');
    expect(pinned[3]).toContain('rl-2');
  });
});
