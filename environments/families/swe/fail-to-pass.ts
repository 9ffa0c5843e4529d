import type { FastVerifier } from '../../contract/environment.ts';

/**
 * 1 where the tests of FAIL_TO_PASS and of PASS_TO_PASS pass, 0 where one does not (SWE-bench, Jimenez et al. 2024). They
 * ran when the episode ended, in its session, on a clock of their own; abstains where no session has said anything.
 */
export function failToPass(): FastVerifier {
  return {
    name: 'fail-to-pass',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: ({ episode }) => {
      const info = episode.session?.ended?.info as { mended?: boolean; evidence?: string } | undefined;
      if (info?.mended === undefined) return { kind: 'abstain', reason: 'no tests have run' };
      return { kind: 'score', score: info.mended ? 1 : 0, evidence: info.evidence ?? '' };
    },
  };
}
