import { armName, HELD_OUT } from '../../core/names.ts';
import { isHinted } from '../../core/episode/facts.ts';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import { succeeded } from '../../core/episode/reward.ts';
import { GradusError } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { Arm } from '../../core/schema/tasks.ts';
import type { Proportion } from '../../core/statistics/intervals.ts';
import { totalTime } from '../../core/time/time-split.ts';
import { figuresOf, sampledToLearn } from '../../core/training/figures.ts';
import { taskRefOf } from '../../core/training/tasks-again.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { rolloutsOfRun, rolloutsPrefix } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import { findTrajectories } from '../../store/rollout/trajectories.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import { specDifferences } from './divergence.ts';
import type { Difference } from './differences.ts';
import { stepsOf } from '../overview/steps.ts';

export const MOST_RUNS = 4;

/** What a curve lies along: steps of the run, tokens sampled to learn from so far, or seconds of the steps so far. */
export const ALONG = ['step', 'tokens', 'time'] as const;
export type Along = (typeof ALONG)[number];

interface ComparedRun {
  run: string;
  steps: number;
  /** After the last step that is known. */
  tokens: number;
  /** Wall seconds of the steps, without what passed between them. */
  seconds: number;
}

interface Curve {
  run: string;
  points: [x: number, y: number | null][];
}

interface HeldOutLevel {
  arm: Arm;
  /** Of each run, its newest measurement, and the step of the run that it was made after; null where there is none. */
  of: ({ step: number; successes: number; trials: number } | null)[];
}

export interface Comparison {
  runs: ComparedRun[];
  /** By path; a run that was imported has no spec. null where one cannot be read. */
  spec: Difference[] | null;
  along: Along;
  /** By the name that core/training/figures.ts gives it; those of which any run knows something. */
  figures: Map<string, Curve[]>;
  heldOut: HeldOutLevel[];
  /** Specs and facts of steps that are damaged, and why. */
  unreadable: string[];
}

/** Throws GradusError('spec', 'runs') unless two to four different runs are named, and as `assertRun`. */
export async function compareRuns(
  store: ObjectStore,
  runs: readonly string[],
  along: Along,
): Promise<Comparison> {
  assertRuns(runs);
  const damaged: string[] = [];
  const specs = await Promise.all(runs.map((run) => specOfRun(store, run, { damaged })));
  const read = await Promise.all(runs.map((run) => stepsOf(store, run)));
  const placed = read.map(({ steps }) => placesAlong(steps));
  return {
    runs: runs.map((run, r) => {
      const { tokens = 0, time: seconds = 0 } = placed[r]!.at(-1) ?? {};
      return { run, steps: placed[r]!.length, tokens, seconds };
    }),
    spec: damaged.length === 0 ? specDifferences(specs) : null,
    along,
    figures: curvesOf(
      runs,
      read.map(({ steps }) => steps),
      placed,
      along,
    ),
    heldOut: heldOutOf(read.map(({ steps }) => steps)),
    unreadable: [...damaged, ...read.flatMap(({ unreadable }) => unreadable.map(({ message }) => message))],
  };
}

function assertRuns(runs: readonly string[]): void {
  if (runs.length >= 2 && runs.length <= MOST_RUNS && new Set(runs).size === runs.length) return;
  throw new GradusError(
    'spec',
    'runs',
    `name two to ${MOST_RUNS} different runs to compare, not ${runs.length}`,
  );
}

/** Where each step lies. */
function placesAlong(steps: readonly StoredStep[]): Record<Along, number>[] {
  let [tokens, time] = [0, 0];
  return steps.map((facts) => {
    tokens += sampledToLearn(facts);
    time += totalTime(facts.circumstances.seconds);
    return { step: facts.step, tokens, time };
  });
}

function curvesOf(
  runs: readonly string[],
  steps: readonly StoredStep[][],
  placed: readonly Record<Along, number>[][],
  along: Along,
): Map<string, Curve[]> {
  const figures = steps.map((of) => of.map((step) => figuresOf(step)));
  const names = new Set(figures.flatMap((of) => of.flatMap((one) => Object.keys(one))));
  return new Map(
    [...names].map((name) => [
      name,
      runs.map((run, r): Curve => ({
        run,
        points: figures[r]!.map((of, i) => [placed[r]![i]![along], of[name] ?? null]),
      })),
    ]),
  );
}

function heldOutOf(steps: readonly StoredStep[][]): HeldOutLevel[] {
  const levels = new Map<string, HeldOutLevel>();
  steps.forEach((of, r) => {
    for (const { step, heldOut } of of) {
      for (const { arm, successes, trials } of heldOut?.arms ?? []) {
        const level = levels.get(armName(arm)) ?? { arm, of: steps.map(() => null) };
        level.of[r] = { step, successes, trials };
        levels.set(armName(arm), level);
      }
    }
  });
  return [...levels.values()].toSorted(
    (a, b) => a.arm.environment.localeCompare(b.arm.environment) || a.arm.level - b.arm.level,
  );
}

/** A step of a stage, or an evaluation. */
export interface ComparisonRequest {
  stage: string;
  step: number;
}

export interface CommonEpisode {
  group: number;
  episode: number;
  success: boolean | null;
  reward: number | null;
}

interface CommonTask {
  ref: TaskRef;
  prompt: string;
  /** Of each run, its samples. */
  of: CommonEpisode[][];
}

export interface CommonTasks {
  at: ComparisonRequest;
  /** Tasks that every run was asked there, in the order of the first. */
  tasks: CommonTask[];
  /** Of each run, over these tasks: successes of the samples of which it can be said, and how many such a task has. */
  success: (Proportion & { samples: number })[];
  /** Of two runs with a sample each: tasks that both solved, only the first, only the second, neither. */
  solved: { both: number; first: number; second: number; neither: number } | null;
  /** Groups that are damaged, and why. */
  unreadable: string[];
}

/**
 * Where all of the runs were asked something, the last evaluation first: the report on the test split, then held-out
 * evaluations from the last one on, then steps.
 */
export async function askedOfAll(store: ObjectStore, runs: readonly string[]): Promise<ComparisonRequest[]> {
  const asked = await Promise.all(runs.map((run) => stagesOf(store, run)));
  const common = asked[0]!.filter((name) => asked.every((names) => names.includes(name)));
  const places = await inParallel(common, async (stage) => {
    const steps = await Promise.all(runs.map((run) => stepsIn(store, run, stage)));
    return steps[0]!
      .filter((step) => steps.every((all) => all.includes(step)))
      .map((step) => ({ stage, step }));
  });
  const rank = ({ stage }: ComparisonRequest): number =>
    stage === 'after' ? 0 : stage.endsWith(HELD_OUT) ? 1 : stage === 'before' ? 2 : 3;
  return places.flat().toSorted((a, b) => rank(a) - rank(b) || b.step - a.step);
}

async function stagesOf(store: ObjectStore, run: string): Promise<string[]> {
  const above = rolloutsOfRun(run);
  const { folders } = await store.listFolder(above);
  return folders.map((folder) => folder.slice(above.length, -1));
}

async function stepsIn(store: ObjectStore, run: string, stage: string): Promise<number[]> {
  const above = rolloutsPrefix(run, stage);
  const { folders } = await store.listFolder(above);
  return folders.map((folder) => Number(folder.slice(above.length, -1)));
}

/** Both, or all, episodes of tasks that the runs have in common at one place: the same coordinates in the same split. */
export async function commonTasks(
  store: ObjectStore,
  runs: readonly string[],
  at: ComparisonRequest,
): Promise<CommonTasks> {
  const unreadable: string[] = [];
  const found = await Promise.all(runs.map((run) => tasksAt(store, run, at, unreadable)));
  const tasks = [...found[0]!].flatMap(([name, { ref, prompt }]): CommonTask[] =>
    found.every((of) => of.has(name)) ? [{ ref, prompt, of: found.map((of) => of.get(name)!.episodes) }] : [],
  );
  const success = runs.map((_, r) => {
    const known = tasks.map(({ of }) => of[r]!.flatMap((one) => (one.success === null ? [] : [one.success])));
    const [successes, trials] = [known.flat().filter(Boolean).length, known.flat().length];
    return { successes, trials, samples: trials / known.filter(({ length }) => length > 0).length || 1 };
  });
  const single = runs.length === 2 && tasks.every(({ of }) => of.every((some) => some.length === 1));
  const count = (a: boolean, b: boolean): number =>
    tasks.filter(({ of }) => of[0]![0]!.success === a && of[1]![0]!.success === b).length;
  return {
    at,
    tasks,
    success,
    unreadable,
    solved: single
      ? {
          both: count(true, true),
          first: count(true, false),
          second: count(false, true),
          neither: count(false, false),
        }
      : null,
  };
}

/** Tasks of one place by their coordinates, each with its episodes without hints: as a higher tier judged them, where one has. */
async function tasksAt(
  store: ObjectStore,
  run: string,
  { stage, step }: ComparisonRequest,
  damaged: string[],
): Promise<Map<string, Omit<CommonTask, 'of'> & { episodes: CommonEpisode[] }>> {
  const reward = (await specOfRun(store, run, { damaged }))?.reward;
  const folder = `${rolloutsPrefix(run, stage)}${String(step).padStart(6, '0')}/`;
  const { keys } = await store.listFolder(folder);
  const numbered = keys.toSorted().flatMap((key) => {
    const [, number, judged] = /\/group-(\d+)(\.judged)?\.json$/.exec(key) ?? [];
    return number === undefined ? [] : [{ key, group: Number(number), judged: judged !== undefined }];
  });
  const counting = numbered.filter(
    ({ group, judged }) => judged || !numbered.some((other) => other.group === group && other.judged),
  );
  const tasks = new Map<string, Omit<CommonTask, 'of'> & { episodes: CommonEpisode[] }>();
  // One at a time: a group may be large.
  for (const { key, group } of counting) {
    const found = await unlessDamaged(damaged, () => findTrajectories(store, key));
    if (found !== null) add(found, group);
  }
  return tasks;

  function add({ tasks: asked, episodes }: RolloutGroup, group: number): void {
    episodes.forEach(({ task, outcome }, episode) => {
      const { ref: posed, prompt } = asked[task]!;
      // With a hint it is another task.
      if (isHinted(asked[task]!)) return;
      const ref = taskRefOf(posed);
      // A place in another source is another task.
      const { source } = posed;
      const name = JSON.stringify([ref.environment, ref.split, ref.level, ref.index, source?.sha256 ?? null]);
      const known = tasks.get(name) ?? { ref, prompt, episodes: [] };
      tasks.set(name, known);
      known.episodes.push({
        group,
        episode,
        success: outcome && reward ? succeeded(reward.components, outcome) : null,
        reward: outcome && isRewarded(outcome) ? outcome.reward : null,
      });
    });
  }
}
