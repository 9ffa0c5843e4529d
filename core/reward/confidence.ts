import { sampledTokens } from './rule.ts';
import type { JudgedSample, RuleVerdict } from './rule.ts';

/**
 * How sure the policy was of what it wrote, as a reward without labels: exp of the mean log-prob of its sampled tokens,
 * which is the inverse of their perplexity. The expectation of the mean is the negative entropy that is minimized by
 * Agarwal et al. 2025 (EM-RL) and Prabhudesai et al. 2025 (RENT), here from what was sampled. 0 without an answer.
 */
export function confidenceScore({ episode }: JudgedSample): RuleVerdict {
  if (episode.status.kind !== 'answered') return { score: 0, evidence: 'no answer' };
  const count = sampledTokens(episode);
  if (count === 0) return { score: null, evidence: 'nothing was sampled' };
  // 0 where a token was not sampled. Rounding may leave the sum of a sure policy a hair above it.
  const mean = Math.min(0, episode.samplerLogprobs.reduce((sum, logprob) => sum + logprob, 0) / count);
  return { score: Math.exp(mean), evidence: `${mean.toFixed(3)} nats a token` };
}
