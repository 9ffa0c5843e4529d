import { rolloutsPrefix } from '../../../store/keys.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import type { Episode, RolloutGroup } from '../../../core/episode/episode.ts';
import { LADDER } from '../../../core/ladder/requests.ts';
import type { TaskRef } from '../../../core/refs.ts';
import { inParallel } from '../../../store/in-parallel.ts';

export interface ReportEpisode {
  /** As the ledger names candidates: stage/step/group/task/sample. */
  id: string;
  stage: string;
  task: TaskRef;
  episode: Episode;
  /** The verifier whose verdict the reward rested on when the ladder had judged it; null where it has not. */
  basis: string | null;
}

const JUDGED = '.judged';

/** The episodes of a stage or an evaluation as they were first judged, each with what the ladder rested on. */
export async function readEpisodes(store: ObjectStore, run: string, stage: string): Promise<ReportEpisode[]> {
  const prefix = rolloutsPrefix(run, stage);
  const keys = (await store.list(prefix)).map(({ key }) => key).toSorted();
  // What came late is in the ledger, and what it said in the cache of verdicts.
  const groups = await inParallel(
    keys.filter((key) => !key.includes('.late-')),
    async (key) => ({
      step: Number(key.slice(prefix.length).split('/')[0]),
      group: await loadTrajectories(store, (await store.head(key))!),
    }),
  );
  const bases = new Map<string, string>();
  for (const { step, group } of groups.filter(({ group: { id } }) => id.endsWith(JUDGED))) {
    const id = group.id.slice(0, -JUDGED.length);
    for (const episode of group.episodes) {
      const basis = basisOf(episode);
      if (basis !== null) bases.set(idOf(stage, step, { id }, episode), basis);
    }
  }
  return groups
    .filter(({ group: { id } }) => !id.endsWith(JUDGED))
    .flatMap(({ step, group }) =>
      group.episodes.map((episode) => {
        const id = idOf(stage, step, group, episode);
        const task = group.tasks[episode.task]!.ref;
        return { id, stage, task, episode, basis: bases.get(id) ?? null };
      }),
    );
}

const idOf = (stage: string, step: number, group: Pick<RolloutGroup, 'id'>, { task, sample }: Episode) =>
  `${stage}/${step}/${group.id}/${task}/${sample}`;

/** `dft` of a component that says `dft@1`. */
function basisOf({ outcome }: Episode): string | null {
  if (outcome?.kind !== 'scored' && outcome?.kind !== 'truncated') return null;
  const said = outcome.components.find(({ verifier }) => verifier === LADDER);
  return said === undefined ? null : said.version.slice(0, said.version.lastIndexOf('@'));
}
