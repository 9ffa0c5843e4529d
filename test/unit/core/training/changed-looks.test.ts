import { describe, expect, test } from 'vitest';
import { nothingChanged } from '../../../../core/run-change.ts';
import type { Changed } from '../../../../core/run-change.ts';
import { RandomStream } from '../../../../core/random.ts';
import { chanceOfAtLeast } from '../../../../core/statistics/binomial.ts';
import { leftOf, paid, partOf, planned } from '../../../../core/training/shared-error.ts';
import type { SharedError } from '../../../../core/training/shared-error.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import type { StageState } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput, stageSpec } from './scripted-training.ts';
import type { Script } from './scripted-training.ts';

// Stages whose steps are changed while they go on: all of their looks together spend no more than the stated error.

const graduation = { successAtLeast: 0.8, confidence: 0.9, tasks: 200, everySteps: 1, unjudgedAtMost: 0.02 };
const looking = { ...stageSpec, graduation };

/** Changes its steps before each step, by those that are done. */
class Prolonged extends ScriptedTraining {
  private readonly to: (done: number) => number;
  private all: Changed = nothingChanged();

  constructor(script: Script, to: (done: number) => number) {
    super(script);
    this.to = to;
  }

  gate = async ({ step }: StageState): Promise<'go'> => {
    this.all = { ...this.all, newest: this.all.newest + 1, maxSteps: { rl: this.to(step) } };
    return 'go';
  };

  changed(): Changed {
    return this.all;
  }
}

/** The parts of an error of 1 that looks at these steps spend, each with the steps that are planned then. */
function spentBy(plans: { step: number; maxSteps: number }[], everySteps = 1) {
  let error: SharedError | undefined;
  return plans.map(({ step, maxSteps }) => {
    const stage = { ...looking, maxSteps, graduation: { ...graduation, everySteps } };
    const plan = planned(stage, { ...(error && { error }), recent: [] }, step);
    error = paid(plan, false);
    return partOf(plan.every, 1);
  });
}
const sum = (parts: number[]): number => parts.reduce((all, part) => all + part, 0);

describe('the error of a stage', () => {
  test('is shared in equal parts where its steps are not changed, to the bit', () => {
    for (let looks = 1; looks <= 300; looks++) {
      const parts = spentBy(Array.from({ length: looks }, (_, i) => ({ step: i + 1, maxSteps: looks })));
      for (const part of parts) expect(part).toBe(1 / looks);
    }
  });

  const at = (maxSteps: number, ...steps: number[]) => steps.map((step) => ({ step, maxSteps }));

  test('is what is left of it, over the looks that are left and one more, where it is prolonged', () => {
    expect(spentBy([...at(4, 1, 2), ...at(7, 3, 4, 5, 6, 7)])).toEqual([
      1 / 4,
      1 / 4,
      ...Array(5).fill(1 / 12),
    ]);
    // 10, 20 and 25 were planned, and 30 and 40 come in the place of 25.
    expect(spentBy([...at(25, 10, 20), ...at(40, 30, 40)], 10).map((x) => x.toFixed(6))).toEqual(
      [1 / 3, 1 / 3, 1 / 9, 1 / 9].map((x) => x.toFixed(6)),
    );
  });

  test('has the parts that it had where it is cut short, and where that is taken back', () => {
    expect(spentBy([...at(10, 1, 2, 3, 4, 5), ...at(7, 6, 7)])).toEqual(Array(7).fill(0.1));
    const back = spentBy([...at(10, 1, 2, 3, 4, 5), ...at(7, 6), ...at(10, 7, 8, 9, 10)]);
    expect(back.map((x) => x.toFixed(6))).toEqual(Array(10).fill('0.100000'));
  });

  test('is none for looks that were planned after the last one had been made', () => {
    expect(spentBy([1, 2, 3, 4, 5].map((step) => ({ step, maxSteps: Math.max(2, step) })))).toEqual([
      0.5, 0.5, 0, 0, 0,
    ]);
  });

  test('is never spent twice, and no look has more than the one before, however its steps are changed', () => {
    for (let seed = 0; seed < 300; seed++) {
      const random = new RandomStream('plans', seed);
      const everySteps = 1 + Math.floor(random.uniform() * 5);
      const plans: { step: number; maxSteps: number }[] = [];
      let maxSteps = 1 + Math.floor(random.uniform() * 20);
      for (let step = 1; step <= maxSteps && step < 80; step++) {
        if (step % everySteps === 0 || step === maxSteps) plans.push({ step, maxSteps });
        if (random.uniform() < 0.3) maxSteps = step + Math.floor(random.uniform() * 20);
      }
      const parts = spentBy(plans, everySteps);
      expect(sum(parts)).toBeLessThanOrEqual(1 + 1e-12);
      parts.slice(1).forEach((part, i) => expect(part).toBeLessThanOrEqual(parts[i]!));
      for (const part of parts) expect(part).toBeGreaterThanOrEqual(0);
    }
  });

  test('is kept for windows of looks by themselves', () => {
    const stage = (maxSteps: number) => ({
      ...looking,
      maxSteps,
      plateau: { ...stageSpec.plateau, evaluations: 4 },
    });
    const look = { successes: 1, trials: 2 };
    const first = planned(stage(10), { recent: [] }, 1);
    expect(first.windows).toEqual({ left: 1, looks: 7, made: 0 });
    const judged = [1, 2, 3, 4, 5].reduce((plan, n) => paid(plan, n >= 4), first);
    // Twelve looks are left, and a window is whole at each of them; after a roll-back at all but three.
    const { windows } = planned(stage(17), { error: judged, recent: [look, look, look, look] }, 6);
    expect(windows).toEqual({ left: 1 - 2 / 7, looks: 12, made: 0, part: (1 - 2 / 7) / 13 });
    expect(planned(stage(17), { error: judged, recent: [] }, 6).windows.looks).toBe(9);
  });
});

const STAGES = 300;
const LUCK = 2 * Math.sqrt((0.1 * 0.9) / STAGES);
const successes = (random: RandomStream): number =>
  Array.from({ length: 200 }, () => Number(random.uniform() < 0.8)).reduce((all, one) => all + one, 0);
const longest = 40;
const plainly = { plateau: { ...stageSpec.plateau, evaluations: 100 }, arms: stageSpec.arms.slice(0, 1) };
const withoutCollapse = { ...stageSpec.collapse, successBelowBest: 0 };

/** Who prolongs a stage at whatever step as long as it has not graduated. */
async function graduated(to: (done: number) => number): Promise<number> {
  let count = 0;
  for (let seed = 0; seed < STAGES; seed++) {
    const random = new RandomStream('prolonged', seed);
    const heldOut = Array.from({ length: longest }, () => successes(random) / 200);
    const ports = new Prolonged({ heldOut }, (done) => Math.min(longest, to(done)));
    const input = stageInput({ ...plainly, maxSteps: 2, graduation, collapse: withoutCollapse });
    const { end } = await trainStage(ports, input, null, ports.gate);
    count += Number(end === 'graduated');
  }
  return count / STAGES;
}

test.each([
  ['by one step at each', (done: number) => done + 2],
  ['to twice its steps', (done: number) => 2 * (done + 1)],
  ['now longer, now shorter', (done: number) => done + (done % 3 === 0 ? 2 : 9)],
])(
  'a policy just at its goal graduates no oftener than stated in a stage that is prolonged %s as long as it has not',
  async (_, to) => {
    expect(await graduated(to)).toBeLessThanOrEqual(0.1 + LUCK);
  },
);

test('where each look had a part of the newest plan, by luck three in ten would', () => {
  const random = new RandomStream('prolonged by luck');
  const lucky = Array.from({ length: STAGES }, () =>
    Array.from({ length: longest }, (_, i) => i).some(
      (i) => chanceOfAtLeast({ successes: successes(random), trials: 200 }, 0.8) <= 0.1 / (i + 2),
    ),
  ).filter(Boolean).length;
  expect(lucky / STAGES).toBeGreaterThan(0.2);
});

test('a look at a policy that no longer explores is paid for, too', async () => {
  const collapse = { ...withoutCollapse, entropyBelow: 0.5, action: 'ask' as const };
  const input = stageInput({ ...plainly, maxSteps: 4, graduation, collapse });
  const ports = new ScriptedTraining({
    heldOut: [0.5],
    entropy: () => 0.1,
    decisions: ['continue', 'continue', 'continue', 'advance'],
  });
  await trainStage(ports, input, null, go);
  expect(ports.facts.map(({ heldOut }) => heldOut?.errorLeft)).toEqual([0.75, 0.5, 0.25, 0]);
  expect(ports.reports[1]!.heldOut).toMatchObject({ errorLeft: 0.5 });
});

test('what is spent comes with the stage when it is carried on elsewhere', async () => {
  const heldOut = [0.5];
  const to = (done: number) => (done < 2 ? 4 : 7);
  const input = stageInput({ ...plainly, maxSteps: 4, graduation, collapse: withoutCollapse });
  const whole = new Prolonged({ heldOut }, to);
  await trainStage(whole, input, null, whole.gate);
  const [first, second] = [new Prolonged({ heldOut }, to), new Prolonged({ heldOut }, to)];
  let state: StageState | null = null;
  await trainStage(first, input, null, async (now) => {
    await first.gate(now);
    state = JSON.parse(JSON.stringify(now)) as StageState;
    return now.step < 3 ? 'go' : 'stop';
  });
  await trainStage(second, input, state, second.gate);
  const left = ({ facts }: ScriptedTraining) => facts.map((one) => one.heldOut!.errorLeft);
  expect([...left(first), ...left(second)]).toEqual(left(whole));
  expect(left(whole).map((x) => x!.toFixed(6))).toEqual(
    [9, 6, 5, 4, 3, 2, 1].map((twelfths) => (twelfths / 12).toFixed(6)),
  );
  expect(leftOf({ left: 0.5, looks: 5, made: 5 })).toBe(0);
});
