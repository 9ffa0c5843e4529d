import { isDeepStrictEqual } from 'node:util';
import type { Episode } from '../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Dialect } from '../../engine/dialect/contract.ts';
import type { Alternative, Policy, SampleResult } from '../../engine/policy.ts';
import type { Tokenizer } from '../../engine/tokenizer/tokenizer.ts';
import type { ToolFacts } from '../../environments/host/facts.ts';
import { readAfter } from '../rollout/advance-episode.ts';
import { beginCall } from '../rollout/begin-call.ts';
import type { PolicyLease } from '../rollout/policies.ts';
import type { ReplayableEpisode } from './stored-episode.ts';

/** A token that was sampled, then or now. */
export interface SampledToken {
  id: number;
  text: string;
  logprob: number;
}

/** A token of an episode, as people read it. */
export interface ReplayedToken {
  id: number;
  text: string;
  /** Of a token that the policy sampled, as it was recorded; absent of what it read. */
  logprob?: number;
  /** What could have been drawn in its place, likeliest first, whatever cuts of the sampling left out; itself among them. */
  alternatives?: SampledToken[];
}

/** Where what comes out now is not what was recorded. Positions are into the episode's tokens, turns are counted from 1. */
export type ReplayDifference =
  | { kind: 'token'; turn: number; position: number; recorded: SampledToken; replayed: SampledToken }
  /** The same token with another log-prob, or of other ones that it was drawn among. */
  | { kind: 'logprob'; turn: number; position: number; recorded: number; replayed: number }
  | { kind: 'kept'; turn: number; position: number; recorded: number[]; replayed: number[] }
  /** What the policy read, or what its turn was read as: of another version of the environment or of the software. */
  | { kind: 'text'; turn: number; position: number; what: string };

export interface Replayed {
  /** Every token, every log-prob to the bit, and whatever was read. */
  equal: boolean;
  /** Tokens that were sampled again. */
  sampled: number;
  /** By position. */
  differences: ReplayDifference[];
  /** Of what was read it is not known here how it came about: the environment is not known. */
  unread: boolean;
  promptTokens: number;
  turns: { start: number; end: number }[];
  tokens: ReplayedToken[];
}

export interface ReplayOptions {
  /** The tools of the episode's task; null where its environment is not known. */
  tools: readonly ToolFacts[] | null;
  /** How many of the likeliest tokens are told at each position; 0 for none. */
  alternatives: number;
  signal: AbortSignal;
  onProgress?: (done: number, total: number) => void;
  /** What samples by these weights, until it is asked for others; absent: the lease samples all turns. */
  policyOf?: (weights: string) => Promise<Policy>;
}

let replays = 0;

/**
 * Samples every token of an episode again, each behind what is recorded before it, and compares. No tool is called: what
 * the policy read is what it read then, and whether it would read the same now is said beside. What is sampled goes
 * through the same decoder in the same pieces, so equal weights give equal bits.
 */
export async function replayEpisode(
  stored: ReplayableEpisode,
  lease: PolicyLease,
  { tools, alternatives, signal, onProgress, policyOf }: ReplayOptions,
): Promise<Replayed> {
  const { task, episode, sampled } = stored;
  const { tokens, mask, turns } = episode;
  const { temperature, topK, topP } = sampled.sampling;
  const textOf = tokenText(lease.tokenizer);
  const shown = tokens.map((id, i): ReplayedToken => {
    const text = textOf(id);
    return mask[i] === 1 ? { id, text, logprob: episode.samplerLogprobs[i]! } : { id, text };
  });
  const differences: ReplayDifference[] = [];
  const total = turns.reduce((sum, { start, end }) => sum + end - start, 0);
  const session = `replay ${++replays}`;
  let done = 0;
  let { policy } = lease;
  try {
    for (const [n, { start, end, weights }] of turns.entries()) {
      policy = (await policyOf?.(weights ?? stored.group.weights)) ?? policy;
      for (let from = start; from < end;) {
        const now = await policy.sample(
          {
            session,
            prefix: task.promptTokens,
            continuation: tokens.slice(0, from),
            mask: mask.slice(0, from),
            maxNewTokens: end - from,
            stopTokens: [],
            sampling: { temperature, topK, topP },
            key: stored.keyAt(start, 'rollout'),
            ...(alternatives > 0 && { alternatives: { most: alternatives } }),
          },
          signal,
        );
        // What follows a token that differs is sampled behind the recorded one.
        const { compared, difference } = compare(episode, n + 1, from, now, textOf);
        for (let i = 0; i < compared; i++) {
          const others = now.alternatives?.[i];
          if (others) shown[from + i]!.alternatives = told(others, textOf);
        }
        differences.push(...difference);
        from += compared;
        done += compared;
        onProgress?.(done, total);
        if (compared === 0) {
          const what = `the model holds ${lease.config.maxPositions} tokens, and the episode has more`;
          differences.push({ kind: 'text', turn: n + 1, position: from, what });
          break;
        }
      }
    }
  } finally {
    policy.release(session);
  }
  const dialect = tools && lease.dialectFor({ tools });
  if (dialect) differences.push(...readAgain(stored, lease, dialect, tools));
  return {
    equal: differences.length === 0,
    sampled: done,
    differences: differences.toSorted((a, b) => a.position - b.position),
    unread: dialect === null,
    promptTokens: task.promptTokens.length,
    turns: turns.map(({ start, end }) => ({ start, end })),
    tokens: shown,
  };
}

/** Up to the first token that is another one, which is compared, too. */
function compare(
  { tokens, samplerLogprobs, kept }: Episode,
  turn: number,
  from: number,
  now: SampleResult,
  textOf: (id: number) => string,
): { compared: number; difference: ReplayDifference[] } {
  const difference: ReplayDifference[] = [];
  for (const [i, id] of now.tokens.entries()) {
    const position = from + i;
    const was = {
      id: tokens[position]!,
      text: textOf(tokens[position]!),
      logprob: samplerLogprobs[position]!,
    };
    const logprob = now.samplerLogprobs[i]!;
    if (id !== was.id) {
      const replayed = { id, text: textOf(id), logprob };
      difference.push({ kind: 'token', turn, position, recorded: was, replayed });
      return { compared: i + 1, difference };
    }
    if (logprob !== was.logprob)
      difference.push({ kind: 'logprob', turn, position, recorded: was.logprob, replayed: logprob });
    const [among, amongNow] = [kept?.[position] ?? [], now.kept?.[i] ?? []];
    if (!isDeepStrictEqual(among, amongNow))
      difference.push({ kind: 'kept', turn, position, recorded: among, replayed: amongNow });
  }
  return { compared: now.tokens.length, difference };
}

/** Whether prompt, beginning, observations and turns would be read as they were. */
function readAgain(
  { group, task, episode, sampled, keyAt }: ReplayableEpisode,
  { tokenizer, config }: Pick<PolicyLease, 'tokenizer' | 'config'>,
  dialect: Dialect,
  tools: readonly ToolFacts[],
): ReplayDifference[] {
  const { tokens, turns, status } = episode;
  const room = Math.min(sampled.sampling.maxCompletionTokens, config.maxPositions - task.promptTokens.length);
  const differences: ReplayDifference[] = [];
  const differ = (turn: number, position: number, what: string) =>
    differences.push({ kind: 'text', turn, position, what });
  // One that could not be posed has none; what was given the prompt of another task was sampled behind its own.
  const posed = task.promptTokens.length > 0 && group.id !== 'relabelled';
  const prompt = dialect.promptTokens([{ role: 'user', content: task.prompt }]);
  if (posed && !isDeepStrictEqual(prompt, task.promptTokens))
    differ(1, 0, 'the prompt would be other tokens now');
  const begun = turns[0]?.start ?? tokens.length;
  const key = keyAt(0, 'tool-choice');
  const beginning = beginCall({ dialect, tokenizer }, tools, sampled.toolChoice ?? 0, key);
  if (!isDeepStrictEqual(beginning.slice(0, room), tokens.slice(0, begun)))
    differ(1, 0, 'the call that the episode begins with would be another one now');
  for (const [i, one] of turns.entries()) {
    const { start, end, text, action, observation } = one;
    const turn = i + 1;
    const now = textOf(tokenizer, tokens.slice(i === 0 ? 0 : start, end));
    if (now !== text) differ(turn, start, 'its tokens would be another text now');
    const parsed = JSON.parse(
      JSON.stringify(dialect.parse(text, sampled.sampling.maxParallelCalls)),
    ) as unknown;
    if (!isDeepStrictEqual(parsed, action))
      differ(turn, start, 'its text would be read as something else now');
    const cut = i === turns.length - 1 && status.kind === 'truncated' && status.limit === 'tokens';
    const over = (to: number) =>
      dialect.stopTokens.includes(tokens[to - 1]!) ||
      dialect.isOver?.(textOf(tokenizer, tokens.slice(i === 0 ? 0 : start, to))) === true;
    if (end > start && ((end - start > 1 && over(end - 1)) || !(cut || over(end))))
      differ(turn, end - 1, 'it would end elsewhere now');
    const next = turns[turn]?.start ?? tokens.length;
    const read = observation && !observation.done ? readAfter(dialect, one).slice(0, room - end) : [];
    if (!isDeepStrictEqual(read, tokens.slice(end, next)))
      differ(turn, end, 'what came back to it would be other tokens now');
  }
  return differences;
}

const textOf = (tokenizer: Tokenizer, tokens: readonly number[]): string => {
  try {
    return tokenizer.decode(tokens);
  } catch (error) {
    // A token that is none is a difference of its own.
    if (error instanceof GradusError) return messageOf(error);
    throw error;
  }
};

/** What single tokens read as; a part of a character as U+FFFD. */
export function tokenText(tokenizer: Tokenizer): (id: number) => string {
  const known = new Map<number, string>();
  return (id) => {
    const text = known.get(id) ?? textOf(tokenizer, [id]);
    known.set(id, text);
    return text;
  };
}

export const told = (alternatives: readonly Alternative[], textOf: (id: number) => string): SampledToken[] =>
  alternatives.map(({ token, logprob }) => ({ id: token, text: textOf(token), logprob }));
