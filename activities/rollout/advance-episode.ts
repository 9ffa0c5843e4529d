import { actsOf, keyOfNextCall } from '../../core/episode/acts.ts';
import { joinedObservation } from '../../core/episode/call-by-call.ts';
import type { Episode, EpisodeSession, Observation, ToolCall, Turn } from '../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { RandomKey } from '../../core/random.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { SamplingSpec } from '../../core/schema/sampling.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import { malformedObservation } from '../../engine/dialect/malformed.ts';
import type { AskedBeams, Policy, TurnPolicy } from '../../engine/policy.ts';
import { sampleTurn } from '../../engine/sample-turn.ts';
import type { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import { isDeath } from '../../environments/host/asks.ts';
import type { Called, SessionAsk } from '../../environments/host/asks.ts';
import { toolAttempts } from '../../environments/host/facts.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import type { HostCaller, HostedEnvironment } from '../../environments/host/hosted-environment.ts';
import { inAttempts } from '../../environments/host/in-attempts.ts';

export interface AdvanceContext {
  policy: Policy;
  /** What samples a turn, by its number, in the place of `policy`; absent: that one samples all of them. */
  turnPolicy?: ((turn: number) => Promise<TurnPolicy>) | undefined;
  tokenizer: Tokenizer;
  /** Bound to the tools. */
  dialect: Dialect;
  environment: Pick<HostedEnvironment, 'resume' | 'call' | 'refusalOf' | 'end' | 'close' | 'threw'>;
  ref: TaskRef;
  /** Those of the task. */
  tools: readonly ToolFacts[];
  sampling: SamplingSpec;
  /** Turns are searched for; a group that is named is that of the first turn, and the best of all follows it. */
  beams?: AskedBeams;
  /** Longest sequence that the model can hold, prompt included, tokens. */
  maxPositions: number;
  promptTokens: readonly number[];
  /** What the first turn begins with, whatever the policy would have: masked out. */
  beginning?: readonly number[];
  /** Unique in the run. */
  episodeId: string;
  /** Unique among the sessions that the policy has. */
  policySession: string;
  key: RandomKey;
  signal: AbortSignal;
  /** Told how many tokens each turn had, once it is sampled. */
  sampled?: (tokens: number) => void;
  /** Told of what users' code did wrong. */
  incident?: HostCaller['incident'];
  /** Absent: what calls show is named and not kept. */
  putImages?: (called: Called) => Promise<Called>;
}

/** Pause before an inline tool is tried again, milliseconds, doubled each time. */
const INLINE_PAUSE_MS = 50;

/**
 * Samples turns and runs inline tools until the episode ends or a long tool call is due. Changes `episode` in place.
 * Token in, token out: sampled ids are appended as they are; observations are tokenized once.
 */
export async function advanceEpisode(context: AdvanceContext, episode: Episode): Promise<void> {
  await takeTurns(context, episode);
  if (context.environment.resume !== null) await endSession(context, episode);
}

async function takeTurns(context: AdvanceContext, episode: Episode): Promise<void> {
  const { tokenizer, dialect, sampling } = context;
  const room = roomOf(context);
  // One that a long call came back to may have others to make.
  await makeCalls(context, episode);
  while (episode.status.kind === 'running') {
    if (episode.turns.length >= sampling.maxTurns) return truncate(episode, 'turns');
    const begun = episode.turns.length === 0 ? (context.beginning ?? []) : [];
    for (const token of begun.slice(0, room)) append(episode, token, 0, 0);
    const left = room - episode.tokens.length;
    if (left <= 0) return truncate(episode, 'tokens');
    const by = await context.turnPolicy?.(episode.turns.length);
    const sampled = await sampleTurn(
      { ...context, policy: by?.policy ?? context.policy, ...beamsOf(context, episode) },
      episode,
      left,
      begun,
    ).finally(() => by?.release());
    context.sampled?.(sampled.tokens.length);
    const start = episode.tokens.length;
    for (let i = 0; i < sampled.tokens.length; i++) {
      append(episode, sampled.tokens[i]!, 1, sampled.samplerLogprobs[i]!, sampled.kept?.[i]);
    }
    const text = tokenizer.decode([...begun, ...sampled.tokens]);
    const action = dialect.parse(text, sampling.maxParallelCalls);
    const weights = by?.weights;
    const turn: Turn = {
      start,
      end: episode.tokens.length,
      text,
      action,
      ...(weights !== undefined && { weights }),
    };
    episode.turns.push(turn);
    if (sampled.finish === 'length') return truncate(episode, 'tokens');

    if (action.kind === 'answer') {
      episode.status = { kind: 'answered', answer: action.answer };
    } else if (action.kind === 'malformed') {
      observe(context, episode, malformedObservation(action.reason));
    } else await makeCalls(context, episode);
  }
}

/** Those of the next turn. */
function beamsOf({ beams }: Pick<AdvanceContext, 'beams'>, { turns }: Episode): { beams?: AskedBeams } {
  if (!beams || turns.length === 0) return beams ? { beams } : {};
  const { group: _, ...ofAll } = beams;
  return { beams: ofAll };
}

/** Makes the calls that the last turn has left, one after the other, up to a long one or to the end of the episode. */
async function makeCalls(context: AdvanceContext, episode: Episode): Promise<void> {
  for (let call = nextCall(episode); call; call = nextCall(episode)) {
    const { name } = call;
    const tool = context.tools.find((other) => other.name === name);
    if (tool?.placement === 'long') await prepareLong(context, episode, call);
    else await callInline(context, episode, call, tool);
  }
}

/** The call that an episode's last turn is to make next; undefined where there is none, or the episode does not go on. */
function nextCall({ status, turns }: Episode): ToolCall | undefined {
  const turn = turns.at(-1);
  if (status.kind !== 'running' || !turn || turn.observation) return undefined;
  if (turn.action.kind === 'call') return turn.action.call;
  return turn.action.kind === 'calls' ? turn.action.calls[turn.results?.length ?? 0] : undefined;
}

/** An episode's session, as its turns have left it. */
export const sessionOf = (
  {
    ref,
    tools,
    environment,
    episodeId,
  }: Pick<AdvanceContext, 'ref' | 'tools' | 'episodeId'> & {
    environment: Pick<HostedEnvironment, 'resume'>;
  },
  { turns, session }: { turns: Parameters<typeof actsOf>[0]; session?: EpisodeSession | undefined },
): SessionAsk => ({
  ref,
  id: episodeId,
  // Of a fold whose state is kept, what has led there is not needed to go on.
  acts: environment.resume === null || session?.state !== undefined ? [] : actsOf(turns, tools),
  kept: session,
});

/** What a call brought to its episode. */
export function observeCall(
  context: Parameters<typeof observe>[0],
  episode: Episode,
  { observation, session }: Called,
): void {
  if (session) episode.session = session;
  observe(context, episode, observation);
}

/**
 * Appends what a tool answered, as the policy reads it; the episode goes on, unless that fills it up or ends it. Of a turn
 * with several calls nothing is read before all of them are made.
 */
export function observe(
  context: Pick<AdvanceContext, 'dialect' | 'sampling' | 'maxPositions' | 'promptTokens'>,
  episode: Episode,
  observation: Observation,
): void {
  const turn = episode.turns.at(-1)!;
  if (turn.action.kind === 'calls') {
    turn.results = [...(turn.results ?? []), observation];
    if (observation.done || turn.results.length === turn.action.calls.length)
      turn.observation = joinedObservation(turn.results);
  } else turn.observation = observation;
  if (observation.done) {
    // Nobody reads it any more.
    episode.status = { kind: 'ended' };
    return;
  }
  episode.status = { kind: 'running' };
  if (!turn.observation) return;
  const tokens = readAfter(context.dialect, turn);
  const left = Math.max(0, roomOf(context) - episode.tokens.length);
  for (const token of tokens.slice(0, left)) append(episode, token, 0, 0);
  if (tokens.length >= left) truncate(episode, 'tokens');
}

/** What the policy reads after a turn that it has all results of. */
export const readAfter = (
  dialect: Pick<Dialect, 'observationTokens' | 'messageTokens'>,
  { text, observation, results }: Turn,
): number[] =>
  results
    ? dialect.messageTokens(
        results.map((one) => ({ role: 'tool', content: one.text })),
        text,
      )
    : dialect.observationTokens(observation!, text);

/** An episode that has ended lets go of its session, which has the last word unless the episode has failed. */
async function endSession(context: AdvanceContext, episode: Episode): Promise<void> {
  const { environment, signal, incident } = context;
  const { status } = episode;
  if (status.kind === 'calling' || status.kind === 'running') return;
  const session = sessionOf(context, episode);
  try {
    if (status.kind === 'failed') return await environment.close([session], { signal, incident });
    const answer = status.kind === 'answered' ? status.answer : null;
    const by = status.kind === 'answered' ? 'answer' : status.kind === 'ended' ? 'environment' : status.limit;
    const ended = await environment.end(session, { answer, by }, { signal, incident });
    // What it takes to come back is of no more use.
    const { state } = episode.session ?? {};
    episode.session = { ...(state !== undefined && { state }), ended };
  } catch (error) {
    signal.throwIfAborted();
    fail(episode, error);
  }
}

/** Tokens that an episode may have after its prompt: what the spec allows and the model holds. */
function roomOf(context: Pick<AdvanceContext, 'sampling' | 'maxPositions' | 'promptTokens'>): number {
  return Math.min(context.sampling.maxCompletionTokens, context.maxPositions - context.promptTokens.length);
}

/** A call that its tool would not take is answered at once; any other is due. */
async function prepareLong(context: AdvanceContext, episode: Episode, call: ToolCall): Promise<void> {
  try {
    const { environment, tools, signal, incident } = context;
    const session = sessionOf(context, episode);
    const refusal = await environment.refusalOf(call, { signal, incident, session }, tools);
    if (refusal) observe(context, episode, refusal);
    else episode.status = { kind: 'calling', call };
  } catch (error) {
    context.signal.throwIfAborted();
    fail(episode, error);
  }
}

/** `tool` is undefined for one that there is not, which is answered in the same way. */
async function callInline(
  context: AdvanceContext,
  episode: Episode,
  call: ToolCall,
  tool: ToolFacts | undefined,
): Promise<void> {
  const { environment, tools, signal, incident } = context;
  const session = sessionOf(context, episode);
  const idempotencyKey = keyOfNextCall(context.episodeId, episode.turns);
  let called: Called;
  try {
    called = await inAttempts(
      (attempt) => environment.call(call, { signal, incident, idempotencyKey, attempt, session }, tools),
      { attempts: tool ? toolAttempts(tool) : 1, firstPauseMs: INLINE_PAUSE_MS, signal },
    );
  } catch (error) {
    signal.throwIfAborted();
    if (!isDeath(error)) incident?.(environment.threw(`tool ${call.name}`, messageOf(error)));
    return fail(episode, error);
  }
  // A store that is away is no failure of the call's.
  observeCall(context, episode, (await context.putImages?.(called)) ?? called);
}

/**
 * Never a zero, whatever the call was: the tool may be at fault, or its session, or by its own word what it needs is away.
 */
function fail(episode: Episode, error: unknown): void {
  const said = error instanceof GradusError ? error.boundary : 'tool';
  const boundary = said === 'infra' || said === 'environment' ? said : 'tool';
  episode.status = { kind: 'failed', boundary, reason: messageOf(error) };
}

function append(episode: Episode, token: number, mask: 0 | 1, logprob: number, kept?: number[]): void {
  // From the first token that says it on, which the policy samples.
  if (kept) episode.kept ??= episode.tokens.map(() => []);
  episode.tokens.push(token);
  episode.mask.push(mask);
  episode.samplerLogprobs.push(logprob);
  episode.kept?.push(kept ?? []);
}

function truncate(episode: Episode, limit: 'tokens' | 'turns'): void {
  episode.status = { kind: 'truncated', limit };
}
