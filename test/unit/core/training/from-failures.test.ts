import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import {
  drawVaried,
  keptVariations,
  USUAL_VALUES,
  variedPerStep,
} from '../../../../core/training/from-failures.ts';
import type { CheckedVariations, VariedDraw } from '../../../../core/training/from-failures.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { arm, go, ScriptedTraining, stageInput, unsolved } from './scripted-training.ts';

const fromFailures = { stage: 'phase-1', part: 0.5, variations: 4, mostFailures: 128 };
const source = { key: 'tasks', sha256: 's', bytes: 1 };

describe('a step', () => {
  const draw = (over: Partial<VariedDraw> = {}) =>
    drawVaried({
      seed: 1,
      stage: 'phase-2',
      step: 1,
      arms: [arm(1), arm(2)],
      varied: { source, counts: { 'calculator:1': 5, 'calculator:2': 7 } },
      part: 0.5,
      groupsPerStep: 8,
      count: 8,
      ...over,
    });

  test('draws its part of variations, none twice, and all before any comes again', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 40 }),
        fc.integer({ min: 0, max: 30 }),
        fc.integer({ min: 0, max: 30 }),
        fc.double({ min: 0.05, max: 1, noNaN: true }),
        fc.integer({ min: 1, max: 5 }),
        (groupsPerStep, first, second, part, seed) => {
          const counts = { 'calculator:1': first, 'calculator:2': second };
          const all = first + second;
          const perStep = Math.min(variedPerStep({ part }, groupsPerStep), all);
          const over = { seed, part, groupsPerStep, count: groupsPerStep, varied: { source, counts } };
          const stepsOfPass = perStep === 0 ? 1 : Math.floor(all / perStep);
          for (const pass of [0, 1]) {
            const names = Array.from({ length: stepsOfPass }, (_, i) => {
              const drawn = draw({ ...over, step: 1 + pass * stepsOfPass + i });
              expect(drawn).toHaveLength(perStep);
              for (const ref of drawn) expect(ref).toMatchObject({ split: 'train', source });
              return drawn.map(({ level, index }) => `${level} ${index}`);
            }).flat();
            expect(new Set(names).size).toBe(names.length);
          }
        },
      ),
    );
  });

  test('that replays others draws fewer, and follows from seed, stage and step', () => {
    expect(draw({ count: 4 })).toEqual(draw().slice(0, 2));
    expect(draw()).toEqual(draw());
    expect(draw({ seed: 2 })).not.toEqual(draw());
    expect(draw({ varied: { source: null, counts: {} } })).toEqual([]);
  });
});

describe('of the variations', () => {
  const task = (at: number) => ({
    arm: arm(1),
    of: { environment: 'calculator', split: 'train' as const, level: 1, index: at },
    proposal: at,
    canonical: String(at),
  });
  const checked: CheckedVariations = {
    failed: [
      {
        ref: task(0).of,
        successes: 0,
        trials: 8,
        variations: [
          { kind: 'task', reference: 0 },
          { kind: 'known' },
          { kind: 'task', reference: 1 },
          { kind: 'set-aside', reason: '' },
          { kind: 'task', reference: 2 },
          { kind: 'unsolved', reason: '' },
          { kind: 'task', reference: 3 },
          { kind: 'none', reason: '' },
        ],
      },
    ],
    tasks: [0, 1, 2, 3].map(task),
    critic: true,
  };

  test('those within the bounds of value are kept, and it is told what became of all others', () => {
    const { source: kept, counts, facts } = keptVariations(checked, [0.049, 0.05, 0.75, 0.751], USUAL_VALUES);
    expect(kept.arms['calculator:1']!.map(({ canonical, value }) => [canonical, value])).toEqual([
      ['1', 0.05],
      ['2', 0.75],
    ]);
    expect(counts).toEqual({ 'calculator:1': 2 });
    const { none, setAside, known, unsolved: unsolvable, tooHard, tooEasy } = facts;
    expect(facts).toMatchObject({ failed: 1, variations: 8, kept: 2, tooHard: 1, tooEasy: 1 });
    expect(none + setAside + known + unsolvable + tooHard! + tooEasy! + facts.kept).toBe(8);
  });

  test('all are kept where no critic is asked', () => {
    expect(keptVariations(checked, null).facts).toMatchObject({ kept: 4, tooHard: null, tooEasy: null });
  });
});

describe('a stage with tasks from failures', () => {
  const kept = { counts: { 'calculator:1': 5 } };
  const script = { heldOut: [0.5], kept, group: (request: GroupRequest) => unsolved(request) };
  const graduation = { ...stageInput().stage.graduation, everySteps: 100 };
  const train = async (
    values: { from: number; to: number } | null | undefined,
    gate: Parameters<typeof trainStage>[3] = go,
    from: StageState | null = null,
    ports = new ScriptedTraining(script),
  ) => {
    const how = { ...fromFailures, ...(values !== undefined && { values }) };
    await trainStage(ports, stageInput({ maxSteps: 6, graduation, fromFailures: how }), from, gate);
    return ports;
  };

  test('makes them once, before its first step, and draws of them in every step', async () => {
    const ports = await train(undefined);
    expect(ports.varied).toHaveLength(1);
    expect(ports.varied[0]).toMatchObject({ from: 'phase-1', stage: 'rl', variations: 4 });
    for (const requests of ports.rollouts) {
      const tasks = requests.flatMap((request) => request.tasks);
      expect(tasks).toHaveLength(4);
      const varied = tasks.filter((one) => one.source !== undefined);
      expect(varied).toHaveLength(2);
      // What is drawn again comes first, and of it none was made of another task.
      const retries = requests.reduce((sum, one) => sum + one.retries, 0);
      expect(tasks.slice(0, retries).every((one) => one.source === undefined)).toBe(true);
    }
    expect(ports.facts.map(({ rollout }) => rollout!.fromFailures!.kept)).toEqual(Array(6).fill(5));
  });

  test('asks the critic that it begins with, by the bounds of WebRL unless others are given', async () => {
    const usual = await train(undefined);
    expect(usual.scored[0]).toMatchObject({ scores: ['values'], policy: stageInput().checkpoint });
    expect(usual.kept[0]).toMatchObject({ values: USUAL_VALUES });
    expect((await train({ from: 0.2, to: 0.6 })).kept[0]).toMatchObject({ values: { from: 0.2, to: 0.6 } });
    const unfiltered = await train(null);
    expect(unfiltered.scored).toEqual([]);
    expect(unfiltered.kept[0]).not.toHaveProperty('values');
  });

  test('carries them where it continues as new, and goes on with the same tasks', async () => {
    const whole = await train(undefined);
    const ports = new ScriptedTraining(script);
    let state: StageState | null = null;
    await train(
      undefined,
      async (_, carried) => {
        state = await carried();
        return state.step === 3 ? 'stop' : 'go';
      },
      null,
      ports,
    );
    await train(undefined, go, JSON.parse(JSON.stringify(state)) as StageState, ports);
    expect(ports.varied).toHaveLength(1);
    expect(ports.rollouts).toEqual(whole.rollouts);
  });
});
