import type { Episode } from '../core/episode/episode.ts';
import { GradusError } from '../core/errors.ts';
import type { RandomKey } from '../core/random.ts';
import type { Dialect } from './dialect/contract.ts';
import type { AskedBeams, Policy, SampleResult, SamplingSettings } from './policy.ts';
import type { Tokenizer } from './tokenizer/tokenizer.ts';

export interface TurnContext {
  policy: Policy;
  tokenizer: Tokenizer;
  dialect: Pick<Dialect, 'stopTokens' | 'isOver'>;
  sampling: SamplingSettings;
  /** The turn is searched for; throws GradusError('policy', 'beams') where only the text tells that it is over. */
  beams?: AskedBeams;
  promptTokens: readonly number[];
  /** Unique among the sessions that the policy has. */
  policySession: string;
  key: RandomKey;
  signal: AbortSignal;
}

/** Tokens that are sampled before the text of a turn is looked at again; those past its end are thrown away. */
const PIECE_TOKENS = 32;

/** Why turns of some dialects cannot be searched for. */
export const NO_STOP_TOKEN =
  'beams end at a stop token, and turns of this dialect at what they say: leave out beams, or choose a dialect with tokens that end a turn';

/**
 * One turn of the policy, of `most` tokens at most. Where only the text tells that a turn is over, it is sampled in
 * pieces and cut after the token that ends it. Neither changes what is kept: a draw is a function of its position, and
 * where a turn ends depends on nothing behind it. `begun` is what the continuation has of the turn already.
 */
export async function sampleTurn(
  { policy, tokenizer, dialect, sampling, beams, ...context }: TurnContext,
  { tokens: continuation, mask }: Pick<Episode, 'tokens' | 'mask'>,
  most: number,
  begun: readonly number[] = [],
): Promise<SampleResult> {
  const sample = (soFar: readonly number[], maxNewTokens: number): Promise<SampleResult> =>
    policy.sample(
      {
        session: context.policySession,
        prefix: context.promptTokens,
        continuation: soFar,
        mask: [...mask, ...soFar.slice(mask.length).map(() => 1)],
        maxNewTokens,
        stopTokens: dialect.stopTokens,
        sampling: { temperature: sampling.temperature, topK: sampling.topK, topP: sampling.topP },
        key: context.key,
        ...(beams && { beams }),
      },
      context.signal,
    );
  if (beams && dialect.isOver) throw new GradusError('policy', 'beams', NO_STOP_TOKEN);
  if (!dialect.isOver) return sample(continuation, most);
  const tokens: number[] = [];
  const samplerLogprobs: number[] = [];
  const kept: number[][] = [];
  const upTo = (end: number, { kept: has, served }: SampleResult) => ({
    tokens: tokens.slice(0, end),
    samplerLogprobs: samplerLogprobs.slice(0, end),
    ...(has && { kept: kept.slice(0, end) }),
    ...(served && { served }),
  });
  for (;;) {
    const piece = await sample([...continuation, ...tokens], Math.min(PIECE_TOKENS, most - tokens.length));
    const start = tokens.length;
    tokens.push(...piece.tokens);
    samplerLogprobs.push(...piece.samplerLogprobs);
    kept.push(...(piece.kept ?? []));
    const isOver = (sampled: readonly number[]) => dialect.isOver!(tokenizer.decode([...begun, ...sampled]));
    if (isOver(tokens)) {
      let end = start + 1;
      while (!isOver(tokens.slice(0, end))) end++;
      return { ...upTo(end, piece), finish: 'stop' };
    }
    const full = tokens.length >= most || piece.tokens.length === 0;
    if (piece.finish === 'stop' || full) return { ...upTo(tokens.length, piece), finish: piece.finish };
  }
}
