import { isDeepStrictEqual } from 'node:util';
import { z } from 'zod';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { armName, groupId } from '../../core/names.ts';
import { RandomStream } from '../../core/random.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { StoredRequest, StoredResult } from '../../core/requests/batch.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { summarize } from '../../core/training/evaluation.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import { storedBy } from '../../core/training/stored-by.ts';
import { loadModelFiles, textOf } from '../../store/training/checkpoints.ts';
import { jsonCodec } from '../../store/codec.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { checkpointOf } from '../../store/training/find-checkpoints.ts';
import { refuseStoredTasks } from '../../core/schema/collect.ts';
import { didYouMean } from '../../core/did-you-mean.ts';
import { assertRun, assertStage, specOfRun } from '../../store/run/find-run.ts';
import { copyImages } from '../../store/rollout/images.ts';
import { storedKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { putTrajectories, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { doneRolloutKeys, stepOfRollout } from '../../store/training/done-rollouts.ts';
import { tally } from '../verification/tally.ts';

/**
 * Throws GradusError('spec', 'invalid') or ('store', 'no-run' | 'no-stage' | 'no-rollouts') where a stage cannot learn
 * from the stored episodes of another run: there must be some of its tasks, of the tokens of the model that the run begins
 * with (a model from scratch has its tokens later), what they were worth there must be what they are worth here, and a
 * token that was sampled among many must have so many to be compared with. Likewise where the run is not there that a stage
 * follows.
 */
export async function assertStored(
  store: ObjectStore,
  { stages, reward, sampling, model }: Pick<CurriculumSpec, 'stages' | 'reward' | 'sampling' | 'model'>,
  signal: AbortSignal,
): Promise<void> {
  for (const stage of stages) {
    if (stage.kind === 'rl' && stage.collect.kind === 'asynchronous' && stage.collect.follow !== undefined)
      await assertRun(store, stage.collect.follow, { signal });
    const stored = storedBy(stage);
    if (stored?.run === undefined) continue;
    const { run, stage: from, steps } = stored;
    const spec = await specOfRun(store, run, { signal });
    await assertStage(store, run, from, { signal });
    const source = spec?.stages.find(({ name }) => name === from);
    if (!spec || source?.kind !== 'rl') {
      const names = (spec?.stages ?? []).filter(({ kind }) => kind === 'rl').map(({ name }) => name);
      throw refused(
        `${stage.name} learns from ${from} of ${run}, which is no stage that collects rollouts${didYouMean(from, names)}`,
      );
    }
    const learns = `${stage.name} learns from episodes of ${run}, which were`;
    const ofVerifiers = (one: RewardSpec) => ({ ...one, truncated: null, model: null });
    if (!isDeepStrictEqual(ofVerifiers(spec.reward), ofVerifiers(reward)))
      throw refused(`${learns} judged by another reward: give this run the same`);
    if (stage.kind === 'rl') {
      const tooMany = refuseStoredTasks(stage.groupsPerStep, source.numGenerations);
      if (tooMany !== null) throw refused(`groupsPerStep of ${stage.name} ${tooMany}`);
      const [here, there] = [sampling.topK, spec.sampling.topK];
      if (here > 0 && there > here)
        throw refused(`${learns} sampled among ${there} tokens: raise sampling.topK to that, or set it to 0`);
    }
    const place = { from: { run, stage: from, steps }, arms: stage.arms };
    const { done } = await groupsOf(store, place, signal).next();
    if (done) throw noRollouts(place);
    if (model.kind === 'from') {
      const files = await loadModelFiles(store, model.checkpoint, { signal });
      await assertSameTokenizer(store, run, files, signal);
    }
  }
}

const refused = (why: string): GradusError =>
  new GradusError(
    'spec',
    'invalid',
    `the curriculum spec was refused before anything was spent.\n  stages: ${why}`,
  );

/** The groups that a stage's episodes lie in, the rounds that have grown them, and which of their tasks are the stage's. */
type Source = { ref: BlobRef; rounds?: BlobRef[]; tasks: number[] }[];

const blobRef = z.looseObject({ key: z.string() });
const sources = jsonCodec<Source>(
  'where stored episodes are',
  z.array(z.looseObject({ ref: blobRef, rounds: z.array(blobRef).optional(), tasks: z.array(z.int()) })),
);

/**
 * The tasks of a step whose episodes are stored, as if they had been rolled out: they are kept again as groups of the
 * step, each of the tasks that one group there had, so that whatever reads a step's episodes reads these. What
 * there is to draw from is written down at the first step; all of it is gone through in one order after another.
 * Throws GradusError('store', 'no-rollouts') where nothing is left to learn from.
 */
export async function collectStored(
  store: ObjectStore,
  request: StoredRequest,
  signal: AbortSignal,
): Promise<StoredResult> {
  const start = Date.now();
  const { run, stage, step, reward } = request;
  const key = storedKey(run, stage);
  const source =
    (await store.find(key, sources, { signal })) ??
    (await store.putIfAbsent(key, sources, await storedSource(store, request, signal), { signal })).value;
  const groups: BlobRef[] = [];
  const counts: GroupResult[] = [];
  for (const [place, tasks] of drawStored(source, request)) {
    const { ref, rounds = [] } = source[place]!;
    const [stored, ...grown] = await Promise.all(
      [ref, ...rounds].map((each) => loadTrajectories(store, each, { signal })),
    );
    const whole = { ...stored!, episodes: [stored!, ...grown].flatMap(({ episodes }) => episodes) };
    const id = groupId(groups.length);
    const group = taken(whole, tasks, id);
    await copyImages(store, group, request.from.run, run, { signal });
    const kept = await putTrajectories(store, { run, stage, step }, group, { signal });
    groups.push(kept.ref);
    // Another step has sampled them, and paid for it.
    const counted = await tally(reward, kept.value, signal);
    counts.push({ trajectories: null, ...counted, sampledTokens: 0, sampledLogprob: 0, spans: [] });
  }
  // None of these is drawn again because it was failed.
  const { failures: _, incidents: __, tried: ___, failedTasks: ____, ...sum } = summarize(counts);
  return { ...sum, groups, spans: [{ part: 'data', start, end: Date.now() }] };
}

/**
 * The tasks of a step, by their group: the tasks of the source are shuffled, and gone through in steps, and shuffled anew
 * when all have been had. No step has a task twice.
 */
export function drawStored(
  source: Source,
  { seed, stage, step, count }: Pick<StoredRequest, 'seed' | 'stage' | 'step' | 'count'>,
): Map<number, number[]> {
  const all = source.flatMap(({ tasks }, group) => tasks.map((task) => ({ group, task })));
  const perStep = Math.min(count, all.length);
  const stepsPerPass = Math.floor(all.length / perStep);
  const pass = Math.floor((step - 1) / stepsPerPass);
  const first = ((step - 1) % stepsPerPass) * perStep;
  const order = new RandomStream(seed, 'stored', stage, pass).shuffle(all);
  const drawn = new Map<number, number[]>();
  for (const { group, task } of order.slice(first, first + perStep))
    drawn.set(group, [...(drawn.get(group) ?? []), task]);
  return drawn;
}

/** Of which groups and tasks there are stored episodes. Throws GradusError('store', 'no-rollouts') where there are none. */
export async function storedSource(
  store: ObjectStore,
  request: Pick<StoredRequest, 'run' | 'from' | 'arms' | 'checkpoint'>,
  signal: AbortSignal,
): Promise<Source> {
  const { run: own, from, checkpoint } = request;
  if (from.run !== own)
    await assertSameTokenizer(store, from.run, await loadModelFiles(store, checkpoint, { signal }), signal);
  const source: Source = [];
  for await (const group of groupsOf(store, request, signal)) source.push(group);
  if (source.length > 0) return source;
  throw noRollouts(request);
}

/** What the steps of a run's stage have learned from, of these arms and steps, a group after the other. */
async function* groupsOf(
  store: ObjectStore,
  { from: { run, stage, steps }, arms }: Pick<StoredRequest, 'from' | 'arms'>,
  signal: AbortSignal,
): AsyncGenerator<Source[number], void> {
  const names = new Set(arms.map(armName));
  const ofSteps = new Map<number, string[]>();
  for (const key of await doneRolloutKeys(store, run, stage, { signal })) {
    const step = stepOfRollout(run, stage, key);
    if (step < (steps?.from ?? 1) || step > (steps?.to ?? Infinity)) continue;
    ofSteps.set(step, [...(ofSteps.get(step) ?? []), key]);
  }
  for (const keys of ofSteps.values()) {
    const found: Found[] = [];
    for (const key of keys) found.push(await findGroup(store, key, signal));
    for (const { ref, id, grows, tasks, samples } of found) {
      if (grows !== undefined && found.some((other) => other.id === grows)) continue;
      const rounds = found.filter((other) => other.grows === id);
      const ofStage = [...tasks.keys()].filter((task) => {
        const { ref: of, learntBehind } = tasks[task]!;
        const count = rounds.reduce((sum, round) => sum + round.samples[task]!, samples[task]!);
        // What an evaluation asked is no task to learn from, and what was sampled behind a hint was another stage's.
        // Alone it is a greedy sample, which was drawn to compare with: a stage has two of a task or more.
        return count > 1 && of.split === 'train' && names.has(armName(of)) && !learntBehind;
      });
      if (ofStage.length === 0) continue;
      yield { ref, ...(rounds.length > 0 && { rounds: rounds.map((round) => round.ref) }), tasks: ofStage };
    }
  }
}

/** A stored group without its episodes. */
interface Found extends Pick<RolloutGroup, 'id' | 'tasks'> {
  ref: BlobRef;
  grows: string | undefined;
  /** Of each task. */
  samples: number[];
}

async function findGroup(store: ObjectStore, key: string, signal: AbortSignal): Promise<Found> {
  const ref = (await store.head(key, { signal }))!;
  const { id, grows, tasks, episodes } = await loadTrajectories(store, ref, { signal });
  const samples = tasks.map(() => 0);
  for (const { task } of episodes) samples[task]!++;
  return { ref, id, grows, tasks, samples };
}

const noRollouts = ({ from: { run, stage }, arms }: Pick<StoredRequest, 'from' | 'arms'>): GradusError =>
  new GradusError(
    'store',
    'no-rollouts',
    `stage ${stage} of ${run} has no episodes of ${arms.map(armName).join(', ')} in these steps: name other tasks or steps`,
  );

/** Throws GradusError('spec', 'invalid') unless the episodes of a run are of the tokens that a model has. */
export async function assertSameTokenizer(
  store: ObjectStore,
  run: string,
  model: ModelFiles,
  signal: AbortSignal,
): Promise<void> {
  const other = await checkpointOf(store, { run, step: null }, { signal });
  const files = await loadModelFiles(store, other, { signal });
  if (textOf(files, 'tokenizer.json') === textOf(model, 'tokenizer.json')) return;
  throw new GradusError(
    'spec',
    'invalid',
    `the episodes of ${run} are of another tokenizer than that of this run's model: begin with a checkpoint of ${run}`,
  );
}

/** Some tasks of a group, with their episodes as they are: nothing of them was learnt from here. */
function taken(group: RolloutGroup, tasks: readonly number[], id: string): RolloutGroup {
  const { grows: _, ...alone } = group;
  return {
    ...alone,
    id,
    tasks: tasks.map((task) => {
      const { retried: __, ...first } = group.tasks[task]!;
      return first;
    }),
    episodes: tasks.flatMap((task, place) =>
      group.episodes
        .filter((episode) => episode.task === task)
        .map((episode) => asFirstTrained({ ...episode, task: place })),
    ),
  };
}

function asFirstTrained(episode: Episode): Episode {
  const { learntAs: _, ...first } = episode;
  return first;
}
