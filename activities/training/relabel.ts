import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { composeReward, succeeded } from '../../core/episode/reward.ts';
import { GradusError } from '../../core/errors.ts';
import { groupBy } from '../../core/group-by.ts';
import type { RelabelRequest, RelabelResult } from '../../core/requests/verification.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { verdictsIn, verifiersOf } from '../verification/verify-episodes.ts';
import type { HostCaller } from '../../environments/host/hosted-environment.ts';
import { loadModelFiles } from '../../store/training/checkpoints.ts';
import { putTrajectories, loadTrajectories } from '../../store/rollout/trajectories.ts';
import { IncidentList } from '../incident-list.ts';
import type { Speaking } from '../rollout/policies.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { dialectsOf } from './dialects.ts';

/** Failed episodes of a step that solved another task than theirs, kept as one more group of it. */
export async function relabelEpisodes(
  { store, environments }: CurriculumDependencies,
  request: RelabelRequest,
  signal: AbortSignal,
): Promise<RelabelResult> {
  const start = Date.now();
  const incidents = new IncidentList();
  const groups = await Promise.all(request.groups.map((ref) => loadTrajectories(store, ref, { signal })));
  const dialectFor = dialectsOf(await loadModelFiles(store, request.checkpoint, { signal }));
  const group = await relabelled(environments, dialectFor, groups, request, incidents.asker(signal));
  const kept = group && (await putTrajectories(store, request, group, { signal }));
  return {
    trajectories: kept?.ref ?? null,
    spans: [{ part: 'verification', start, end: Date.now() }],
    incidents: incidents.all,
  };
}

/**
 * The failed episodes that solved another task, each to be learnt behind the prompt of the task that it did solve. Samples of
 * a task that solved the same other one stay together, so that a method takes no more of them than of any task: the mistakes
 * that are made most often would be learnt most. Environments that say nothing of other tasks are not asked; an episode whose
 * other task the verifiers do not confirm is left out, and so is one whose other task asks what it was asked and failed.
 * `null` where none is left.
 */
export async function relabelled(
  environments: Environments,
  dialectFor: (environment: Speaking) => Dialect,
  groups: readonly RolloutGroup[],
  { reward }: Pick<RelabelRequest, 'reward'>,
  asker: HostCaller,
): Promise<RolloutGroup | null> {
  const { components } = reward;
  const failed = groups.flatMap((group) =>
    group.episodes
      .filter(({ outcome }) => outcome?.kind === 'scored' && succeeded(components, outcome) === false)
      .map((episode) => ({ group, task: group.tasks[episode.task]!, episode })),
  );
  const verifiers = verifiersOf(reward);
  const names = [...new Set(failed.map(({ task }) => task.ref.environment))];
  const found = new Map<Episode, { task: GroupTask; episode: Episode }>();
  for (const name of names) {
    const environment = environmentOf(environments, name);
    if (!environment.relabels) continue;
    const asked = failed.filter(({ task }) => task.ref.environment === name);
    const items = asked.map(({ task: { ref }, episode }) => ({ ref, episode }));
    const answers = await environment.relabellings(verifiers, items, asker);
    answers.forEach((answer, i) => {
      // What went wrong there was told to the asker.
      if (answer === null || answer instanceof GradusError) return;
      const { task, episode } = asked[i]!;
      if (answer.prompt === task.prompt) return;
      const outcome = composeReward(reward, verdictsIn(answer.said, reward));
      if (succeeded(components, outcome) !== true) return;
      const { prompt } = answer;
      const dialect = dialectFor(task.tools ? { tools: task.tools } : environment);
      const learntBehind = dialect.promptTokens([{ role: 'user', content: prompt }]);
      found.set(episode, { task: { ...task, prompt, learntBehind }, episode: { ...episode, outcome } });
    });
  }
  const kept = failed.flatMap(({ group, episode }) => {
    const other = found.get(episode);
    return other ? [{ group, ...other }] : [];
  });
  const first = kept[0]?.group;
  if (!first) return null;
  const solved = groupBy(kept, ({ group, task, episode }) =>
    JSON.stringify([group.id, episode.task, task.prompt]),
  );
  const alike = [...solved.values()];
  return {
    id: 'relabelled',
    weights: first.weights,
    temperature: first.temperature,
    ...(first.sampled && { sampled: first.sampled }),
    tasks: alike.map(([sample]) => sample!.task),
    episodes: alike.flatMap((samples, task) => samples.map(({ episode }) => ({ ...episode, task }))),
  };
}
