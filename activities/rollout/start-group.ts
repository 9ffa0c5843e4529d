import type { Episode, EpisodeStatus, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { armName, groupId } from '../../core/names.ts';
import type { BlobRef, MadeTaskRef } from '../../core/refs.ts';
import type { GroupRequest, Growth } from '../../core/requests/rollout.ts';
import type { TaskSource } from '../../core/training/task-source.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { readTaskSource } from '../../store/training/task-source.ts';
import { branchesOf } from './branches.ts';
import { hintsFor } from './hints.ts';
import type { PolicyLease } from './policies.ts';
import { assertVersions, posedBy } from './pose-tasks.ts';
import { speaking } from './tools-of-task.ts';

interface GroupDependencies {
  store: ObjectStore;
  environments: Environments;
}

/** Poses the tasks of a group, behind hints where it has them; none of its episodes has a turn yet. */
export async function startGroup(
  deps: GroupDependencies,
  request: GroupRequest,
  lease: PolicyLease,
  asker: HostCaller,
): Promise<RolloutGroup> {
  const refs = await resolved(deps, request.tasks, asker.signal);
  await assertVersions(deps, request.run, refs, asker.signal);
  const posed = await posedBy(deps.environments, refs, asker);
  const hints = request.failed
    ? await hintsFor(
        deps.environments,
        refs,
        await loadTrajectories(deps.store, request.failed, { signal: asker.signal }),
        request.reward,
        asker,
      )
    : null;
  const tasks = refs.map((ref, i): GroupTask => {
    const [task, hint] = [posed[i]!, hints?.[i]];
    const again = i < request.retries && { retried: true as const };
    // It was asked again with a hint, though none could be made.
    const failedBefore = hints !== null && { learntBehind: [] };
    const place = request.firstTask + i;
    if (task instanceof GradusError || hint instanceof GradusError)
      return { ref, place, prompt: '', promptTokens: [], ...failedBefore, ...again };
    const { prompt, tools } = task;
    const own = tools && { tools };
    const dialect = lease.dialectFor(speaking(deps, { ref, prompt, promptTokens: [], ...own }));
    const tokensOf = (content: string) => dialect.promptTokens([{ role: 'user', content }]);
    if (hint === undefined) return { ref, place, prompt, promptTokens: tokensOf(prompt), ...own, ...again };
    const hinted = `${prompt}\n\n${hint}`;
    return {
      ref,
      place,
      prompt: hinted,
      promptTokens: tokensOf(hinted),
      learntBehind: tokensOf(prompt),
      ...own,
    };
  });
  const statusOf = (task: number): EpisodeStatus => {
    const problem = [posed[task], hints?.[task]].find((question) => question instanceof GradusError);
    return problem
      ? { kind: 'failed', boundary: 'environment', reason: problem.message }
      : { kind: 'running' };
  };
  const episodes: Episode[] = tasks.flatMap((_, task) =>
    Array.from({ length: request.samples }, (_, sample) => ({
      task,
      sample,
      tokens: [],
      mask: [],
      samplerLogprobs: [],
      turns: [],
      status: statusOf(task),
    })),
  );
  return { ...headOf(request), tasks, episodes };
}

/** The same tasks as the trees have, each with more samples. */
export async function growGroup(
  store: ObjectStore,
  request: GroupRequest,
  { trees: refs, ...search }: Growth,
  signal: AbortSignal,
): Promise<RolloutGroup> {
  const trees = await treesOf(store, { trees: refs }, signal);
  const { id, tasks } = trees[0]!;
  const episodes = await inTurns(branchesOf(trees, request.samples, search, request.reward), signal);
  return { ...headOf(request), grows: id, tasks, episodes };
}

export const treesOf = (
  store: ObjectStore,
  { trees }: Pick<Growth, 'trees'>,
  signal: AbortSignal,
): Promise<RolloutGroup[]> => Promise.all(trees.map((ref) => loadTrajectories(store, ref, { signal })));

/** Tasks as they are asked for: those of a family with an end are gone through again, and made ones have what made them. */
export async function resolved(
  { store, environments }: GroupDependencies,
  tasks: readonly MadeTaskRef[],
  signal: AbortSignal,
): Promise<MadeTaskRef[]> {
  const sources = new Map<string, Promise<TaskSource>>();
  const sourceOf = (ref: BlobRef): Promise<TaskSource> => {
    const known = sources.get(ref.sha256) ?? readTaskSource(store, ref, { signal });
    sources.set(ref.sha256, known);
    return known;
  };
  return Promise.all(
    tasks.map(async (drawn): Promise<MadeTaskRef> => {
      const { source, references } = drawn;
      const environment = environmentOf(environments, drawn.environment);
      // A proposer that has nothing to be shown is shown nothing.
      if (references?.length === 0) return { ...drawn, made: [] };
      if (source === undefined)
        return { ...drawn, index: drawn.index % environment.taskCount(drawn.split, drawn.level) };
      const level = references ? environment.proposals!.levels[drawn.level]! : drawn.level;
      const there = (await sourceOf(source)).arms[armName({ ...drawn, level })]!;
      const made = (references ?? [drawn.index]).map((index) => there[index]!.proposal);
      return { ...drawn, made };
    }),
  );
}

/** What a group is, whatever is in it. */
const headOf = ({
  group,
  checkpoint,
  seed,
  stage,
  step,
  sampling,
  beams,
  toolChoice,
  agent,
}: GroupRequest) => ({
  id: groupId(group),
  weights: checkpoint.weights,
  temperature: sampling.temperature,
  sampled: {
    seed,
    stage,
    step,
    sampling,
    ...(beams && { beams }),
    ...(toolChoice !== undefined && { toolChoice }),
    ...(agent && { agent: true as const }),
  },
});
