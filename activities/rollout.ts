import { setMaxListeners } from 'node:events';
import type { Episode, RolloutGroup } from '../core/episode.ts';
import { GradusError } from '../core/errors.ts';
import { ids } from '../core/names.ts';
import { randomKey } from '../core/random.ts';
import type { AdvanceRequest, AdvanceResult, GroupRequest, LongCall } from '../core/requests.ts';
import { advanceEpisode, observe } from './advance-episode.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import type { PolicyLease, PolicyPool } from './policy-pool.ts';
import { partKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';
import { attemptsOf, limitsOf } from './tool-call.ts';
import type { Durable } from './durable.ts';
import { episodeOf, readObservation, readPart } from './trajectory-parts.ts';

export interface RolloutDependencies {
  store: ObjectStore;
  policies: PolicyPool;
  environments: Environments;
}

export type RolloutActivities = Durable<ReturnType<typeof createRollout>>;

/** The number of this process's advances: sessions of different attempts of one episode must not meet. */
let advances = 0;

export function createRollout(deps: RolloutDependencies) {
  return {
    /**
     * Advances the episodes of a group until each has ended or waits for a long tool call. A pure function of the
     * request: another attempt samples the same tokens, to the bit.
     */
    async advance(request: AdvanceRequest, signal: AbortSignal): Promise<AdvanceResult> {
      const start = Date.now();
      const lease = await deps.policies.lease(request.group.checkpoint);
      try {
        const { group, active, name } = await openPart(deps, request, lease);
        const number = ++advances;
        await together(signal, active, (episode, shared) =>
          advanceOne(deps, request.group, lease, group, episode, number, shared),
        );
        const { run, stage, step, group: index } = request.group;
        const part = await deps.store.putJson(partKey(run, stage, step, index, name), group, { signal });
        return {
          part,
          calls: dueCalls(deps, request.group, group),
          spans: [{ part: 'rollout', start, end: Date.now() }],
        };
      } finally {
        lease.release();
      }
    },
  };
}

/** Does all at once. When one fails the others are called off, and have ended before the failure is thrown. */
async function together<T>(
  signal: AbortSignal,
  items: readonly T[],
  work: (item: T, signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const calledOff = new AbortController();
  const shared = AbortSignal.any([signal, calledOff.signal]);
  setMaxListeners(0, shared);
  let failure: { error: unknown } | undefined;
  await Promise.all(
    items.map(async (item) => {
      try {
        await work(item, shared);
      } catch (error) {
        failure ??= { error };
        calledOff.abort(error);
      }
    }),
  );
  if (failure) throw failure.error;
}

/** The episodes to advance: all of a new group, or the one whose long call came back. */
async function openPart(
  deps: RolloutDependencies,
  { group: request, resume }: AdvanceRequest,
  lease: PolicyLease,
): Promise<{ group: RolloutGroup; active: Episode[]; name: string }> {
  if (!resume) {
    const group = startGroup(deps, request, lease);
    return { group, active: group.episodes, name: 'start' };
  }
  const before = await readPart(deps.store, resume.part);
  const episode = episodeOf(before, resume.call);
  if (episode.status.kind !== 'calling') {
    throw new GradusError('policy', 'no-call', `nothing waits for ${resume.call.id}`);
  }
  if ('failed' in resume.result) {
    episode.status = { kind: 'failed', boundary: 'tool', reason: resume.result.failed };
  } else {
    const observation = await readObservation(deps.store, resume.result.observation);
    observe(
      {
        dialect: lease.dialectFor(
          environmentOf(deps.environments, before.tasks[episode.task]!.ref.environment),
        ),
        sampling: request.sampling,
        maxPositions: lease.config.maxPositions,
        promptTokens: before.tasks[episode.task]!.promptTokens,
      },
      episode,
      observation,
    );
  }
  return {
    group: { ...before, episodes: [episode] },
    active: [episode],
    name: `${episodeIndex(request, episode)}-${episode.turns.length}`,
  };
}

function startGroup(deps: RolloutDependencies, request: GroupRequest, lease: PolicyLease): RolloutGroup {
  const tasks = request.tasks.map((drawn) => {
    const environment = environmentOf(deps.environments, drawn.environment);
    // A family with an end is gone through again.
    const ref = { ...drawn, index: drawn.index % environment.taskCount(drawn.split, drawn.level) };
    const { prompt } = environment.task(ref);
    const dialect = lease.dialectFor(environment);
    return { ref, prompt, promptTokens: dialect.promptTokens([{ role: 'user', content: prompt }]) };
  });
  const episodes: Episode[] = tasks.flatMap((_, task) =>
    Array.from({ length: request.samples }, (_, sample) => ({
      task,
      sample,
      tokens: [],
      mask: [],
      logprobs: [],
      turns: [],
      status: { kind: 'running' },
    })),
  );
  return {
    id: `group-${String(request.group).padStart(4, '0')}`,
    weights: request.checkpoint.weights,
    temperature: request.sampling.temperature,
    tasks,
    episodes,
  };
}

async function advanceOne(
  deps: RolloutDependencies,
  request: GroupRequest,
  lease: PolicyLease,
  group: RolloutGroup,
  episode: Episode,
  advance: number,
  signal: AbortSignal,
): Promise<void> {
  const task = group.tasks[episode.task]!;
  const index = episodeIndex(request, episode);
  const session = `${advance}/${index}`;
  const room = lease.config.maxPositions;
  if (task.promptTokens.length >= room) {
    episode.status = {
      kind: 'failed',
      boundary: 'policy',
      reason: `the prompt has ${task.promptTokens.length} tokens and the model holds ${room}: raise model.maxPositions`,
    };
    return;
  }
  const environment = environmentOf(deps.environments, task.ref.environment);
  try {
    await advanceEpisode(
      {
        policy: lease.policy,
        tokenizer: lease.tokenizer,
        dialect: lease.dialectFor(environment),
        environment,
        sampling: request.sampling,
        maxPositions: room,
        promptTokens: task.promptTokens,
        episodeId: `${longName(request)}/${index}`,
        session,
        key: randomKey(
          request.seed,
          'rollout',
          request.stage,
          request.step,
          request.firstTask + episode.task,
          episode.sample,
        ),
        signal,
      },
      episode,
    );
  } finally {
    lease.policy.release(session);
  }
}

const longName = ({ run, stage, step, group }: GroupRequest): string => ids.group(run, stage, step, group);
const episodeIndex = (request: GroupRequest, episode: Episode): number =>
  episode.task * request.samples + episode.sample;

function dueCalls(deps: RolloutDependencies, request: GroupRequest, group: RolloutGroup): LongCall[] {
  return group.episodes.flatMap((episode): LongCall[] => {
    if (episode.status.kind !== 'calling') return [];
    const { name } = episode.status.call;
    const { environment } = group.tasks[episode.task]!.ref;
    const tool = environmentOf(deps.environments, environment).tools.find((other) => other.name === name)!;
    const limits = limitsOf(tool);
    return [
      {
        task: episode.task,
        sample: episode.sample,
        environment,
        tool: name,
        id: `${longName(request)}/${episodeIndex(request, episode)}/${episode.turns.length}`,
        timeoutSeconds: limits.timeoutSeconds,
        heartbeatSeconds: limits.heartbeatSeconds,
        maxAttempts: attemptsOf(tool),
      },
    ];
  });
}
