import { expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { chanceOfAtLeast } from '../../../../core/statistics/binomial.ts';
import { trainStage } from '../../../../core/training/stage.ts';
import { go, ScriptedTraining, stageInput, stageSpec } from './scripted-training.ts';

// Whole stages that look twenty times at a policy that is just not good enough, by the stage's own code. What it
// decides is compared with the confidence that the spec has.

const STAGES = 400;
const LOOKS = 20;
const TASKS = 200;
const GOAL = 0.8;
const CONFIDENCE = 0.9;
/** Two standard errors of a rate of 0.1 in so many stages. */
const LUCK = 2 * Math.sqrt((0.1 * 0.9) / STAGES);

const graduation = {
  successAtLeast: GOAL,
  confidence: CONFIDENCE,
  tasks: TASKS,
  everySteps: 1,
  unjudgedAtMost: 0.02,
};

/** How many stages graduate; `looks` draws the successes of each evaluation of one stage. */
async function graduated(looks: (random: RandomStream) => () => number): Promise<number> {
  let count = 0;
  for (let seed = 0; seed < STAGES; seed++) {
    const next = looks(new RandomStream('looks', seed));
    const heldOut = Array.from({ length: LOOKS }, () => next() / TASKS);
    const input = stageInput({
      arms: stageSpec.arms.slice(0, 1),
      maxSteps: LOOKS,
      graduation,
      plateau: { ...stageSpec.plateau, evaluations: 100 },
      collapse: { ...stageSpec.collapse, successBelowBest: 0 },
    });
    const { end } = await trainStage(new ScriptedTraining({ heldOut }), input, null, go);
    count += Number(end === 'graduated');
  }
  return count / STAGES;
}

const successes = (random: RandomStream, chances: readonly number[]): number =>
  chances.reduce((sum, chance) => sum + Number(random.uniform() < chance), 0);

const allAlike = Array.from({ length: TASKS }, () => GOAL);
/** As a policy is that is sure of most tasks: some are never solved, some always, some now and then. */
const unlike = Array.from({ length: TASKS }, (_, task) => (task % 10 < 1 ? 0 : task % 10 < 6 ? 1 : 0.75));

test.each([
  ['whose tasks are all as hard', (random: RandomStream) => () => successes(random, allAlike)],
  ['that is sure of most tasks', (random: RandomStream) => () => successes(random, unlike)],
  [
    'whose tasks are drawn once, for all of its looks',
    (random: RandomStream) => {
      const chances = Array.from({ length: TASKS }, () => Number(random.uniform() < GOAL));
      return () => successes(random, chances);
    },
  ],
])(
  'in twenty looks at a policy just at its goal, %s, a stage graduates no oftener than it says',
  async (_, looks) => {
    expect(await graduated(looks)).toBeLessThanOrEqual(1 - CONFIDENCE + LUCK);
  },
);

test('where each look was judged as if it were the only one, most stages would graduate by luck', () => {
  const random = new RandomStream('each look alone');
  const byLuck = Array.from({ length: STAGES }, () =>
    Array.from({ length: LOOKS }, () => successes(random, allAlike)).some(
      (solved) => chanceOfAtLeast({ successes: solved, trials: TASKS }, GOAL) <= 1 - CONFIDENCE,
    ),
  ).filter(Boolean).length;
  expect(byLuck / STAGES).toBeGreaterThan(0.6);
});

test('a policy that is better than its goal by a tenth graduates in nearly every stage', async () => {
  const better = allAlike.map((chance) => chance + 0.1);
  expect(await graduated((random) => () => successes(random, better))).toBeGreaterThan(0.95);
});
