import type { Candidate, FastVerifier, Verdict } from '../../contract/environment.ts';
import type { Judgement } from './judge.ts';

/** What hidden tests said when the episode ended, in its session; undefined where no session has said anything. */
export const judgementOf = ({ episode }: Pick<Candidate, 'episode'>): Judgement | undefined =>
  episode.session?.ended?.info as Judgement | undefined;

const isWhole = ({ passed, tests }: Judgement): boolean => passed === tests;

/** A retry reads this: there is nothing of the tests in it. */
const evidenceOf = ({ compileError, errors, passed, tests }: Judgement): string =>
  compileError ??
  `${passed} of ${tests} hidden tests passed${errors > 0 ? `, ${errors} ended in an error` : ''}`;

const ofJudgement = (name: string, score: (judgement: Judgement) => number): FastVerifier => ({
  name,
  version: '1',
  tier: 'fast',
  cost: { seconds: 0, usd: 0 },
  verify: (candidate): Verdict => {
    const judgement = judgementOf(candidate);
    if (judgement === undefined) return { kind: 'abstain', reason: 'no tests have run' };
    return { kind: 'score', score: score(judgement), evidence: evidenceOf(judgement) };
  },
});

/** 1 where the answer's function passes every hidden test, else 0. */
export const hiddenTests = (): FastVerifier => ofJudgement('hidden-tests', (one) => (isWhole(one) ? 1 : 0));

/** CodeRL's rewards: −1, −0.6, −0.3 and 1. */
const rewardOf = (judgement: Judgement): number => {
  if (judgement.compileError !== null) return -1;
  if (judgement.errors > 0) return -0.6;
  return isWhole(judgement) ? 1 : -0.3;
};

/**
 * The reward of CodeRL (Le et al. 2022, 2207.01780) as (r + 1) / 2: r is −1 for what does not compile, −0.6
 * where a test ends in an error, −0.3 where one fails, 1 where all pass.
 */
export const codeRl = (): FastVerifier => ofJudgement('coderl', (one) => (rewardOf(one) + 1) / 2);

/** The share of hidden tests that pass, of those beyond what the best constant passes: a constant answer earns nothing. */
export const testsPassed = (): FastVerifier =>
  ofJudgement(
    'tests-passed',
    ({ passed, tests, constant }) => Math.max(0, passed - constant) / (tests - constant),
  );
