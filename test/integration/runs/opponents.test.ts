import { beforeAll, expect, test } from 'vitest';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { opponentsSpec } from '../../support/opponents-spec.ts';
import { openPlainRuns } from './plain-runs.ts';

// A challenger and a solver with weights of their own, without Temporal.

const { store, train } = await openPlainRuns();
const STAGES = ['challenger', 'solver'] as const;
type Stage = (typeof STAGES)[number];
let steps: StepFacts[];
const stepsOf = (stage: string): StepFacts[] => steps.filter((one) => one.stage === stage);
const weightsAfter = (stage: string): string => stepsOf(stage).at(-1)!.checkpoint.weights;

/** Groups of a step as they were rolled out, by role. */
async function groupsOf(stage: Stage, step: number, run = 'both') {
  const { keys } = await store.listFolder(`${rolloutsPrefix(run, stage)}${String(step).padStart(6, '0')}/`);
  const sampled = keys.filter((key) => !key.endsWith('.judged.json'));
  const groups: RolloutGroup[] = await Promise.all(
    sampled.map(async (key) => loadTrajectories(store, (await store.head(key))!)),
  );
  const asks = ({ tasks }: RolloutGroup): boolean => tasks[0]!.ref.level > 3;
  return { proposed: groups.filter(asks), solved: groups.filter((group) => !asks(group)) };
}

const countOf = (groups: readonly RolloutGroup[]): number =>
  groups.reduce((sum, { episodes }) => sum + episodes.length, 0);

beforeAll(async () => {
  expect((await train('both', opponentsSpec())).end).toEqual(DONE);
  steps = await readSteps(store, 'both');
}, 600_000);

test('each role is sampled with the weights that play it, and an opponent stays as it is', async () => {
  const base = weightsAfter('warm-start');
  const challenger = weightsAfter('challenger');
  expect(new Set([base, challenger, weightsAfter('solver')]).size).toBe(3);
  for (const stage of STAGES) {
    let own = base;
    for (const { stageStep, checkpoint } of stepsOf(stage)) {
      const { proposed, solved } = await groupsOf(stage, stageStep);
      const expected = stage === 'challenger' ? [own, base] : [challenger, own];
      for (const { weights } of proposed) expect(weights).toBe(expected[0]);
      for (const { weights } of solved) expect(weights).toBe(expected[1]);
      own = checkpoint.weights;
    }
  }
});

test('each step meets one policy of a league, and says which', async () => {
  expect((await train('league', opponentsSpec({ maxSteps: 6, league: true }))).end).toEqual(DONE);
  const all = await readSteps(store, 'league');
  const rateOf = ({ heldOut }: StepFacts): number => {
    const sum = (of: 'successes' | 'trials') => heldOut!.arms.reduce((total, arm) => total + arm[of], 0);
    return sum('successes') / sum('trials');
  };
  // A stage whose steps are used up ends with the best that it has evaluated, the first of equals.
  const after = (stage: string) =>
    all
      .filter((step) => step.stage === stage && step.heldOut !== null)
      .reduce((best, step) => (rateOf(step) > rateOf(best) ? step : best)).checkpoint.weights;
  const met = new Set<string>();
  for (const { stage, stageStep, rollout } of all.filter((step) => step.stage === 'solver')) {
    const { opponent } = rollout!.selfPlay!;
    met.add(opponent!);
    const { proposed } = await groupsOf(stage as Stage, stageStep, 'league');
    expect(proposed.length).toBeGreaterThan(0);
    for (const { weights } of proposed) expect(weights).toBe(after(opponent!));
  }
  expect([...met].toSorted()).toEqual(['challenger', 'warm-start']);
}, 600_000);

test('the role of the policy alone is reported and learnt from', async () => {
  for (const stage of STAGES)
    for (const { stageStep, rollout, batch } of stepsOf(stage)) {
      const { proposed, solved } = await groupsOf(stage, stageStep);
      const [own, other] = stage === 'challenger' ? [proposed, solved] : [solved, proposed];
      expect(countOf(other)).toBeGreaterThan(0);
      expect(rollout!.episodes).toBe(countOf(own));
      expect(rollout!.otherTokens).toBeGreaterThan(0);
      expect(batch!.sequences).toBeLessThanOrEqual(countOf(own));
      const { reproduced } = await reweighStep(store, { run: 'both', stage, step: stageStep }, new Map());
      expect(reproduced).toEqual({ exactly: true });
    }
});

test('a solver that stays as it is solves new tasks alone', async () => {
  for (const { stageStep, rollout } of stepsOf('challenger')) {
    const { made, repeated, trials } = rollout!.selfPlay!;
    expect(made - repeated).toBeGreaterThan(0);
    const { solved } = await groupsOf('challenger', stageStep);
    expect(countOf(solved)).toBe(8 * (made - repeated));
    expect(trials).toBe(countOf(solved));
  }
});

test('a challenger is measured by whether what it proposes is a task, a solver by what it solves', () => {
  const levels = (stage: string) =>
    stepsOf(stage)
      .at(-1)!
      .heldOut!.arms.map(({ arm: { level } }) => level);
  expect(levels('challenger')).toEqual([4]);
  expect(levels('solver')).toEqual([1]);
});
