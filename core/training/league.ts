import type { RandomStream } from '../random.ts';
import type { LeagueDraw, Opponent } from '../schema/stages/earlier-policy.ts';
import type { RlStageSpec } from '../schema/stages/rl.ts';
import type { SelfPlaySpec } from '../schema/stages/self-play.ts';
import { playedRoles } from './roles.ts';
import type { SelfPlayFacts } from './step-facts.ts';

// A league is several opponents of a stage of self-play, one of which a step meets: alike (fictitious self-play, Heinrich et
// al., ICML 2015), or by how the policy fares against each (prioritized, Vinyals et al. 2019, 10.1038/s41586-019-1724-z).

/** What a stage remembers of an opponent: the sum of its scores against it, and the steps that met it, both decayed. */
export interface OpponentRecord {
  score: number;
  steps: number;
}

/** By the opponent's stage; who was never met is not in it. */
export type LeagueRecord = Record<string, OpponentRecord>;

/** Per step, met or not: who was not met for long is as unknown as at first. */
const DECAY = 0.9;

/** AlphaStar's f_hard with its exponent for main agents, and f_var, of the score against an opponent. */
const WEIGHTS: Record<LeagueDraw, (score: number) => number> = {
  uniform: () => 1,
  hard: (score) => (1 - score) ** 2,
  variance: (score) => score * (1 - score),
};

/** Estimate in (0, 1): the mean score, with one step more that was even. So no weight is 0, and nobody is never met again. */
export const scoreAgainst = ({ score, steps }: OpponentRecord = { score: 0, steps: 0 }): number =>
  (score + 1 / 2) / (steps + 1);

/** The place of the opponent that a step meets. */
export function drawOpponent(
  names: readonly string[],
  { draw = 'uniform' }: Pick<Opponent, 'draw'>,
  league: LeagueRecord,
  random: RandomStream,
): number {
  if (draw === 'uniform') return random.int(0, names.length - 1);
  return random.weighted(names.map((name) => WEIGHTS[draw](scoreAgainst(league[name]))));
}

/**
 * The score of a step in [0, 1] against the opponent that it met: of a solver the part of its samples of new tasks that
 * succeed, or of its votes that are the majority's where these are the labels, and 1 where no proposal was a new task; of a
 * proposer the mean reward of its proposals, within these bounds. null: nothing could be judged.
 */
export function scoreOf(how: Pick<SelfPlaySpec, 'proposer' | 'solver'>, facts: SelfPlayFacts): number | null {
  const { labels, successes, trials, made, known, invalid, malformed, setAside } = facts;
  const { rewardSum, rewardCount } = facts.proposer;
  if (playedRoles(how).proposer)
    return rewardCount === 0 ? null : Math.min(1, Math.max(0, rewardSum / rewardCount));
  if (made === 0) return known + invalid + malformed + setAside > 0 ? 1 : null;
  const [good = 0, of = 0] = labels ? [labels.agreed, labels.votes] : [successes, trials];
  return of === 0 ? null : good / of;
}

/** The record after a step, where its stage draws opponents by it. */
export function leagueAfter(
  { selfPlay: how }: Pick<RlStageSpec, 'selfPlay'>,
  { league = {} }: { league?: LeagueRecord },
  facts: SelfPlayFacts,
): { league?: LeagueRecord } {
  const { draw = 'uniform' } = how?.proposer ?? how?.solver ?? {};
  if (!how || draw === 'uniform' || facts.opponent === undefined) return {};
  return { league: recordMeeting(league, facts.opponent, scoreOf(how, facts)) };
}

/** The record after a step that met `opponent`. */
export function recordMeeting(before: LeagueRecord, opponent: string, score: number | null): LeagueRecord {
  const next: LeagueRecord = {};
  for (const [name, { score: sum, steps }] of Object.entries(before))
    next[name] = { score: sum * DECAY, steps: steps * DECAY };
  if (score === null) return next;
  const { score: sum, steps } = next[opponent] ?? { score: 0, steps: 0 };
  return { ...next, [opponent]: { score: sum + score, steps: steps + 1 } };
}
