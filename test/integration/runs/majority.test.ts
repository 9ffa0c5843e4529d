import { beforeAll, expect, test } from 'vitest';
import type { Episode, RolloutGroup } from '../../../core/episode/episode.ts';
import { isRewarded } from '../../../core/episode/outcome.ts';
import { succeeded } from '../../../core/episode/reward.ts';
import { figuresOf } from '../../../core/training/figures.ts';
import { labelsOf, voteOf } from '../../../core/training/labels.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import { reweighStep } from '../../../runs/reweigh/reweigh.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { DONE } from '../../support/ended.ts';
import { opponentsSpec } from '../../support/opponents-spec.ts';
import { openPlainRuns } from './plain-runs.ts';

// R-Zero's labels and filter, without Temporal: a solver learns from the answer that most of its own samples give, and a
// challenger is paid by how many they are.

const { store, train } = await openPlainRuns();
const FILTER = { min: 0.25, max: 0.35 };
const { components } = opponentsSpec().reward;
// Few tasks get a label from a model that knows so little: with these many, some do on every processor.
const voted = opponentsSpec({ filter: FILTER });
const [warmStart, challenger, solver] = voted.stages;
const many = { ...solver, groupsPerStep: 72, selfPlay: { ...solver.selfPlay, proposals: 48 } };
const VOTED = { ...voted, stages: [warmStart, challenger, many] };
let steps: StepFacts[];
const stepsOf = (stage: string): StepFacts[] => steps.filter((one) => one.stage === stage);

/** Groups of a step that solve, as they were rolled out and as they were labelled. */
async function solvedIn(run: string, stage: string, step: number) {
  const { keys } = await store.listFolder(`${rolloutsPrefix(run, stage)}${String(step).padStart(6, '0')}/`);
  const groups: RolloutGroup[] = await Promise.all(
    keys.toSorted().map(async (key) => loadTrajectories(store, (await store.head(key))!)),
  );
  const solving = groups.filter(({ tasks }) => tasks[0]!.ref.level <= 3);
  const isLabelled = ({ id }: RolloutGroup): boolean => id.endsWith('.judged');
  return { sampled: solving.filter((one) => !isLabelled(one)), labelled: solving.filter(isLabelled) };
}

const truthOf = ({ outcome }: Episode): boolean | null =>
  succeeded(components as RewardSpec['components'], outcome!);

beforeAll(async () => {
  expect((await train('voted', VOTED)).end).toEqual(DONE);
  steps = await readSteps(store, 'voted');
}, 600_000);

test('the solver is paid for agreeing with the majority of its samples, and nothing is learnt outside of the filter', async () => {
  let paid = 0;
  for (const { stageStep, rollout, batch } of stepsOf('solver')) {
    const { sampled, labelled } = await solvedIn('voted', 'solver', stageStep);
    expect(labelled.map(({ id }) => id)).toEqual(sampled.map(({ id }) => `${id}.judged`));
    for (const [g, group] of labelled.entries()) {
      const labels = labelsOf(sampled[g]!, FILTER);
      for (const [e, episode] of group.episodes.entries()) {
        const label = labels[episode.task]!;
        const outcome = episode.outcome!;
        // What the environment has said stays with what was sampled.
        expect(truthOf(sampled[g]!.episodes[e]!)).not.toBeNull();
        if (label.kind !== 'labelled') {
          expect(outcome.kind).toBe('abstained');
          continue;
        }
        expect(isRewarded(outcome)).toBe(true);
        const agrees = voteOf(sampled[g]!.episodes[e]!) === label.label;
        expect(isRewarded(outcome) && outcome.reward).toBe(agrees ? 1 : 0);
        expect(truthOf(episode)).toBe(truthOf(sampled[g]!.episodes[e]!));
        paid += Number(agrees);
      }
    }
    const { labels, solver } = rollout!.selfPlay!;
    const { tasks, tooFew, undecided, tooHard, tooEasy, learnt, right, checked } = labels!;
    expect(tasks).toBe(tooFew + undecided + tooHard + tooEasy + learnt);
    expect(checked).toBe(tasks - tooFew - undecided);
    expect(right).toBeLessThanOrEqual(checked);
    expect(solver.rewardCount).toBe(8 * learnt);
    expect(batch!.sequences).toBeLessThanOrEqual(8 * learnt);
    // Success in training is that of all that was sampled, by the environment.
    expect(rollout!.arms.reduce((sum, { trials }) => sum + trials, 0)).toBe(8 * tasks);
  }
  expect(paid).toBeGreaterThan(0);
});

test('how many labels are right is told in every step of both stages', () => {
  for (const step of [...stepsOf('challenger'), ...stepsOf('solver')]) {
    const { right, checked } = step.rollout!.selfPlay!.labels!;
    const figures = figuresOf(step);
    expect(figures['self-play/label-accuracy']).toBe(checked === 0 ? undefined : right / checked);
    expect(figures['self-play/filtered'] ?? 0).toBeGreaterThanOrEqual(0);
  }
  // The challenger's opponent learns nothing, so nothing is filtered there.
  for (const { rollout } of stepsOf('challenger'))
    expect(rollout!.selfPlay!.labels).toMatchObject({ tooHard: 0, tooEasy: 0 });
});

test('what each step learnt from is weighed again to the bit', async () => {
  for (const { stage, stageStep } of [...stepsOf('challenger'), ...stepsOf('solver')]) {
    const { reproduced } = await reweighStep(store, { run: 'voted', stage, step: stageStep }, new Map());
    expect(reproduced.exactly).not.toBe(false);
  }
});

test('where every task is filtered a step says why nothing was learnt, and the run goes on', async () => {
  // No share of up to eight votes is this one.
  const nothing = opponentsSpec({ maxSteps: 2, filter: { min: 0.31, max: 0.31 } });
  expect((await train('filtered', nothing)).end).toEqual(DONE);
  const solver = (await readSteps(store, 'filtered')).filter(({ stage }) => stage === 'solver');
  expect(solver).toHaveLength(2);
  for (const { rollout, batch, learner, decision } of solver) {
    const { tasks, learnt } = rollout!.selfPlay!.labels!;
    expect(tasks).toBeGreaterThan(0);
    expect(learnt).toBe(0);
    expect(batch?.sequences ?? 0).toBe(0);
    expect(learner).toBeNull();
    expect(decision).toMatchObject({
      kind: 'continue',
      reason: expect.stringMatching(
        /^no task was given to the solver's training: of \d+ there were/,
      ) as string,
    });
  }
}, 600_000);
