import type { Episode, GroupTask, RolloutGroup } from '../episode/episode.ts';
import type { Sample } from './sample.ts';

/** What a step has sampled of one task: episodes as they are stored, or samples as a method sees them. */
export interface TaskGroup<Of = Sample> extends Pick<GroupTask, 'ref' | 'promptTokens'> {
  /** Sampled with a hint, or for another task; `promptTokens` are then of the prompt that they should have needed. */
  hindsight: boolean;
  /** SHA-256 of the weights that sampled, but for turns that name others. */
  weights: string;
  samples: readonly Of[];
  /** Reward of the greedy sample, where the plan asks for one and it has one that counts. */
  greedy?: number;
}

/** In the order in which scores, advantages and batches have them: the episodes of a tree are of one task, whenever sampled. */
export function taskGroups(groups: readonly RolloutGroup[]): TaskGroup<Episode>[] {
  const roots = new Map<string, RolloutGroup>();
  for (const group of groups) {
    const name = firstNameOf(group);
    if (group.grows === undefined && !roots.has(name)) roots.set(name, group);
  }
  return groups.flatMap((group) => {
    if (group.grows !== undefined && roots.has(group.grows)) return [];
    const name = firstNameOf(group);
    const parts = roots.get(name) === group ? groups.filter(({ grows }) => grows === name) : [];
    const episodesOf = (task: number) =>
      [group, ...parts].flatMap(({ episodes }) => episodes.filter((episode) => episode.task === task));
    return group.tasks.map(({ ref, promptTokens, learntBehind }, task) => ({
      ref,
      promptTokens: learntBehind ?? promptTokens,
      hindsight: learntBehind !== undefined,
      weights: group.weights,
      samples: episodesOf(task),
    }));
  });
}

/** Episodes that branched off, as if they had not. */
export const fromTheirBeginning = (group: TaskGroup<Episode>): TaskGroup<Episode> => ({
  ...group,
  samples: group.samples.map((episode) => {
    const { inherited: _, ...whole } = episode;
    return whole;
  }),
});

/** What a group was called when it was sampled: judged anew by higher tier it has a name that tells so. */
const firstNameOf = ({ id }: RolloutGroup): string => id.split('.')[0]!;
