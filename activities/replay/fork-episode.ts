import { actsOf, keyOfNextCall } from '../../core/episode/acts.ts';
import { keyOfDraws } from '../../core/episode/draws.ts';
import type { Episode, ToolCall, Turn } from '../../core/episode/episode.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { RandomKey } from '../../core/random.ts';
import { isOfGroup } from '../../core/reward/rules.ts';
import type { Alternative, Policy, SampleRequest, SampleResult } from '../../engine/policy.ts';
import { toolAttempts } from '../../environments/host/facts.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { inAttempts } from '../../environments/host/in-attempts.ts';
import { advanceEpisode, observeCall, sessionOf } from '../rollout/advance-episode.ts';
import type { AdvanceContext } from '../rollout/advance-episode.ts';
import type { PolicyLease } from '../rollout/policies.ts';
import { verify } from '../verification/verify-episodes.ts';
import { told, tokenText } from './replay-episode.ts';
import type { ReplayedToken } from './replay-episode.ts';
import type { ReplayableEpisode } from './stored-episode.ts';

export interface Fork {
  /** Position of a token that the policy sampled: what stands before it stays. */
  at: number;
  /** What stands there instead; null: it is drawn anew, too. */
  token: number | null;
  /** Draws what follows. null: the draws are those of the episode, so that nothing but the token is another one. */
  seed: number | null;
}

/** What became of an episode from another token on. It is nobody's: no run keeps it, and nothing is learnt from it. */
export interface Forked {
  at: number;
  promptTokens: number;
  tokens: ReplayedToken[];
  turns: Turn[];
  status: Episode['status'];
  /** By the reward of the run, without rules that compare the samples of a task; null where it was stopped. */
  outcome: Outcome | null;
  /** Why it was not gone on with to its end. */
  stopped: string | null;
}

export interface ForkOptions {
  environment: HostedEnvironment;
  alternatives: number;
  signal: AbortSignal;
  onProgress?: (tokens: number) => void;
}

/** A pause before a tool is tried again, milliseconds, doubled each time. */
const PAUSE_MS = 200;

/**
 * Goes on from any token that an episode's policy sampled, with another one or with other draws, to an end of its own: with
 * the real decoder and the real environment, whose session comes back by the calls before that token (ADR 0044).
 * Throws GradusError('policy', 'fork') for what is no such token, and GradusError('environment', 'fork') where the
 * session cannot be had twice.
 */
export async function forkEpisode(
  stored: ReplayableEpisode,
  lease: PolicyLease,
  { at, token, seed }: Fork,
  { environment, alternatives, signal, onProgress }: ForkOptions,
): Promise<Forked> {
  const { place, spec, task, episode: was, sampled } = stored;
  const turn = turnOf(was, at);
  const { tools = environment.tools } = task;
  assertReachable(stored, environment, tools, turn);
  const { run, stage, step, group, episode: index } = place;
  const id = ['fork', run, stage, step, group, index, at, token ?? 'any', seed ?? 'same'].join('/');
  const other =
    seed === null
      ? null
      : keyOfDraws({ ...sampled, seed }, { place: task.place!, sample: was.sample }, 'rollout');
  // What a branch has of another sample was drawn by that one's draws, and the rest by its own.
  const keyAt = (position: number): RandomKey => other ?? stored.keyAt(position, 'rollout');
  const policy = new ForkingPolicy(lease.policy, was, { at, token, keyAt, alternatives, onProgress });
  const begun = was.turns[0]!.start;
  const upTo = turn === 0 ? 0 : was.turns[turn]!.start;
  const episode: Episode = {
    task: was.task,
    sample: was.sample,
    tokens: was.tokens.slice(0, upTo),
    mask: was.mask.slice(0, upTo),
    samplerLogprobs: was.samplerLogprobs.slice(0, upTo),
    ...(was.kept && { kept: was.kept.slice(0, upTo) }),
    turns: structuredClone(was.turns.slice(0, turn)),
    status: { kind: 'running' },
  };
  const guarded = guard(environment, tools);
  const context: AdvanceContext = {
    policy,
    tokenizer: lease.tokenizer,
    dialect: lease.dialectFor({ tools }),
    environment: guarded.environment,
    ref: task.ref,
    tools,
    beginning: was.tokens.slice(0, begun),
    sampling: sampled.sampling,
    maxPositions: lease.config.maxPositions,
    promptTokens: task.promptTokens,
    episodeId: id,
    policySession: id,
    key: keyAt(at),
    signal,
  };
  try {
    await advanceEpisode(context, episode);
    while (episode.status.kind === 'calling') {
      await callLong(context, episode, episode.status.call);
      await advanceEpisode(context, episode);
    }
  } finally {
    lease.policy.release(id);
  }
  const { stopped } = guarded;
  const { rules, ...reward } = spec.reward;
  const own = { ...reward, ...(rules && { rules: rules.filter((rule) => !isOfGroup(rule)) }) };
  const outcome =
    stopped === null ? await verify(environment, { ref: task.ref, episode }, own, { signal }) : null;
  const textOf = tokenText(lease.tokenizer);
  return {
    at,
    promptTokens: task.promptTokens.length,
    tokens: episode.tokens.map((id, i): ReplayedToken => {
      const others = policy.told.get(i);
      return {
        id,
        text: textOf(id),
        ...(episode.mask[i] === 1 && { logprob: episode.samplerLogprobs[i]! }),
        ...(others && episode.mask[i] === 1 && { alternatives: told(others, textOf) }),
      };
    }),
    turns: episode.turns,
    status: episode.status,
    outcome,
    stopped,
  };
}

/** The number of the turn that sampled a position, from 0. */
function turnOf({ turns, tokens }: Episode, at: number): number {
  const turn = turns.findIndex(({ start, end }) => at >= start && at < end);
  if (turn >= 0) return turn;
  const ranges = turns.map(({ start, end }) => `${start} to ${end - 1}`).join(', ');
  throw new GradusError(
    'policy',
    'fork',
    `an episode is forked where its policy sampled a token: ${ranges === '' ? 'this one has none' : ranges}, and not at ${at} (it has ${tokens.length} tokens)`,
  );
}

/** Throws GradusError('environment', 'fork') where what the calls before the fork have led to cannot be had again. */
function assertReachable(
  { spec, episode }: ReplayableEpisode,
  { name, resume, version, file }: HostedEnvironment,
  tools: readonly ToolFacts[],
  turn: number,
): void {
  const refuse = (why: string): GradusError => new GradusError('environment', 'fork', why);
  const begun = spec.taskVersions?.[name];
  if (version !== null && begun !== undefined && begun !== version) {
    throw refuse(
      `the run has tasks of ${name} in version ${begun}, and ${file} now has ${version}: put the source of its tasks back as it was`,
    );
  }
  const acts = actsOf(episode.turns.slice(0, turn), tools);
  if (acts.length === 0) return;
  if (resume === 'pin' || resume === 'reattach') {
    throw refuse(
      `${name} keeps its sessions where they cannot be opened a second time (${resume}): fork in turn ${acts[0]!.turn}, of the first call, or before it`,
    );
  }
  const once = acts.find(({ call }) => tools.find((tool) => tool.name === call.name)?.effect === 'once');
  if (once) {
    throw refuse(
      `the call of ${once.call.name} in turn ${once.turn} must not be made a second time, and the session of ${name} does not come back without it: fork in that turn or before it`,
    );
  }
}

interface Guarded {
  environment: AdvanceContext['environment'];
  stopped: string | null;
}

/** The environment, but for calls that must be made once only: they are the run's, and a fork stops before them. */
function guard(environment: HostedEnvironment, tools: readonly ToolFacts[]): Guarded {
  const guarded: Guarded = {
    stopped: null,
    environment: {
      resume: environment.resume,
      refusalOf: (...args) => environment.refusalOf(...args),
      end: (...args) => environment.end(...args),
      close: (...args) => environment.close(...args),
      threw: (...args) => environment.threw(...args),
      call: async (call, context, known) => {
        if (tools.find(({ name }) => name === call.name)?.effect === 'once') {
          const refusal = await environment.refusalOf(call, context, known);
          if (refusal) return { observation: refusal };
          guarded.stopped = `${call.name} must be called once only: a fork does not call it`;
          throw new GradusError('tool', 'fork', guarded.stopped);
        }
        return environment.call(call, context, known);
      },
    },
  };
  return guarded;
}

/** A long call, here and now. */
async function callLong(context: AdvanceContext, episode: Episode, call: ToolCall): Promise<void> {
  const { environment, tools, signal, episodeId } = context;
  const tool = tools.find(({ name }) => name === call.name)!;
  const session = sessionOf(context, episode);
  const idempotencyKey = keyOfNextCall(episodeId, episode.turns);
  try {
    const called = await inAttempts(
      (attempt) => environment.call(call, { signal, idempotencyKey, attempt, session }, tools),
      { attempts: toolAttempts(tool), firstPauseMs: PAUSE_MS, signal },
    );
    observeCall(context, episode, called);
  } catch (error) {
    signal.throwIfAborted();
    episode.status = { kind: 'failed', boundary: 'tool', reason: messageOf(error) };
  }
}

interface Forking {
  at: number;
  token: number | null;
  keyAt: (position: number) => RandomKey;
  alternatives: number;
  onProgress?: ((tokens: number) => void) | undefined;
}

/** Samples what stands before the fork as it stands there, then the token that was chosen, and from then on by itself. */
class ForkingPolicy implements Policy {
  /** What could have been drawn, by position. */
  readonly told = new Map<number, Alternative[]>();
  private readonly policy: Policy;
  private readonly episode: Episode;
  private readonly fork: Forking;

  constructor(policy: Policy, episode: Episode, fork: Forking) {
    this.policy = policy;
    this.episode = episode;
    this.fork = fork;
  }

  async sample(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult> {
    const { at } = this.fork;
    const begin = request.continuation.length;
    if (begin > at) return this.go(request, signal);
    const { tokens, samplerLogprobs, kept } = this.episode;
    const end = Math.min(at, begin + request.maxNewTokens);
    const before: SampleResult = {
      tokens: tokens.slice(begin, end),
      samplerLogprobs: samplerLogprobs.slice(begin, end),
      ...(kept && { kept: kept.slice(begin, end) }),
      finish: 'length',
    };
    if (end - begin === request.maxNewTokens) return before;
    const chosen = await this.chosen(behind(request, before), signal);
    const begun = joined(before, chosen);
    if (chosen.finish === 'stop' || begun.tokens.length === request.maxNewTokens) return begun;
    return joined(begun, await this.go(behind(request, begun), signal));
  }

  release(session: string): void {
    this.policy.release(session);
  }

  close(): Promise<void> {
    return this.policy.close();
  }

  /** The token at the fork: the one that was chosen, with the log-prob that it has there, or the one that is drawn. */
  private async chosen(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult> {
    const { at, token, alternatives } = this.fork;
    const asked = { most: alternatives, also: token === null ? [] : [token] };
    const drawn = await this.go({ ...request, maxNewTokens: 1, alternatives: asked }, signal);
    if (token === null || drawn.tokens[0] === token) return drawn;
    const own = this.told.get(at)!.find((one) => one.token === token);
    if (!own) {
      throw new GradusError(
        'policy',
        'fork',
        `token ${token} has no probability at all at ${at}: the model cannot sample it there`,
      );
    }
    const finish = request.stopTokens.includes(token) ? 'stop' : 'length';
    return { tokens: [token], samplerLogprobs: [own.logprob], ...(drawn.kept && { kept: [[]] }), finish };
  }

  private async go(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult> {
    const { keyAt, alternatives, onProgress } = this.fork;
    const asked = { alternatives: { most: alternatives }, ...request };
    const start = request.continuation.length;
    const sampled = await this.policy.sample({ ...asked, key: keyAt(start) }, signal);
    sampled.alternatives?.forEach((others, i) => this.told.set(start + i, others));
    onProgress?.(start + sampled.tokens.length);
    return sampled;
  }
}

const behind = (request: SampleRequest, { tokens }: SampleResult): SampleRequest => ({
  ...request,
  continuation: [...request.continuation, ...tokens],
  mask: [...(request.mask ?? request.continuation.map(() => 1)), ...tokens.map(() => 1)],
  maxNewTokens: request.maxNewTokens - tokens.length,
});

const joined = (first: SampleResult, then: SampleResult): SampleResult => ({
  tokens: [...first.tokens, ...then.tokens],
  samplerLogprobs: [...first.samplerLogprobs, ...then.samplerLogprobs],
  ...((first.kept ?? then.kept) && {
    kept: [...(first.kept ?? first.tokens.map(() => [])), ...(then.kept ?? then.tokens.map(() => []))],
  }),
  finish: then.finish,
});
