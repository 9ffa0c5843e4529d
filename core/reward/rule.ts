import type { Episode } from '../episode/episode.ts';
import type { VerdictOfVerifier } from '../episode/reward.ts';
import { plainCharacters } from '../plain-characters.ts';

/** What a rule reads of a sample of a task: of one that verifiers could be asked about. */
export interface JudgedSample {
  episode: Pick<Episode, 'tokens' | 'mask' | 'samplerLogprobs' | 'turns' | 'status'>;
  /** What verifiers said of it. */
  verdicts: readonly VerdictOfVerifier[];
}

/** What a rule says of a sample: a score in [0, 1], or null where there is nothing to say. */
export interface RuleVerdict {
  score: number | null;
  evidence: string;
}

/** Tokens that the policy wrote. */
export const sampledTokens = ({ mask }: JudgedSample['episode']): number =>
  mask.reduce<number>((sum, bit) => sum + bit, 0);

/**
 * What an answer comes down to, so that two that say the same are equal: as the first verifier says that knows, else
 * its letters, with variants of characters (`plainCharacters`) and white space made alike. null where there is no answer, or
 * one that comes down to nothing: what is empty, or no verifier can read, agrees with nobody.
 */
export function canonicalAnswer({ episode: { status }, verdicts }: JudgedSample): string | null {
  if (status.kind !== 'answered') return null;
  const text = verdicts.find(({ canonical }) => canonical !== undefined)?.canonical;
  return (text ?? plainCharacters(status.answer).replace(/\s+/gu, ' ').trim()) || null;
}
