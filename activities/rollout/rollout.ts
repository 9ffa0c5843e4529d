import { keyOfNextCall, placeOfCall } from '../../core/episode/acts.ts';
import { keyOfDraws } from '../../core/episode/draws.ts';
import type { Episode, EpisodeStatus, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import { armName, groupId, ids } from '../../core/names.ts';
import type { BlobRef, MadeTaskRef, TaskRef } from '../../core/refs.ts';
import type { AgentSpec } from '../../core/schema/agent.ts';
import { isRecording, roundedTo } from '../../core/schema/policy.ts';
import type {
  AdvanceProgress,
  AdvanceRequest,
  AdvanceResult,
  AgentRequest,
  DueCallsRequest,
  GatherRequest,
  GroupRequest,
  Growth,
  HeldAnswer,
  HeldRequest,
  JudgeResult,
  LongCall,
  OpenGroup,
  ResumeRequest,
  ResumeResult,
  ReturnedEpisode,
  SelfJudgeRequest,
  ServersRequest,
} from '../../core/requests.ts';
import { toolAttempts } from '../../environments/host/facts.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { AskKinds, Called } from '../../environments/host/asks.ts';
import type { HostCaller, HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { advanceEpisode, observeCall } from './advance-episode.ts';
import { beginCall } from './begin-call.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { branchesOf, firstSampleOf } from './branches.ts';
import { hintsFor } from './hints.ts';
import { serveGateway } from '../../gateway/server.ts';
import { assertStartable } from './agents/assert-startable.ts';
import { behindOnePrompt } from './agents/episode-of-turns.ts';
import { makeEpisode } from './agents/make-episode.ts';
import { Slots } from './agents/slots.ts';
import { inAttempts } from '../../environments/host/in-attempts.ts';
import { judgeOwnGroup } from './judge-own.ts';
import { judgedEpisodes } from '../training/judge-episodes.ts';
import { isContinuing, NewestWeights } from './newest-weights.ts';
import { putImages } from './put-images.ts';
import { storingPieces } from './stored-pieces.ts';
import { OtherPolicies } from './other-policies.ts';
import type { PolicyLease, PolicyProvider } from './policies.ts';
import { judgedKey, partKey, runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import type { TaskSource } from '../../core/training/task-source.ts';
import { readTaskSource } from '../../store/training/task-source.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import type { Durable } from '../durable.ts';
import { IncidentList } from '../incident-list.ts';
import { together } from './together.ts';
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
        const advanced = request.agent
          ? {
              ...group,
              ...(await byAgents(
                deps,
                request,
                request.agent,
                lease,
                group,
                advance,
                incidents.asker(signal),
              )),
            }
          : group;
        if (!request.agent)
          await together(signal, group.episodes, (episode, shared) => {
            const followed = { task: group.tasks[episode.task]!, episode };
            return advanceOne(deps, request, lease, followed, advance, incidents.asker(shared));
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
          await advanceOne(deps, group, lease, followed, advance, incidents.asker(shared));
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

const keyOf = ({ run, stage, step, group }: OpenGroup, name: string): string =>
  partKey(run, stage, step, group, name);

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

/** Whose tools a task has. */
const speaking = (deps: Pick<RolloutDependencies, 'environments'>, task: GroupTask) =>
  task.tools ? { tools: task.tools } : environmentOf(deps.environments, task.ref.environment);

/** The tools of a task, and the environment that has them. */
function toolsOfTask(
  { environments }: Pick<RolloutDependencies, 'environments'>,
  { ref, tools }: GroupTask,
): { environment: HostedEnvironment; tools: readonly ToolFacts[] } {
  const environment = environmentOf(environments, ref.environment);
  return { environment, tools: tools ?? environment.tools };
}

/** The same tasks as the trees have, each with more samples. */
async function growGroup(
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

const treesOf = (
  store: ObjectStore,
  { trees }: Pick<Growth, 'trees'>,
  signal: AbortSignal,
): Promise<RolloutGroup[]> => Promise.all(trees.map((ref) => loadTrajectories(store, ref, { signal })));

/** Tasks as they are asked for: those of a family with an end are gone through again, and made ones have what made them. */
async function resolved(
  { store, environments }: RolloutDependencies,
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

async function startGroup(
  deps: RolloutDependencies,
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

/**
 * The same coordinates are other tasks where their source is another one.
 * Throws GradusError('environment', 'version'), retryable: another worker may have the one that the run began with.
 */
async function assertVersions(
  { store, environments }: Pick<RolloutDependencies, 'store' | 'environments'>,
  run: string,
  refs: readonly TaskRef[],
  signal: AbortSignal,
): Promise<void> {
  const used = [...new Set(refs.map(({ environment }) => environment))];
  const versioned = used
    .map((name) => environmentOf(environments, name))
    .filter(({ version }) => version !== null);
  if (versioned.length === 0) return;
  const claim = await store.find(runKey(run), runClaims, { signal });
  for (const { name, file, version } of versioned) {
    const begun = claim?.spec?.taskVersions?.[name];
    if (begun === undefined || begun === version) continue;
    throw new GradusError(
      'environment',
      'version',
      `${run} began with the tasks of ${name} in version ${begun}, and ${file} now has ${version}: put the source of its tasks back as it was, or begin a new run`,
      { retryable: true },
    );
  }
}

type Posed = AskKinds['tasks']['answer'] | GradusError;

/** Attempts at a task whose source says that it may be there soon, and the pause before the second, milliseconds. */
const POSE_ATTEMPTS = 5;
const POSE_PAUSE_MS = 200;

async function posedBy(
  environments: Environments,
  refs: readonly TaskRef[],
  asker: HostCaller,
): Promise<Posed[]> {
  const posed: Posed[] = [];
  let left = [...refs.keys()];
  const pose = async (): Promise<void> => {
    const asked = left.map((i) => refs[i]!);
    const questions = await posedOnce(environments, asked, asker);
    questions.forEach((one, n) => (posed[left[n]!] = one));
    left = left.filter((i) => {
      const one = posed[i];
      return one instanceof GradusError && one.retryable;
    });
    if (left.length > 0) throw posed[left[0]!] as GradusError;
  };
  const { signal } = asker;
  await inAttempts(pose, { attempts: POSE_ATTEMPTS, firstPauseMs: POSE_PAUSE_MS, signal }).catch(
    (error: unknown) => {
      // Why a task could not be posed its episodes say.
      if (!posed.includes(error as Posed)) throw error;
    },
  );
  return posed;
}

/** In order, with one question to each environment. */
async function posedOnce(
  environments: Environments,
  refs: readonly TaskRef[],
  asker: HostCaller,
): Promise<Posed[]> {
  const posed: Posed[] = [];
  await Promise.all(
    [...new Set(refs.map(({ environment }) => environment))].map(async (name) => {
      const places = [...refs.keys()].filter((i) => refs[i]!.environment === name);
      const asked = places.map((i) => refs[i]!);
      const answers = await environmentOf(environments, name).tasks(asked, asker);
      answers.forEach((task, n) => (posed[places[n]!] = task));
    }),
  );
  return posed;
}

/** The episodes of a group, made by agents: a few at a time, each from its task to its end. */
async function byAgents(
  deps: Working & { slots: Slots },
  request: GroupRequest,
  agent: AgentSpec,
  lease: PolicyLease,
  { tasks, episodes }: RolloutGroup,
  { progress }: Advance,
  { signal, incident }: HostCaller,
): Promise<Pick<RolloutGroup, 'tasks' | 'episodes'>> {
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
  return behindOnePrompt(tasks, made);
}

/** One activity's work on its episodes. */
interface Advance {
  /** In this process. */
  number: number;
  progress: AdvanceProgress;
}

async function advanceOne(
  deps: Working,
  request: OpenGroup,
  lease: PolicyLease,
  followed: FollowedEpisode,
  advance: Advance,
  asker: HostCaller,
): Promise<void> {
  await takeEpisode(deps, request, lease, followed, advance, asker);
  advance.progress.done++;
}

async function takeEpisode(
  deps: Working,
  request: OpenGroup,
  lease: PolicyLease,
  { task, episode }: FollowedEpisode,
  { number, progress }: Advance,
  asker: HostCaller,
): Promise<void> {
  // One that could not even be posed has nothing to let go of.
  if (episode.status.kind === 'failed' && episode.turns.length === 0) return;
  const index = episodeIndex(request, episode);
  const policySession = `${number}/${index}`;
  const room = lease.config.maxPositions;
  if (task.promptTokens.length >= room) {
    episode.status = {
      kind: 'failed',
      boundary: 'policy',
      reason: `the prompt has ${task.promptTokens.length} tokens and the model holds ${room}: raise model.maxPositions`,
    };
    return;
  }
  const { environment, tools } = toolsOfTask(deps, task);
  const { tokenizer } = lease;
  const dialect = lease.dialectFor(speaking(deps, task));
  const { firstTask, toolChoice = 0, beams } = request;
  const drawn = { place: firstTask + episode.task, sample: episode.sample };
  const sampler = isContinuing(request)
    ? deps.newest.episode(request, index, asker.signal)
    : {
        policy: isRecording(request.policy)
          ? storingPieces(deps.store, request.policy, request, index, lease.policy)
          : lease.policy,
      };
  try {
    await advanceEpisode(
      {
        ...sampler,
        tokenizer,
        dialect,
        environment,
        ref: task.ref,
        tools,
        beginning: beginCall(
          { dialect, tokenizer },
          tools,
          toolChoice,
          keyOfDraws(request, drawn, 'tool-choice'),
        ),
        sampling: request.sampling,
        ...(beams && { beams: request.samples > 1 ? { ...beams, group: episode.sample } : beams }),
        maxPositions: room,
        promptTokens: task.promptTokens,
        episodeId: `${longName(request)}/${index}`,
        policySession,
        key: keyOfDraws(request, drawn, 'rollout'),
        sampled: (tokens) => void (progress.tokens += tokens),
        putImages: (called) => putImages(deps.store, request.run, called, { signal: asker.signal }),
        ...asker,
      },
      episode,
    );
  } finally {
    sampler.policy.release(policySession);
  }
}

const longName = ({ run, stage, step, group }: OpenGroup): string => ids.group(run, stage, step, group);
const episodeIndex = (
  request: Pick<OpenGroup, 'samples'>,
  { task, sample }: Pick<Episode, 'task' | 'sample'>,
): number => task * request.samples + sample;

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
