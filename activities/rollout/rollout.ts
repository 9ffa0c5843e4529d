import { keyOfNextCall, placeOfCall } from '../../core/episode/acts.ts';
import { GradusError } from '../../core/errors.ts';
import type { BlobRef } from '../../core/refs.ts';
import type {
  AdvanceProgress,
  AdvanceRequest,
  AdvanceResult,
  AgentRequest,
  DueCallsRequest,
  GatherRequest,
  HeldAnswer,
  HeldRequest,
  LongCall,
  OpenGroup,
  ResumeRequest,
  ResumeResult,
  ReturnedEpisode,
  ServersRequest,
} from '../../core/requests/rollout.ts';
import type { JudgeResult, SelfJudgeRequest } from '../../core/requests/verification.ts';
import { isRecording, roundedTo } from '../../core/schema/policy.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { toolAttempts } from '../../environments/host/facts.ts';
import { judgedKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { Durable } from '../durable.ts';
import { IncidentList } from '../incident-list.ts';
import { judgedEpisodes } from '../training/judge-episodes.ts';
import { observeCall } from './advance-episode.ts';
import { assertStartable } from './agents/assert-startable.ts';
import { byAgents } from './agents/by-agents.ts';
import { Slots } from './agents/slots.ts';
import { firstSampleOf } from './branches.ts';
import { episodeIndex, keyOf, longName } from './group-names.ts';
import { judgeOwnGroup } from './judge-own.ts';
import { isContinuing, NewestWeights } from './newest-weights.ts';
import { OtherPolicies } from './other-policies.ts';
import type { PolicyLease, PolicyProvider } from './policies.ts';
import { growGroup, resolved, startGroup, treesOf } from './start-group.ts';
import { takeEpisode } from './take-episode.ts';
import { together } from './together.ts';
import { speaking } from './tools-of-task.ts';
import { episodeOf, mergeParts, observations, pages, parts, waitingPages } from './trajectory-parts.ts';
import type { FollowedEpisode } from './trajectory-parts.ts';

export interface RolloutDependencies {
  store: ObjectStore;
  policies: PolicyProvider;
  /** For runs whose spec names another policy. */
  otherPolicies?: OtherPolicies;
  environments: Environments;
  /** The queue of this worker alone, for episodes whose sessions are pinned to it; absent: they cannot wait. */
  ownQueue?: string;
}

export type RolloutActivities = Durable<ReturnType<typeof createRollout>>;

/** The number of this process's advances: sessions of different attempts of one episode must not meet. */
let advances = 0;

export function createRollout(given: RolloutDependencies) {
  const deps = {
    ...given,
    otherPolicies: given.otherPolicies ?? new OtherPolicies(given.store),
    newest: new NewestWeights(given.store, given.policies),
    /** Of all groups of this worker together. */
    slots: new Slots(),
  };
  return {
    /**
     * Starts a group and advances its episodes until each has ended or waits for a long tool call. A pure function of
     * the request: another attempt samples the same tokens, to the bit.
     */
    async advance(
      { group: request }: AdvanceRequest,
      signal: AbortSignal,
      tell?: (progress: AdvanceProgress) => void,
    ): Promise<AdvanceResult> {
      const start = Date.now();
      const lease = await leaseOf(deps, request, signal);
      try {
        const incidents = new IncidentList();
        const group = request.grows
          ? await growGroup(deps.store, request, request.grows, signal)
          : await startGroup(deps, request, lease, incidents.asker(signal));
        const advance = {
          number: ++advances,
          progress: { done: 0, total: group.episodes.length, tokens: 0 },
        };
        tell?.(advance.progress);
        const { agent } = request;
        let advanced = group;
        if (agent) {
          const asker = incidents.asker(signal);
          advanced = await byAgents(deps, request, agent, lease, group, advance.progress, asker);
        } else
          await together(signal, group.episodes, async (episode, shared) => {
            const followed = { task: group.tasks[episode.task]!, episode };
            await takeEpisode(deps, request, lease, followed, advance, incidents.asker(shared));
            advance.progress.done++;
          });
        const part = await deps.store.putIfAbsent(keyOf(request, 'start'), parts, advanced, { signal });
        const waiting = await Promise.all(
          waitingPages(part.value).map((page, i) =>
            deps.store.putIfAbsent(keyOf(request, `start-${i}`), pages, page, { signal }),
          ),
        );
        return {
          part: part.ref,
          pages: waiting.map(({ ref }) => ref),
          spans: [{ part: 'rollout', start, end: Date.now() }],
          incidents: incidents.all,
        };
      } finally {
        lease.release();
      }
    },

    /** Whether the servers of a run can do what it asks; before anything is spent. */
    async assertServersCan({ policy, scalesLogits }: ServersRequest, signal: AbortSignal): Promise<void> {
      await deps.otherPolicies.served(policy).assertCapable(scalesLogits, signal);
    },

    /** What servers say of the model that they began with. */
    async askHeld({ policy }: HeldRequest, signal: AbortSignal): Promise<HeldAnswer> {
      const fleet = deps.otherPolicies.served(policy);
      return fleet.says(signal);
    },

    /** Whether the agent of a run can be started here; before anything is spent. */
    async assertAgentStarts({ agent }: AgentRequest, _signal: AbortSignal): Promise<void> {
      await assertStartable(agent);
    },

    /**
     * What the policy itself says of a group's episodes, stored for who verifies them. A pure function of the request, as
     * `advance` is.
     */
    async judgeOwn(
      { group, part, followed, judge }: SelfJudgeRequest,
      signal: AbortSignal,
    ): Promise<JudgeResult> {
      const start = Date.now();
      const { run, stage, step, policy } = group;
      const whole = await mergeParts(deps.store, part, followed);
      const lease = await deps.policies.lease(judge.checkpoint, { run, signal, dtype: roundedTo(policy) });
      try {
        const session = `judge/${++advances}`;
        const judged = await judgeOwnGroup(lease, group, whole, judge, session, signal);
        const key = judgedKey(run, stage, step, whole.id);
        const { ref } = await deps.store.putIfAbsent(key, judgedEpisodes, judged, { signal });
        return { judged: ref, spans: [{ part: 'verification', start, end: Date.now() }] };
      } finally {
        lease.release();
      }
    },

    /** The calls that the episodes of a page wait for. */
    async dueCalls({ group, page }: DueCallsRequest, signal: AbortSignal): Promise<LongCall[]> {
      const waiting = await deps.store.read(page, pages, { signal });
      return waiting.flatMap((one) => dueCall(deps, group, one) ?? []);
    },

    /** Goes on with episodes whose long calls came back, each as if it were alone. */
    async resume(
      { group, returned }: ResumeRequest,
      signal: AbortSignal,
      tell?: (progress: AdvanceProgress) => void,
    ): Promise<ResumeResult> {
      const start = Date.now();
      const lease = await leaseOf(deps, group, signal);
      try {
        const incidents = new IncidentList();
        const advance = { number: ++advances, progress: { done: 0, total: returned.length, tokens: 0 } };
        tell?.(advance.progress);
        const episodes: ResumeResult['episodes'] = [];
        await together(signal, [...returned.entries()], async ([i, one], shared) => {
          const followed = await openEpisode(deps, group, lease, one);
          const { episode } = followed;
          const key = keyOf(group, `${episodeIndex(group, episode)}-${placeOfCall(one.call.id).place}`);
          await takeEpisode(deps, group, lease, followed, advance, incidents.asker(shared));
          advance.progress.done++;
          const kept = await deps.store.putIfAbsent(key, pages, [followed], { signal: shared });
          episodes[i] = { part: kept.ref, call: dueCall(deps, group, episodeOf(kept.value, one.call)) };
        });
        return {
          episodes,
          spans: [{ part: 'rollout', start, end: Date.now() }],
          incidents: incidents.all,
        };
      } finally {
        lease.release();
      }
    },

    /** Lets go of the sessions of a group that nobody goes on with. */
    async closeSessions({ group: request }: AdvanceRequest, signal: AbortSignal): Promise<void> {
      const incidents = new IncidentList();
      const first = request.grows ? firstSampleOf(await treesOf(deps.store, request.grows, signal)) : 0;
      const refs = await resolved(deps, request.tasks, signal);
      const names = [...new Set(refs.map(({ environment }) => environment))];
      for (const environment of names.map((name) => environmentOf(deps.environments, name))) {
        const sessions = refs.flatMap((ref, task) => {
          if (ref.environment !== environment.name) return [];
          return Array.from({ length: request.samples }, (_, sample) => ({
            ref,
            id: `${longName(request)}/${episodeIndex(request, { task, sample: first + sample })}`,
            acts: [],
          }));
        });
        await environment.close(sessions, incidents.asker(signal));
      }
    },

    /** Makes one object of episodes that have ended, so that whoever judges the group is told of few. */
    async gather({ group, page, parts: refs }: GatherRequest, signal: AbortSignal): Promise<BlobRef> {
      const ended = await Promise.all(refs.map((ref) => deps.store.read(ref, pages, { signal })));
      const kept = await deps.store.putIfAbsent(keyOf(group, `end-${page}`), pages, ended.flat(), { signal });
      return kept.ref;
    },
  };
}

/** What the activities of a worker have in common. */
interface Working extends RolloutDependencies {
  otherPolicies: OtherPolicies;
  newest: NewestWeights;
}

/** What speaks for a group, and samples for it unless each turn has weights of its own. */
function leaseOf(
  { policies, otherPolicies, newest }: Working,
  group: OpenGroup,
  signal: AbortSignal,
): Promise<PolicyLease> {
  const { run, checkpoint, policy } = group;
  if (isContinuing(group)) return newest.speaker(group, signal);
  return isRecording(policy)
    ? otherPolicies.of(policy).lease(checkpoint, { run, signal })
    : policies.lease(checkpoint, { run, signal, dtype: roundedTo(policy) });
}

/** The episode that a long call came back to, with what the call brought. */
async function openEpisode(
  deps: RolloutDependencies,
  group: OpenGroup,
  lease: PolicyLease,
  { part, call, result }: ReturnedEpisode,
): Promise<FollowedEpisode> {
  const { task, episode } = episodeOf(await deps.store.read(part, pages), call);
  if (episode.status.kind !== 'calling') {
    throw new GradusError('policy', 'no-call', `nothing waits for ${call.id}`);
  }
  if ('failed' in result) {
    episode.status = { kind: 'failed', boundary: result.boundary, reason: result.failed };
  } else {
    const { session, ...observation } = await deps.store.read(result.observation, observations);
    observeCall(
      {
        dialect: lease.dialectFor(speaking(deps, task)),
        sampling: group.sampling,
        maxPositions: lease.config.maxPositions,
        promptTokens: task.promptTokens,
      },
      episode,
      { observation, ...(session && { session }) },
    );
  }
  return { task, episode };
}

/** null for an episode that has ended. */
function dueCall(
  deps: RolloutDependencies,
  group: OpenGroup,
  { task, episode }: FollowedEpisode,
): LongCall | null {
  if (episode.status.kind !== 'calling') return null;
  const { name } = episode.status.call;
  const { environment } = task.ref;
  const { file, tools, resume } = environmentOf(deps.environments, environment);
  const tool = (task.tools ?? tools).find((other) => other.name === name)!;
  return {
    task: episode.task,
    sample: episode.sample,
    environment,
    file,
    tool: name,
    id: keyOfNextCall(`${longName(group)}/${episodeIndex(group, episode)}`, episode.turns),
    timeoutSeconds: tool.limits.timeoutSeconds,
    maxAttempts: toolAttempts(tool),
    once: tool.effect === 'once',
    ...(resume === 'pin' && deps.ownQueue !== undefined && { queue: deps.ownQueue }),
  };
}
