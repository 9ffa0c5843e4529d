import { keyOfDraws } from '../../core/episode/draws.ts';
import type { DrawOf } from '../../core/episode/draws.ts';
import type { Episode, GroupTask, RolloutGroup, SampledBy } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { groupId } from '../../core/names.ts';
import type { RandomKey } from '../../core/random.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { isRecording } from '../../core/schema/policy.ts';
import { findCheckpoints } from '../../store/training/find-checkpoints.ts';
import { assertStage, specOfRun } from '../../store/run/find-run.ts';
import { rolloutKey } from '../../store/keys.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';

/** Where an episode is kept. */
export interface EpisodePlace {
  run: string;
  stage: string;
  step: number;
  group: number;
  /** Index in the group's episodes. */
  episode: number;
}

/** An episode with all that its tokens follow from but the weights. */
export interface ReplayableEpisode {
  place: EpisodePlace;
  spec: CurriculumSpec;
  group: Pick<RolloutGroup, 'id' | 'weights'>;
  sampled: SampledBy;
  task: GroupTask;
  episode: Episode;
  /** The key of a draw that made the token at a position: a branch has its beginning of another sample of its task. */
  keyAt: (position: number, what: DrawOf) => RandomKey;
}

/**
 * Throws GradusError('store', 'no-run' | 'no-stage' | 'no-group' | 'no-episode') for a place that there is not, and
 * GradusError('store', 'not-sampled' | 'served' | 'by-agent') for one that is not known to be sampled, or was not, by a decoder
 * of ours with the tools of its environment.
 */
export async function storedEpisode(
  store: ObjectStore,
  place: EpisodePlace,
  options: CallOptions = {},
): Promise<ReplayableEpisode> {
  const { run, stage, step } = place;
  const name = groupId(place.group);
  const spec = await specOfRun(store, run, options);
  const group = await groupAt(store, place, name, options);
  if (!group) {
    await assertStage(store, run, stage, options);
    throw new GradusError(
      'store',
      'no-group',
      `no group ${place.group} of step ${step} of ${stage} of ${run} is stored: its groups are numbered from 0`,
    );
  }
  const episode = group.episodes[place.episode];
  if (!episode) {
    const last = group.episodes.length - 1;
    throw new GradusError(
      'store',
      'no-episode',
      `${name} has no episode ${place.episode}: name one from 0 to ${last}`,
    );
  }
  const { sampled, id, weights } = group;
  const task = group.tasks[episode.task]!;
  const { place: taskPlace } = task;
  if (!spec || !sampled || taskPlace === undefined) {
    throw new GradusError(
      'store',
      'not-sampled',
      `what ${name} of ${run} was sampled by is not stored with it: an older version of Gradus wrote it, and it cannot be sampled again`,
    );
  }
  if (isRecording(spec.policy)) {
    const served = spec.policy.kind === 'recorded' ? spec.policy.run : run;
    throw new GradusError(
      'store',
      'served',
      `${run} sampled from servers, which cannot be asked for the same sample twice: its episodes are neither replayed nor forked. ` +
        `A run with "policy": {"kind": "recorded", "run": "${served}"} takes what was sampled once more`,
    );
  }
  if (sampled.agent) {
    throw new GradusError(
      'store',
      'by-agent',
      `an agent made the episodes of ${name} of ${run}, with tools that it has in itself: they can be neither replayed nor forked. Their turns are stored: gradus episode shows them`,
    );
  }
  if (sampled.beams) {
    throw new GradusError(
      'store',
      'by-beams',
      `the turns of ${name} of ${run} were searched for by beams, whole ones at a time: its episodes can be neither replayed nor forked token by token. An evaluation with the same flags finds the same ones`,
    );
  }
  const sampleAt = await drawnBy(store, place, group, episode, options);
  const keyAt = (position: number, what: DrawOf) =>
    keyOfDraws(sampled, { place: taskPlace, sample: sampleAt(position) }, what);
  return { place, spec, group: { id, weights }, sampled, task, episode, keyAt };
}

async function groupAt(
  store: ObjectStore,
  { run, stage, step }: EpisodePlace,
  name: string,
  options: CallOptions,
): Promise<RolloutGroup | undefined> {
  const ref = await store.head(rolloutKey(run, stage, step, name), options);
  return ref && loadTrajectories(store, ref, options);
}

/** Which sample of its task has drawn each token of an episode. */
async function drawnBy(
  store: ObjectStore,
  place: EpisodePlace,
  group: RolloutGroup,
  episode: Episode,
  options: CallOptions,
): Promise<(position: number) => number> {
  // From the end of the episode to its beginning: who has drawn what stands from a position on.
  const parts = [{ from: episode.inherited?.tokens ?? 0, sample: episode.sample }];
  const known = [...group.episodes];
  const unread = episode.inherited ? await othersOfTree(store, place, group, options) : [];
  for (let { inherited } = episode; inherited;) {
    const { sample } = inherited;
    const isParent = (one: Episode): boolean => one.task === episode.task && one.sample === sample;
    while (!known.some(isParent) && unread.length > 0) {
      const next = (await groupAt(store, place, unread.shift()!, options))!;
      if (next.id === group.grows || next.grows === group.grows) known.push(...next.episodes);
    }
    const parent = known.find(isParent);
    if (!parent) {
      throw new GradusError(
        'store',
        'not-sampled',
        `the sample ${sample} that this episode branches off is stored in no group of its step: it cannot be sampled again`,
      );
    }
    parts.push({ from: parent.inherited?.tokens ?? 0, sample });
    ({ inherited } = parent);
  }
  return (position) => parts.find(({ from }) => position >= from)!.sample;
}

/** Names of groups that may be of the same tree: the one that it began with first. */
async function othersOfTree(
  store: ObjectStore,
  { run, stage, step }: EpisodePlace,
  { grows, id }: RolloutGroup,
  options: CallOptions,
): Promise<string[]> {
  const folder = rolloutKey(run, stage, step, '').slice(0, -'.json'.length);
  const names = (await store.list(folder, options)).map(({ key }) =>
    key.slice(folder.length, -'.json'.length),
  );
  const others = names.filter((name) => !name.includes('.') && name !== id && name !== grows);
  return [...(grows === undefined ? [] : [grows]), ...others];
}

/**
 * The checkpoint that sampled a group, or those `weights` of one of its turns: one of its run, of a run whose episodes it learns from, or one that its spec names.
 * Throws GradusError('store', 'no-checkpoint') where it was removed.
 */
export async function checkpointThatSampled(
  store: ObjectStore,
  { place: { run }, spec, group }: Pick<ReplayableEpisode, 'place' | 'spec' | 'group'>,
  options: CallOptions & { weights?: string | undefined } = {},
): Promise<CheckpointRef> {
  const { weights = group.weights } = options;
  const others = spec.stages.flatMap((stage) =>
    stage.kind === 'rl' && stage.collect.kind === 'stored' ? (stage.collect.run ?? []) : [],
  );
  const there: number[] = [];
  for (const name of new Set([run, ...others])) {
    const { checkpoints } = await findCheckpoints(store, name, options);
    const found = checkpoints.find(({ ref }) => ref.weights === weights);
    if (found) return found.ref;
    if (name === run) there.push(...checkpoints.map(({ ref }) => ref.step));
  }
  const named = Object.values(spec.checkpoints ?? {}).find((ref) => ref.weights === weights);
  if (named && (await store.head(named.manifest.key, options))) return named;
  const { keepLast, keepBest, keepEvery } = spec.retention;
  throw new GradusError(
    'store',
    'no-checkpoint',
    `the weights that sampled this episode (${weights.slice(0, 12)}) are no longer in the store: the retention of ${run} ` +
      `(keepLast ${keepLast}, keepBest ${keepBest}, keepEvery ${keepEvery}) has removed their checkpoint. "keepEvery": 1 ` +
      `in the spec's retention keeps them all. Episodes of these checkpoints ` +
      `can be replayed, by step: ${there.join(', ') || 'none'}`,
  );
}
