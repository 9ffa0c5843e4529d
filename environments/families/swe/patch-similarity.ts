import type { FastVerifier } from '../../contract/environment.ts';
import type { Bug } from './bug.ts';
import { hunksByPath } from './patch.ts';
import { ratio } from './sequence-matcher.ts';

/** A change of a file that is longer than that, characters, is like no mend of ours. */
const LONGEST_COMPARED = 5_000;

/**
 * The reward of SWE-RL (Wei et al. 2025, arXiv 2502.18449): how alike the patch and the one that mends the bug are, by
 * difflib's ratio, in the mean over all files that either of them changes. 0 for an empty patch, where the paper has −1
 * for an answer that is none: scores here begin at 0.
 */
export function patchSimilarity(
  bugOf: (candidate: Parameters<FastVerifier['verify']>[0]) => Bug,
): FastVerifier {
  return {
    name: 'patch-similarity',
    version: '1',
    tier: 'fast',
    cost: { seconds: 0, usd: 0 },
    verify: (candidate) => {
      const given = hunksByPath(patchOf(candidate));
      const wanted = hunksByPath(bugOf(candidate).mend);
      const paths = [...new Set([...given.keys(), ...wanted.keys()])];
      const scores = paths.map((path) => {
        const [one, other] = [given.get(path), wanted.get(path)];
        if (one === undefined || other === undefined || one.length > LONGEST_COMPARED) return 0;
        return ratio(one, other);
      });
      const score = scores.reduce((sum, each) => sum + each, 0) / scores.length;
      return { kind: 'score', score, evidence: `${given.size} of ${paths.length} files changed` };
    },
  };
}

/** The state of a session is the patch that its calls have made; empty before the first. */
function patchOf({ episode }: Parameters<FastVerifier['verify']>[0]): string {
  const state = episode.session?.state as { patch?: string } | undefined;
  return state?.patch ?? '';
}
