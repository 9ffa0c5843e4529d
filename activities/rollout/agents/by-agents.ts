import { keyOfDraws } from '../../../core/episode/draws.ts';
import type { RolloutGroup } from '../../../core/episode/episode.ts';
import type { AdvanceProgress, GroupRequest } from '../../../core/requests/rollout.ts';
import type { AgentSpec } from '../../../core/schema/agent.ts';
import type { Called } from '../../../environments/host/asks.ts';
import type { Environments } from '../../../environments/host/environment-of.ts';
import type { HostCaller } from '../../../environments/host/hosted-environment.ts';
import { serveGateway } from '../../../gateway/server.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { keyOf, longName } from '../group-names.ts';
import { isContinuing } from '../newest-weights.ts';
import type { NewestWeights } from '../newest-weights.ts';
import type { PolicyLease } from '../policies.ts';
import { putImages } from '../put-images.ts';
import { together } from '../together.ts';
import { toolsOfTask } from '../tools-of-task.ts';
import type { FollowedEpisode } from '../trajectory-parts.ts';
import { behindOnePrompt } from './episode-of-turns.ts';
import { makeEpisode } from './make-episode.ts';
import type { Slots } from './slots.ts';

interface ByAgents {
  store: ObjectStore;
  environments: Environments;
  newest: NewestWeights;
  slots: Slots;
}

/** The episodes of a group, made by agents: a few at a time, each from its task to its end. */
export async function byAgents(
  deps: ByAgents,
  request: GroupRequest,
  agent: AgentSpec,
  lease: PolicyLease,
  group: RolloutGroup,
  progress: AdvanceProgress,
  { signal, incident }: HostCaller,
): Promise<RolloutGroup> {
  const { tasks, episodes } = group;
  const gateway = await serveGateway();
  const made: FollowedEpisode[] = episodes.map((episode) => ({ task: tasks[episode.task]!, episode }));
  try {
    await together(signal, [...made.entries()], async ([i, { task, episode }], shared) => {
      if (episode.status.kind === 'running') {
        const key = keyOf(request, `agent-${i}`);
        const sampler = isContinuing(request) ? deps.newest.episode(request, i, shared) : null;
        const context = {
          agent,
          gateway,
          lease: sampler ? { ...lease, policy: sampler.policy } : lease,
          turnPolicy: sampler?.turnPolicy,
          store: deps.store,
          folder: key.slice(0, -'.json'.length),
          key: keyOf(request, `agent-${i}-end`),
          sampling: request.sampling,
          draws: keyOfDraws(
            request,
            { place: request.firstTask + episode.task, sample: episode.sample },
            'rollout',
          ),
          tools: agent.environmentTools && {
            ...toolsOfTask(deps, task),
            ref: task.ref,
            episodeId: `${longName(request)}/${i}`,
            mostCalls: agent.environmentTools.maxCalls,
            incident,
            putImages: (called: Called) => putImages(deps.store, request.run, called, { signal: shared }),
          },
          signal: shared,
        };
        made[i] = await deps.slots.with(agent.concurrency, shared, () =>
          makeEpisode(context, { task, episode }),
        );
        progress.tokens += made[i].episode.mask.filter((bit) => bit === 1).length;
      }
      progress.done++;
    });
  } finally {
    await gateway.close();
  }
  return { ...group, ...behindOnePrompt(tasks, made) };
}
