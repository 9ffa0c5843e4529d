import type { Episode } from '../episode/episode.ts';
import { trainableReward } from '../episode/outcome.ts';
import type { Outcome } from '../episode/outcome.ts';
import { succeededToLearn, turnRewards } from '../episode/reward.ts';
import { scaledOutcome } from '../reward/normalization.ts';
import type { RewardScale } from '../reward/normalization.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { Score } from './scores.ts';

/**
 * An episode as a method sees it: its tokens as they were sampled, and what its outcome comes to. What is per token is over
 * its completion [T]: everything after the prompt.
 */
export interface Sample extends Pick<Episode, 'tokens' | 'samplerLogprobs' | 'kept' | 'branches'> {
  /** null: pending, abstained, failed by infrastructure, or left out by the spec. It then acts on nothing. */
  reward: number | null;
  success: boolean | null;
  /** 1 where the policy sampled, 0 for observations, and for what was sampled in the sample that this one branched off. */
  mask: readonly (0 | 1)[];
  /** The sample's own. */
  turns: readonly SampleTurn[];
  /** Turns of the sample that this one branched off, which come before its own. */
  before: readonly SampleTurn[];
  scores: Partial<Record<Score, ArrayLike<number>>>;
  /** Cut by a limit. */
  truncated: boolean;
}

interface SampleTurn {
  /** First sampled token, and one past the last. */
  start: number;
  end: number;
  /** Of the turn alone, in units of reward; 0 where nothing speaks of turns. */
  reward: number;
  /** What the policy saw last when the turn began: equal texts are equal states. */
  state: string;
  /** SHA-256 of the weights that sampled it; absent: those of the group. */
  weights?: string;
}

/** Whether an episode has a reward to train on: what has none is not scored either. */
export const isTrainable = ({ outcome }: Episode, { truncated }: Pick<RewardSpec, 'truncated'>): boolean =>
  outcome !== undefined && trainableReward(outcome, truncated) !== null;

/** The episode by an outcome, on the scale of its environment. The arrays of tokens are the episode's own. */
export function sampleOf(
  episode: Episode,
  outcome: Outcome | undefined,
  reward: RewardSpec,
  scale: RewardScale,
  scores: Sample['scores'],
): Sample {
  const { tokens, samplerLogprobs, kept, branches } = episode;
  const turns = turnsOf(episode, outcome ? turnRewards(reward, outcome) : null, scale);
  const inherited = episode.inherited?.turns ?? 0;
  return {
    reward: outcome ? scaledOutcome(outcome, reward.truncated, scale) : null,
    success: outcome ? succeededToLearn(reward.components, outcome) : null,
    tokens,
    samplerLogprobs,
    ...(kept && { kept }),
    ...(branches && { branches }),
    mask: ownMask(episode),
    turns: turns.slice(inherited),
    before: turns.slice(0, inherited),
    scores,
    truncated: outcome?.kind === 'truncated',
  };
}

/** Without what another sample has sampled, and learns from. */
const ownMask = ({ mask, inherited }: Episode): (0 | 1)[] =>
  inherited ? mask.map((bit, at) => (at < inherited.tokens ? 0 : bit)) : mask;

const turnsOf = (
  { turns }: Episode,
  rewards: readonly number[] | null,
  { deviation }: RewardScale,
): SampleTurn[] =>
  turns.map(({ start, end, weights }, i) => ({
    start,
    end,
    ...(weights !== undefined && { weights }),
    // A part of the whole: on its scale, but for the mean, which is taken off the whole.
    reward: (rewards?.[i] ?? 0) / deviation,
    // No observation is the prompt, not even an empty one.
    state: i === 0 ? 'prompt' : `read ${turns[i - 1]!.observation?.text ?? ''}`,
  }));
