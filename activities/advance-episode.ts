import { setTimeout as delay } from 'node:timers/promises';
import type { Episode, Observation, Turn } from '../core/episode.ts';
import { messageOf } from '../core/errors.ts';
import type { RandomKey } from '../core/random.ts';
import type { SamplingSpec } from '../core/spec.ts';
import type { Dialect } from '../engine/dialect/contract.ts';
import { malformedObservation } from '../engine/dialect/malformed.ts';
import type { Policy } from '../engine/policy.ts';
import type { Tokenizer } from '../engine/tokenizer/tokenizer.ts';
import type { Environment, Tool } from '../environments/contract.ts';
import { sampleTurn } from './sample-turn.ts';
import { attemptCall, attemptsOf, refuseCall } from './tool-call.ts';

export interface AdvanceContext {
  policy: Policy;
  tokenizer: Tokenizer;
  /** Bound to the tools of the environment. */
  dialect: Dialect;
  environment: Pick<Environment, 'tools'>;
  sampling: SamplingSpec;
  /** Longest sequence that the model can hold, prompt included, tokens. */
  maxPositions: number;
  promptTokens: readonly number[];
  /** Unique in the run. */
  episodeId: string;
  /** Unique among the sessions of the policy. */
  session: string;
  key: RandomKey;
  signal: AbortSignal;
}

/** Pause before an inline tool is tried again, milliseconds, doubled each time. */
const INLINE_BACKOFF_MS = 50;

/**
 * Samples turns and runs inline tools until the episode ends or a long tool call is due. Changes `episode` in place.
 * Token in, token out: sampled ids are appended as they are; observations are tokenized once.
 */
export async function advanceEpisode(context: AdvanceContext, episode: Episode): Promise<void> {
  const { tokenizer, dialect, environment, sampling } = context;
  const room = roomOf(context);
  while (episode.status.kind === 'running') {
    if (episode.turns.length >= sampling.maxTurns) return truncate(episode, 'turns');
    const left = room - episode.tokens.length;
    if (left <= 0) return truncate(episode, 'tokens');
    const sampled = await sampleTurn(context, episode, left);
    const start = episode.tokens.length;
    for (let i = 0; i < sampled.tokens.length; i++) {
      append(episode, sampled.tokens[i]!, 1, sampled.logprobs[i]!);
    }
    const text = tokenizer.decode(sampled.tokens);
    const turn: Turn = { start, end: episode.tokens.length, text, action: dialect.parse(text) };
    episode.turns.push(turn);
    if (sampled.finish === 'length') return truncate(episode, 'tokens');

    const { action } = turn;
    if (action.kind === 'answer') {
      episode.status = { kind: 'answered', answer: action.answer };
    } else if (action.kind === 'malformed') {
      observe(context, episode, malformedObservation(action.reason));
    } else {
      const refusal = refuseCall(action.call, environment.tools);
      const tool = environment.tools.find(({ name }) => name === action.call.name);
      if (refusal !== null || tool === undefined) {
        observe(context, episode, refusal ?? malformedObservation('no such tool'));
      } else if (tool.placement === 'long') {
        episode.status = { kind: 'calling', call: action.call };
      } else {
        await callInline(context, episode, tool);
      }
    }
  }
}

/** Appends what a tool answered, as the policy reads it; the episode goes on, unless that fills it up. */
export function observe(
  context: Pick<AdvanceContext, 'dialect' | 'sampling' | 'maxPositions' | 'promptTokens'>,
  episode: Episode,
  observation: Observation,
): void {
  episode.turns.at(-1)!.observation = observation;
  episode.status = { kind: 'running' };
  const tokens = context.dialect.observationTokens(observation);
  const left = Math.max(0, roomOf(context) - episode.tokens.length);
  for (const token of tokens.slice(0, left)) append(episode, token, 0, 0);
  if (tokens.length >= left) truncate(episode, 'tokens');
}

/** Tokens that an episode may have after its prompt: what the spec allows and the model holds. */
function roomOf(context: Pick<AdvanceContext, 'sampling' | 'maxPositions' | 'promptTokens'>): number {
  return Math.min(context.sampling.maxCompletionTokens, context.maxPositions - context.promptTokens.length);
}

async function callInline(context: AdvanceContext, episode: Episode, tool: Tool): Promise<void> {
  const { action } = episode.turns.at(-1)!;
  if (action.kind !== 'call') return;
  const attempts = attemptsOf(tool);
  for (let attempt = 1; ; attempt++) {
    try {
      const observation = await attemptCall(tool, action.call, {
        idempotencyKey: `${context.episodeId}/${episode.turns.length}`,
        attempt,
        signal: context.signal,
        heartbeat: () => undefined,
      });
      observe(context, episode, observation);
      return;
    } catch (error) {
      context.signal.throwIfAborted();
      const retryable = (error as { retryable?: boolean }).retryable === true;
      if (!retryable || attempt >= attempts) {
        // The tool's fault, not the policy's: the episode is an infrastructure outcome, never a zero.
        episode.status = { kind: 'failed', boundary: 'tool', reason: messageOf(error) };
        return;
      }
      await delay(INLINE_BACKOFF_MS * 2 ** (attempt - 1), undefined, { signal: context.signal });
    }
  }
}

function append(episode: Episode, token: number, mask: 0 | 1, logprob: number): void {
  episode.tokens.push(token);
  episode.mask.push(mask);
  episode.logprobs.push(logprob);
}

function truncate(episode: Episode, limit: 'tokens' | 'turns'): void {
  episode.status = { kind: 'truncated', limit };
}
