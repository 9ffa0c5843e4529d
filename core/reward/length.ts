import type { LinearLength, Overlong, SigmoidLength } from '../schema/reward-rules.ts';
import { sampledTokens } from './rule.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

export type LengthRule = LinearLength | SigmoidLength | Overlong;

/**
 * How short an episode is, as the score of a penalty: at 1 nothing is taken off, at 0 the full weight.
 *
 * - `linear-length`, of T sampled tokens: 1 up to `target`, 0 from `limit` on, and a line between them.
 * - `sigmoid-length`: σ(−(T − target) / scale), so half of the weight at `target`, and some of it everywhere.
 * - `overlong`: 1 plus the soft overlong punishment of DAPO (Yu et al. 2025, equation 13): 1 up to `limit − buffer`
 *   tokens, 0 from `limit` on. It counts what the limit of sampling counts: everything after the prompt.
 */
export function lengthScore(rule: LengthRule, { episode }: JudgedSample): RuleVerdict {
  const length = rule.kind === 'overlong' ? afterItsPrompt(episode) : sampledTokens(episode);
  return { score: scoreOf(rule, length), evidence: `${length} tokens` };
}

/** What an agent has of a prompt of its own stands before its first turn, and no limit counts it. */
const afterItsPrompt = ({ tokens, turns }: JudgedSample['episode']): number =>
  tokens.length - (turns[0]?.start ?? 0);

function scoreOf(rule: LengthRule, length: number): number {
  switch (rule.kind) {
    case 'linear-length':
      return falling(length, rule.target, rule.limit);
    case 'sigmoid-length':
      return 1 / (1 + Math.exp((length - rule.target) / rule.scale));
    default:
      return falling(length, rule.limit - rule.buffer, rule.limit);
  }
}

/** 1 up to `from`, 0 from `to` on. */
const falling = (length: number, from: number, to: number): number =>
  Math.min(1, Math.max(0, (to - length) / (to - from)));
