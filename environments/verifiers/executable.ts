import { callByCall } from '../../core/episode/call-by-call.ts';
import type { FastVerifier } from '../contract/environment.ts';

/**
 * 1 where every call was carried out, 0 where one was answered with an error: what ToRL (Li et al. 2025, arXiv 2503.23383)
 * calls executable code. It says nothing about whether the answer is right, and an episode without a call has the full score.
 */
export function executable(): FastVerifier {
  return {
    name: 'executable',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ episode }) => {
      const failed = episode.turns
        .flatMap(callByCall)
        .filter(({ action, observation }) => action.kind === 'call' && observation?.error).length;
      return { kind: 'score', score: failed === 0 ? 1 : 0, evidence: `calls that failed: ${failed}` };
    },
  };
}
