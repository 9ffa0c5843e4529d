import type { Turn } from '../../../../core/episode/episode.ts';
import type { VerdictOfVerifier } from '../../../../core/episode/reward.ts';
import type { JudgedSample } from '../../../../core/reward/rule.ts';

/** A sample of so many sampled tokens, then so many that were observed. */
export function sample(
  options: {
    answer?: string | null;
    sampled?: number;
    observed?: number;
    /** Of each sampled token, nats. */
    logprob?: number;
    calls?: [name: string, argument: string][];
    verdicts?: VerdictOfVerifier[];
  } = {},
): JudgedSample {
  const { answer = null, sampled = 4, observed = 0, logprob = -0.5, calls = [], verdicts = [] } = options;
  const mask = [
    ...Array.from({ length: sampled }, () => 1 as const),
    ...Array.from({ length: observed }, () => 0 as const),
  ];
  const turns = calls.map(([name, argument]): Turn => ({
    start: 0,
    end: 0,
    text: '',
    action: { kind: 'call', call: { name, arguments: { argument } } },
  }));
  return {
    episode: {
      tokens: mask.map(() => 7),
      mask,
      samplerLogprobs: mask.map((bit) => bit * logprob),
      turns,
      status: answer === null ? { kind: 'truncated', limit: 'tokens' } : { kind: 'answered', answer },
    },
    verdicts,
  };
}

export const verdict = (verifier: string, rest: Partial<VerdictOfVerifier> = {}): VerdictOfVerifier => ({
  verifier,
  version: '1',
  score: 1,
  ...rest,
});
