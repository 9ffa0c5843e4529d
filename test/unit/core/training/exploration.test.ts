import { describe, expect, test } from 'vitest';
import { samplingAt } from '../../../../core/training/exploration.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import { algorithmWith } from '../../../support/algorithm.ts';
import { go, sampling, ScriptedTraining, stageInput, unsolved } from './scripted-training.ts';

const unadjusted = { temperatureFactor: 1 };
const temperature = { from: 1.5, to: 0.5, steps: 10 };
const at = (step: number, schedule = temperature) =>
  samplingAt({ exploration: { temperature: schedule } }, sampling, step, unadjusted).temperature;

describe('a temperature schedule', () => {
  test('goes in a straight line from one to the other, and stays there', () => {
    expect([1, 6, 11, 12, 1000].map((step) => at(step))).toEqual([1.5, 1, 0.5, 0.5, 0.5]);
    expect(at(1, { from: 0.3, to: 2, steps: 1 })).toBe(0.3);
    expect(at(2, { from: 0.3, to: 2, steps: 1 })).toBe(2);
  });

  test('has few different values, for each costs the learner a program', () => {
    const values = Array.from({ length: 5000 }, (_, i) => at(i + 1, { ...temperature, steps: 4000 }));
    expect(new Set(values).size).toBe(21);
    expect(values).toEqual(values.toSorted((a, b) => b - a));
  });

  test('leaves all else as it is, and goes with what alarms have ordered', () => {
    expect(samplingAt({}, sampling, 3, unadjusted)).toEqual(sampling);
    const cut = { ...sampling, topK: 7 };
    const raised = { temperatureFactor: 2 };
    expect(samplingAt({ exploration: { temperature } }, cut, 1, raised)).toEqual({ ...cut, temperature: 3 });
    expect(samplingAt({}, cut, 1, raised)).toEqual({ ...cut, temperature: 2 });
  });
});

async function train(over: Partial<RlStageSpec>) {
  const ports = new ScriptedTraining({
    heldOut: [0.5],
    group: (group) => (group.failed ? {} : unsolved(group)),
  });
  await trainStage(ports, stageInput({ maxSteps: 2, ...over }), null, go);
  return ports;
}

test('what is sampled, scored and learnt at a step has one temperature, and evaluations the plain one', async () => {
  const exploration = { temperature: { from: 2, to: 1, steps: 2 } };
  const ports = await train({ ...algorithmWith({ kind: 'vtrace' }, sampling), exploration });
  const temperatures = [2, 1.5];
  expect(ports.rollouts.map(([group]) => group!.sampling.temperature)).toEqual(temperatures);
  expect(ports.scored.map(({ from }) => from.temperature)).toEqual(temperatures);
  expect(ports.trained.map(({ objective }) => objective)).toMatchObject(
    temperatures.map((each) => ({ kind: 'clipped', temperature: each })),
  );
  expect(ports.evaluations.map((each) => each.sampling.temperature)).toEqual([1, 1]);
});

test('tools are drawn where the policy explores, not in baselines, corrections and evaluations', async () => {
  const exploration = { toolChoice: 0.1 };
  const greedy = await train({ ...algorithmWith({ kind: 'remax' }, sampling), exploration });
  expect(greedy.rollouts.map(([group]) => group!.toolChoice)).toEqual([0.1, undefined, 0.1, undefined]);
  const hinted = await train({ ...algorithmWith({ kind: 'hindsight' }, sampling), exploration });
  expect(hinted.rollouts.map(([group]) => group!.toolChoice)).toEqual([0.1, undefined, 0.1, undefined]);
  const plain = await train({});
  expect(plain.rollouts[0]![0]).not.toHaveProperty('toolChoice');
});
