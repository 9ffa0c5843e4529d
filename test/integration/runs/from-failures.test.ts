import { beforeAll, expect, test } from 'vitest';
import { createCurriculum } from '../../../activities/training/curriculum.ts';
import type { GroupTask } from '../../../core/episode/episode.ts';
import { succeeded } from '../../../core/episode/reward.ts';
import type { RewardSpec } from '../../../core/schema/reward.ts';
import type { RlStageSpec } from '../../../core/schema/stages/rl.ts';
import type { StepFacts } from '../../../core/training/step-facts.ts';
import type { TaskSource } from '../../../core/training/task-source.ts';
import { taskSourceKey } from '../../../store/keys.ts';
import { findChecked } from '../../../store/training/variations.ts';
import { findTrajectories, putTrajectories, rolloutKeys } from '../../../store/rollout/trajectories.ts';
import { specOfRun } from '../../../store/run/find-run.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { readTaskSource } from '../../../store/training/task-source.ts';
import { DONE } from '../../support/ended.ts';
import { fromFailuresSpec } from '../../support/from-failures-spec.ts';
import { openPlainRuns } from './plain-runs.ts';

// Two phases, of which the second has tasks made of what the first failed, without Temporal.

const { store, train, environments } = await openPlainRuns();
const SPEC = fromFailuresSpec();
const { components } = SPEC.reward as unknown as RewardSpec;
let steps: StepFacts[];
const tasksOf = async (stage: string): Promise<{ task: GroupTask; solved: number; samples: number }[]> => {
  const all = [];
  for (const key of await rolloutKeys(store, 'phases', stage)) {
    const { tasks, episodes } = (await findTrajectories(store, key))!;
    for (const [at, task] of tasks.entries()) {
      const own = episodes.filter((episode) => episode.task === at);
      const solved = own.filter(({ outcome }) => succeeded(components, outcome!)).length;
      all.push({ task, solved, samples: own.length });
    }
  }
  return all;
};

/** The tasks that the second phase has made. */
async function source(): Promise<TaskSource> {
  const key = taskSourceKey('phases', steps[0]!.rollout!.fromFailures!.source!);
  return readTaskSource(store, (await store.head(key))!);
}

beforeAll(async () => {
  expect((await train('phases', SPEC)).end).toEqual(DONE);
  steps = (await readSteps(store, 'phases')).filter(({ stage }) => stage === 'phase-2');
}, 600_000);

test('what the first phase failed is varied, and each variation is kept or left out by a reason', async () => {
  const { value } = (await findChecked(store, { run: 'phases', stage: 'phase-2' }))!;
  const failed = (await tasksOf('phase-1')).filter(({ solved, samples }) => 2 * solved < samples);
  const names = new Set(failed.map(({ task: { ref } }) => `${ref.level} ${ref.index}`));
  expect(value.failed.length).toBe(Math.min(16, names.size));
  for (const { ref } of value.failed) expect(names).toContain(`${ref.level} ${ref.index}`);
  const facts = steps[0]!.rollout!.fromFailures!;
  const { none, setAside, known, unsolved, tooHard, tooEasy, kept } = facts;
  expect(facts).toMatchObject({ failed: value.failed.length, variations: 3 * value.failed.length });
  expect(none + setAside + known + unsolved + tooHard! + tooEasy! + kept).toBe(facts.variations);
  expect(setAside).toBeGreaterThan(0);
  // A model without a critic has values of 0.
  const values = Object.values((await source()).arms).flatMap((tasks) => tasks.map((one) => one.value!));
  expect(values).toHaveLength(kept);
  expect(new Set(values).size).toBeGreaterThan(1);
  for (const one of values) expect(Math.abs(one)).toBeLessThanOrEqual(1);
});

test('half of each step is what was kept, as the source has it', async () => {
  const { kept, source: sha256 } = steps[0]!.rollout!.fromFailures!;
  const drawn = (await tasksOf('phase-2')).filter(({ task: { ref } }) => ref.source !== undefined);
  expect(drawn).toHaveLength(steps.length * Math.min(4, kept));
  const { arms } = await source();
  expect(Object.values(arms).flat()).toHaveLength(kept);
  for (const { task } of drawn) {
    expect(task.ref.source!.sha256).toBe(sha256);
    const of = arms[`calculator:${task.ref.level}`]![task.ref.index]!;
    expect(task.ref.made).toEqual([of.proposal]);
    const { told, expression } = of.proposal as { told: boolean; expression: string };
    if (!told) expect(task.prompt).toBe(expression);
  }
  // One that fails is not taken for the generated task of its place.
  expect(drawn.filter(({ task }) => task.retried)).toEqual([]);
});

test('what the first phase left of a step that it did not do was failed by nobody', async () => {
  const curriculum = createCurriculum({ store, environments });
  const spec = (await specOfRun(store, 'phases'))!;
  const { arms, fromFailures: how } = spec.stages.find(({ name }) => name === 'phase-2') as RlStageSpec;
  const { checkpoint } = steps.at(-1)!;
  const { temperature, maxTurns, maxCompletionTokens } = spec.sampling;
  const failedFor = async (stage: string) => {
    const request = { run: 'phases', seed: 5, stage, from: 'phase-1', arms, checkpoint, temperature };
    const limits = { maxTurns, maxCompletionTokens };
    const asked = { ...how!, ...request, reward: spec.reward, limits };
    await curriculum.varyFailures(asked, new AbortController().signal);
    return (await findChecked(store, { run: 'phases', stage }))!.value.failed.map(({ ref }) => ref);
  };
  const before = await failedFor('before');
  const [key] = await rolloutKeys(store, 'phases', 'phase-1');
  const group = (await findTrajectories(store, key!))!;
  const tasks = group.tasks.map((task) => ({ ...task, ref: { ...task.ref, index: task.ref.index + 1e6 } }));
  await putTrajectories(store, { run: 'phases', stage: 'phase-1', step: 3 }, { ...group, tasks });
  expect(await failedFor('after')).toEqual(before);
});
