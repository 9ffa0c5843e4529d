import type { RandomStream } from '../random.ts';
import type { LeagueDraw } from '../schema/stages/earlier-policy.ts';
import type { RlStageSpec } from '../schema/stages/rl.ts';
import type { SelfPlaySpec } from '../schema/stages/self-play.ts';
import { drawOf, opponentsOf } from './earlier-policies.ts';
import { learnabilityOf } from './proposals.ts';
import type { Solved, StepProposal } from './proposals.ts';
import { playedRoles } from './roles.ts';
import type { Score, SelfPlayFacts } from './step-facts.ts';

// A league is several opponents of a stage of self-play, one of which a step meets: alike (fictitious self-play, Heinrich et
// al., ICML 2015), or by how the policy fares against each (prioritized, Vinyals et al. 2019, 10.1038/s41586-019-1724-z).

/** What a stage remembers of an opponent: the sum of its scores against it, and the steps that met it, both decayed. */
export interface OpponentRecord {
  score: number;
  steps: number;
}

/** By the opponent's stage; who was never met is not in it. */
export type LeagueRecord = Record<string, OpponentRecord>;

/**
 * What is left of a record after as many steps as there are opponents, met or not: who was not met for long is as unknown as at
 * first. Of a longer league records last longer, or they would say nothing.
 */
const DECAY = 0.9;

/** AlphaStar's f_hard with its exponent for main agents, and f_var, of the score against an opponent. */
const WEIGHTS: Record<Exclude<LeagueDraw, 'uniform'>, (score: number) => number> = {
  hard: (score) => (1 - score) ** 2,
  variance: (score) => score * (1 - score),
};

/** Estimate in (0, 1): the mean score, with one step more that was even. So no weight is 0, and nobody is never met again. */
export const scoreAgainst = ({ score, steps }: OpponentRecord = { score: 0, steps: 0 }): number =>
  (score + 1 / 2) / (steps + 1);

/** The opponent that a step meets. */
export function drawOpponent<T extends { stage: string }>(
  opponents: readonly T[],
  how: Pick<SelfPlaySpec, 'proposer' | 'solver'>,
  league: LeagueRecord,
  random: RandomStream,
): T {
  const draw = drawOf(how);
  if (draw === 'uniform') return random.pick(opponents);
  const weights = opponents.map(({ stage }) => WEIGHTS[draw](scoreAgainst(league[stage])));
  return opponents[random.weighted(weights)]!;
}

/**
 * How a step went for the policy against its opponent, where that is what opponents are drawn by. Of a solver: of its samples of
 * new tasks those that succeed, or that give the majority's answer where this is the label; one success where no proposal was a
 * new task. Of a proposer: how much there is to learn from what it proposed, whatever it is paid for what is no task.
 */
export function scoreOf(
  how: Pick<SelfPlaySpec, 'proposer' | 'solver' | 'learnability'>,
  proposals: readonly StepProposal[],
  solved: readonly Solved[],
): Score | undefined {
  if (drawOf(how) === 'uniform') return undefined;
  if (playedRoles(how).proposer) {
    const tasks = proposals.flatMap((one) => (one.kind === 'made' ? [solved[one.task]!] : []));
    const learnable = tasks.flatMap((one) => (one.trials > 0 ? [learnabilityOf(one, how.learnability)] : []));
    return { sum: learnable.reduce((a, b) => a + b, 0), count: learnable.length };
  }
  // Where nobody could say what a proposal is, it may have been a task.
  if (solved.length === 0 && proposals.length > 0 && proposals.every(({ kind }) => kind !== 'unjudged'))
    return { sum: 1, count: 1 };
  return {
    sum: solved.reduce((sum, { successes }) => sum + successes, 0),
    count: solved.reduce((sum, { trials }) => sum + trials, 0),
  };
}

/** The record after a step, where its stage draws opponents by it. */
export function leagueAfter(
  stage: RlStageSpec,
  { league = {} }: { league?: LeagueRecord },
  facts: SelfPlayFacts,
): { league?: LeagueRecord } {
  const { opponent, score } = facts;
  if (opponent === undefined || score === undefined) return {};
  const known = score.count === 0 ? null : score.sum / score.count;
  return { league: recordMeeting(league, opponent, known, opponentsOf(stage).length) };
}

/** The record after a step that met `opponent`, one of so many. */
export function recordMeeting(
  before: LeagueRecord,
  opponent: string,
  score: number | null,
  opponents: number,
): LeagueRecord {
  const left = DECAY ** (1 / opponents);
  const next: LeagueRecord = {};
  for (const [name, one] of Object.entries(before))
    next[name] = { score: one.score * left, steps: one.steps * left };
  if (score === null) return next;
  const { score: sum, steps } = next[opponent] ?? { score: 0, steps: 0 };
  return { ...next, [opponent]: { score: sum + score, steps: steps + 1 } };
}
