import { HELD_OUT } from '../../core/names.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { StepFacts } from '../../core/training/step-facts.ts';
import { encodeBatch, loadBatch } from '../../store/training/batches.ts';
import { specOfRun } from '../../store/run/find-run.ts';
import { inParallel } from '../../store/in-parallel.ts';
import { batchKey, checkpointsPrefix, rolloutsPrefix, stepFactsKey, stepsPrefix } from '../../store/keys.ts';
import { replayedRollouts } from '../../store/training/replayed-groups.ts';
import { takenRollouts } from '../../store/training/taken-groups.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { StoredStep } from '../../store/training/step-facts.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { unlessDamaged } from '../../store/objects/unless-damaged.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { differencesOf } from './differences.ts';
import type { Difference } from './differences.ts';
import { groupDifference } from './episode-difference.ts';
import type { EpisodeDifference } from './episode-difference.ts';
import { stepsOf } from '../overview/steps.ts';
import type { StepsOfRun } from '../overview/steps.ts';

/** Two of whatever is compared, in the order in which the runs were named. */
type Pair<T> = [T, T];

export interface StepOfRun {
  stage: string;
  /** Of the stage, from 1. */
  stageStep: number;
  /** Of the run, from 1. */
  step: number;
}

/** Where two runs part. */
export interface Parting {
  /** null: before the first step. */
  at: StepOfRun | null;
  /**
   * `begin`: the weights that they began with. `course`: one goes on with another stage or step than the other. `tasks`:
   * what was asked, or by which policy. `sampled`: a token, a log-prob, or what was read. `batch`: what of the same episodes
   * was learnt. `demonstrations`: the batch of a supervised step, for which nothing is sampled. `learner`: the weights that
   * came of the same batch.
   */
  what: 'begin' | 'course' | 'tasks' | 'sampled' | 'batch' | 'demonstrations' | 'learner';
  /** Of the step, as its facts have them; null where both have the same. */
  environments: Pair<string> | null;
  /** Where `sampled` is of an evaluation after the step, its name. */
  evaluation: string | null;
  /** Name of the first rollout group that is not the same, as its object is called. */
  group: string | null;
  /** The first episode of it that is not the same, and how. */
  episode: { index: number; difference: EpisodeDifference } | null;
  /** Of the groups that both have. */
  counts: GroupCounts | null;
  /** What of the batch is another one, in words; null where it was not looked at. */
  batch: string | null;
}

interface GroupCounts {
  groups: number;
  /** Groups that are not the same, but for how long something took. */
  other: number;
  /** Episodes with other tokens. */
  otherTokens: number;
  /** Of those with the same tokens. */
  otherLogprobs: number;
  /** Of those with the same tokens and log-probs. */
  otherVerdicts: number;
}

export interface RunDivergence {
  runs: Pair<string>;
  /** By path, without the run's name and what follows from other fields; null where one cannot be read. */
  spec: Difference[] | null;
  /** What is damaged and was left out, and why: a step of which one run's facts are, a group of which one run's is. */
  unreadable: string[];
  /** Steps that both have, and how many more each has. */
  common: number;
  further: Pair<number>;
  /** The first step of which they know other facts, and which; clocks and incidents have no part in it. */
  facts: { at: StepOfRun; differences: Difference[] } | null;
  /** null: in all that both have done they do not part, as far as was looked. */
  parting: Parting | null;
  /** `facts`: episodes were read only where facts differ. `episodes`: all of them, up to the parting. */
  looked: 'facts' | 'episodes';
  /** Steps of other facts and the same weights that were not looked into, because there are many of them. */
  unlooked: number;
  /** Facts that they have in common took another time, or met other incidents. */
  clocks: boolean;
}

/** Steps that are looked into where facts differ and the weights after them do not. */
export const MOST_LOOKS = 64;
/** Groups of which it is asked at once whether they are the same. */
const ASKED_AT_ONCE = 256;

/**
 * Finds where two runs part: from the digests of what steps left to the groups of the step, its episodes and their tokens,
 * with two groups in memory at a time. `episodes` has all groups compared, also where the facts of their step agree: only
 * that finds an object which was replaced. Throws as `assertRun`, and what the store throws when it is away; what is damaged is left out, and named.
 */
export async function divergenceOf(
  store: ObjectStore,
  runs: Pair<string>,
  { episodes = false }: { episodes?: boolean } = {},
): Promise<RunDivergence> {
  const damaged: string[] = [];
  const specs = await both(runs, (run) => specOfRun(store, run, { damaged }));
  const spec = damaged.length === 0 ? specDifferences(specs) : null;
  const [ones, others] = await both(runs, (run) => stepsOf(store, run));
  const broken = brokenIn([ones, others], runs);
  damaged.push(...[...ones.unreadable, ...others.unreadable].map(({ message }) => message));
  const [one, other] = [ones, others].map(({ steps }, i) =>
    steps.filter(({ stage, stageStep }) => !broken.has(stepName(runs[i]!, stage, stageStep))),
  ) as Pair<StoredStep[]>;
  const common = Math.min(one.length, other.length);
  let facts: RunDivergence['facts'] = null;
  let clocks = false;
  let looks = 0;
  let unlooked = 0;
  let parting = await beginning(store, runs);
  for (let i = 0; i < common && parting === null; i++) {
    const [a, b] = [one[i]!, other[i]!];
    const at = placeOf(a);
    if (a.stage !== b.stage || a.stageStep !== b.stageStep) {
      parting = { ...NOTHING_ELSE, at, what: 'course' };
      break;
    }
    clocks ||= differencesOf([a.circumstances, b.circumstances]).length > 0;
    const differences = differencesOf([timeless(a), timeless(b)]);
    if (differences.length > 0) facts ??= { at, differences };
    const weights = a.checkpoint.weights !== b.checkpoint.weights;
    if (differences.length === 0 && !episodes) continue;
    // What was only measured otherwise takes no part in the course of a run.
    if (!weights && !episodes && ++looks > MOST_LOOKS) {
      unlooked++;
      continue;
    }
    parting = await lookInto(store, runs, at, {
      weights,
      rolledOut: a.rollout !== null || b.rollout !== null,
      damaged,
    });
    if (parting !== null && a.environment !== b.environment)
      parting.environments = [a.environment, b.environment];
  }
  return {
    runs,
    spec,
    unreadable: damaged,
    common,
    further: [one.length - common, other.length - common],
    facts,
    parting,
    looked: episodes ? 'episodes' : 'facts',
    unlooked,
    clocks,
  };
}

const both = <T, R>([a, b]: Pair<T>, work: (one: T) => Promise<R>): Promise<Pair<R>> =>
  Promise.all([work(a), work(b)]);

/** A step is compared where both can be read; by its name without the run's. */
const stepName = (run: string, stage: string, stageStep: number): string =>
  stepFactsKey(run, stage, stageStep).slice(stepsPrefix(run).length);

const brokenIn = (found: Pair<StepsOfRun>, runs: Pair<string>): ReadonlySet<string> =>
  new Set(
    found.flatMap(({ unreadable }, i) =>
      unreadable.map(({ key }) => key.slice(stepsPrefix(runs[i]!).length)),
    ),
  );

const placeOf = ({ stage, stageStep, step }: StepOfRun): StepOfRun => ({ stage, stageStep, step });

const NOTHING_ELSE: Omit<Parting, 'at' | 'what'> = {
  environments: null,
  evaluation: null,
  group: null,
  episode: null,
  counts: null,
  batch: null,
};

/** A run's name is in keys alone; a plan follows from the algorithm. */
export function specDifferences(specs: readonly (CurriculumSpec | null)[]): Difference[] {
  return differencesOf(
    specs.map((spec) => {
      if (spec === null) return undefined;
      const { run: _, stages, ...rest } = spec;
      return {
        ...rest,
        stages: stages.map((stage) => {
          if (stage.kind !== 'rl') return stage;
          const { plan: __, ...written } = stage;
          return written;
        }),
      };
    }),
  );
}

/** Facts without clocks, and without the run's name, which is in the keys of checkpoints. */
function timeless(step: StepFacts) {
  const { circumstances: _, checkpoint, ...facts } = step;
  const { weights, step: number } = checkpoint;
  return { ...facts, checkpoint: { weights, step: number } };
}

/** The weights of checkpoint 0, where both have one. */
async function beginning(store: ObjectStore, runs: Pair<string>): Promise<Parting | null> {
  const [a, b] = await both(runs, async (run) => {
    const prefix = checkpointsPrefix(run);
    const { folders } = await store.listFolder(prefix);
    return folders.map((folder) => folder.slice(prefix.length)).find((name) => name.startsWith('000000-'));
  });
  return a === undefined || b === undefined || a === b ? null : { ...NOTHING_ELSE, at: null, what: 'begin' };
}

async function lookInto(
  store: ObjectStore,
  runs: Pair<string>,
  at: StepOfRun,
  { weights, rolledOut, damaged }: { weights: boolean; rolledOut: boolean; damaged: string[] },
): Promise<Parting | null> {
  const groupsOf = (stage: string, isEvaluation: boolean) =>
    groupsApart(store, runs, { ...at, stage, isEvaluation }, damaged);
  // A supervised stage learns from demonstrations, and what lies under its name is what it was measured by.
  const { apart, ...found } = rolledOut ? await groupsOf(at.stage, false) : NO_GROUPS;
  if (apart !== null) return { ...NOTHING_ELSE, at, what: apart, ...found };
  const [one, other] = await both(runs, (run) => store.head(batchKey(run, at.stage, at.stageStep)));
  if (one?.sha256 !== other?.sha256) {
    const [a, b] = await both<typeof one, TrainBatch | null>([one, other], async (ref) =>
      ref === undefined ? null : unlessDamaged(damaged, () => loadBatch(store, ref)),
    );
    if (a === null || b === null || !isSameUnmarked(a, b)) {
      const unknown = (one && !a) || (other && !b) ? 'it cannot be read' : null;
      const what = rolledOut ? 'batch' : 'demonstrations';
      return { ...NOTHING_ELSE, at, what, ...found, batch: unknown ?? batchDifference(a, b) };
    }
  }
  if (weights) return { ...NOTHING_ELSE, at, what: 'learner', ...found };
  const evaluation = rolledOut ? `${at.stage}${HELD_OUT}` : at.stage;
  const { apart: measured, ...of } = await groupsOf(evaluation, true);
  // What is asked to measure has no part in what is learnt; the same asked, and answered otherwise, tells of the engines.
  return measured === 'sampled' ? { ...NOTHING_ELSE, at, what: measured, evaluation, ...of } : null;
}

interface Found extends Pick<Parting, 'group' | 'episode' | 'counts'> {
  /** null: all was sampled alike. */
  apart: 'tasks' | 'sampled' | null;
}

const NO_GROUPS: Found = { apart: null, group: null, episode: null, counts: null };

/** What a group is called in a step's folder, or beside it. */
const nameIn = (folder: string, key: string): string =>
  (key.startsWith(folder)
    ? key.slice(folder.length)
    : key.slice(key.lastIndexOf('/', key.lastIndexOf('/') - 1) + 1)
  ).replace(/\.json$/, '');

/** The first group of a step that is not the same, and how the episodes of all compare. */
async function groupsApart(
  store: ObjectStore,
  runs: Pair<string>,
  { stage, stageStep, isEvaluation }: StepOfRun & { isEvaluation: boolean },
  damaged: string[],
): Promise<Found> {
  const [one, other] = await both(runs, async (run) => {
    const folder = `${rolloutsPrefix(run, stage)}${String(stageStep).padStart(6, '0')}/`;
    const [{ keys }, taken, replayed] = await Promise.all([
      store.listFolder(folder),
      takenRollouts(store, { run, stage, step: stageStep }),
      replayedRollouts(store, { run, stage, step: stageStep }),
    ]);
    // What later steps made of it is theirs, and what an asynchronous step did not take.
    const own = keys.filter(
      (key) => !/\.late-[^/]+\.json$/.test(key) && (taken === null || key.endsWith('.judged.json')),
    );
    const names = [...own, ...(taken ?? []), ...replayed].map((key) => [nameIn(folder, key), key] as const);
    return new Map(names);
  });
  const counts: GroupCounts = { groups: 0, other: 0, otherTokens: 0, otherLogprobs: 0, otherVerdicts: 0 };
  let sampled: Pick<Found, 'apart' | 'group' | 'episode'> | null = null;
  let judged: Pick<Found, 'apart' | 'group' | 'episode'> | null = null;
  const names = [...new Set([...one.keys(), ...other.keys()])].toSorted();
  const asked = async (name: string): Promise<Pair<BlobRef | undefined>> =>
    both([one.get(name), other.get(name)], async (key) => (key === undefined ? undefined : store.head(key)));
  let known: Pair<BlobRef | undefined>[] = [];
  for (const [i, name] of names.entries()) {
    if (i % ASKED_AT_ONCE === 0) known = await inParallel(names.slice(i, i + ASKED_AT_ONCE), asked);
    const refs = known[i % ASKED_AT_ONCE]!;
    if (!refs[0] || !refs[1]) {
      // Which steps are measured has no part in what is learnt.
      if (isEvaluation) continue;
      sampled ??= { apart: 'tasks', group: name, episode: null };
      continue;
    }
    counts.groups++;
    if (refs[0].sha256 === refs[1].sha256) continue;
    const groups = await unlessDamaged(damaged, () =>
      both([refs[0]!, refs[1]!], (ref) => loadTrajectories(store, ref)),
    );
    if (groups === null) continue;
    const { weights, task, episodes, clocksOnly } = groupDifference(...groups);
    if (!clocksOnly) counts.other++;
    for (const { episode: index, difference } of episodes) {
      const { token, logprob, conduct: howSolved, verdict } = difference;
      if (token) counts.otherTokens++;
      else if (logprob) counts.otherLogprobs++;
      else if (verdict) counts.otherVerdicts++;
      const episode = { index, difference };
      if (token || logprob || howSolved) {
        sampled ??= { apart: weights || task !== null ? 'tasks' : 'sampled', group: name, episode };
      } else judged ??= { apart: null, group: name, episode };
    }
    if (weights || task !== null) sampled ??= { apart: 'tasks', group: name, episode: null };
  }
  const first = sampled ?? judged ?? { apart: null, group: null, episode: null };
  return { ...first, counts: one.size + other.size === 0 ? null : counts };
}

/** Older versions did not mark how stale sequences are, which is only measured by. */
function isSameUnmarked(...both: Pair<TrainBatch>): boolean {
  const [one, other] = both.map((batch) => {
    const { staleness: _, ...sequences } = batch.sequences;
    return encodeBatch({ ...batch, sequences });
  });
  return Buffer.compare(one!, other!) === 0;
}

/** In words, what the first sequence has that is not the same. */
function batchDifference(one: TrainBatch | null, other: TrainBatch | null): string {
  if (one === null || other === null)
    return 'one of them has no batch: no sample of the step had an advantage';
  const [a, b] = [one.offsets.length - 1, other.offsets.length - 1];
  for (let i = 0; i < Math.min(a, b); i++) {
    const streams: [string, ArrayLike<number>, ArrayLike<number>][] = [
      ['tokens', ...cut(i, one.tokens, other.tokens)],
      ['mask', ...cut(i, one.mask, other.mask)],
      ...Object.entries(one.streams).flatMap(
        ([name, values]): [string, ArrayLike<number>, ArrayLike<number>][] => {
          const theirs = other.streams[name as keyof TrainBatch['streams']];
          return theirs ? [[name, ...cut(i, values, theirs)]] : [];
        },
      ),
    ];
    const found = streams.find(
      ([, x, y]) => x.length !== y.length || Array.from(x).some((v, t) => !Object.is(v, y[t])),
    );
    if (found) {
      const [name, x, y] = found;
      const at = Array.from(x).findIndex((value, t) => !Object.is(value, y[t]));
      return at < 0
        ? `sequence ${i + 1} has ${x.length} and ${y.length} tokens`
        : `${name} of sequence ${i + 1}, token ${at + 1}: ${x[at]} and ${y[at] ?? 'nothing'}`;
    }
  }
  if (a !== b) return `${a} and ${b} sequences`;
  return 'how its sequences are marked, or shared out over updates';

  function cut<T extends Int32Array | Float32Array>(
    i: number,
    x: T,
    y: T,
  ): [ArrayLike<number>, ArrayLike<number>] {
    return [
      x.subarray(one!.offsets[i], one!.offsets[i + 1]),
      y.subarray(other!.offsets[i], other!.offsets[i + 1]),
    ];
  }
}
