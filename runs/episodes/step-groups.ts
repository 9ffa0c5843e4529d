import path from 'node:path';
import type { RolloutGroup } from '../../core/episode/episode.ts';
import { trainableReward } from '../../core/episode/outcome.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { RlStageSpec } from '../../core/schema/stages/rl.ts';
import { trainedRoles } from '../../core/training/roles.ts';
import { rolloutsOfRun, rolloutsPrefix } from '../../store/keys.ts';
import { inParallel } from '../../store/in-parallel.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { replayedRollouts } from '../../store/training/replayed-groups.ts';
import { takenRollouts } from '../../store/training/taken-groups.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';

interface StepGroups {
  /** What credit was given to, in the order in which it was. */
  groups: RolloutGroup[];
  /** One greedy sample of each task, where the method compares with one. */
  greedy: RolloutGroup[];
}

/**
 * The groups that a step has learnt from: as a ladder judged them in that step, then what was asked again with hints, then
 * what solved another task, then groups of earlier steps whose verdicts came late, then those that it replayed.
 */
export async function groupsOfStep(
  store: ObjectStore,
  { run, verification, reward }: CurriculumSpec,
  stage: RlStageSpec,
  step: number,
): Promise<StepGroups> {
  const folder = `${rolloutsPrefix(run, stage.name)}${String(step).padStart(6, '0')}/`;
  const keys = await keysOfStep(store, folder, { run, stage: stage.name, step });
  const judged = new Set(keys.filter((key) => key.endsWith('.judged.json')));
  const own = keys.filter(
    (key) => !isLate(key) && (judged.has(key) || !judged.has(key.replace(/\.json$/, '.judged.json'))),
  );
  const late = (verification?.offerLateFor ?? 0) > 0 ? await lateKeys() : [];
  const found = (await read(own)).map((group) => ({ group, rank: rankOf(group) }));
  const offered = (await read(late)).filter(isOffered);
  /** Of a role of self-play that nothing is learnt from. */
  const isUntrained = ({ tasks }: RolloutGroup): boolean => {
    if (!stage.selfPlay) return false;
    const asks = stage.selfPlay.arms.some((arm) => tasks.some(({ ref }) => ref.level === arm.asks));
    return !trainedRoles(stage.selfPlay)[asks ? 'proposer' : 'solver'];
  };
  const isBaseline = ({ tasks, episodes }: RolloutGroup): boolean =>
    stage.plan.greedy && episodes.length === tasks.length;
  return {
    groups: [
      ...found
        .filter(({ group }) => !isBaseline(group) && !isUntrained(group))
        .toSorted((a, b) => a.rank - b.rank)
        .map(({ group }) => group),
      ...offered,
      ...(await read(await replayedRollouts(store, { run, stage: stage.name, step }))),
    ],
    greedy: found.flatMap(({ group }) => (isBaseline(group) ? [group] : [])),
  };

  /** Groups of earlier steps under the name that this one gave them. */
  async function lateKeys(): Promise<string[]> {
    const all = await store.list(rolloutsOfRun(run));
    return all.flatMap(({ key }) => (key.endsWith(`.late-${stage.name}-${step}.json`) ? [key] : []));
  }

  /** Only where a verdict has changed a reward is a group learnt from again. */
  function isOffered({ episodes }: RolloutGroup): boolean {
    return episodes.some(
      ({ outcome, learntAs }) =>
        outcome !== undefined &&
        learntAs !== undefined &&
        trainableReward(outcome, reward.truncated) !== trainableReward(learntAs, reward.truncated),
    );
  }

  function rankOf({ id, tasks }: RolloutGroup): number {
    if (id === 'relabelled') return 3;
    if (tasks.some(({ learntBehind }) => learntBehind)) return 2;
    return judged.size > 0 && !id.endsWith('.judged') ? 1 : 0;
  }

  async function read(some: readonly string[]): Promise<RolloutGroup[]> {
    const groups = await inParallel(some, async (key) => {
      const ref = await store.head(key);
      return ref === undefined ? [] : [await loadTrajectories(store, ref)];
    });
    return groups.flat();
  }
}

/**
 * The groups of a step, in the order in which it learned from them. Those that an asynchronous step took lie under the steps
 * whose tasks they have, and what a ladder made of them under the step itself.
 */
async function keysOfStep(
  store: ObjectStore,
  folder: string,
  place: { run: string; stage: string; step: number },
): Promise<string[]> {
  const [{ keys }, taken] = await Promise.all([store.listFolder(folder), takenRollouts(store, place)]);
  if (taken === null) return keys.toSorted();
  const here = new Set(keys);
  return taken.map((key) => {
    const judged = folder + path.basename(key).replace(/\.json$/, '.judged.json');
    return here.has(judged) ? judged : key;
  });
}

const isLate = (key: string): boolean => /\.late-[^/]+\.json$/.test(key);
