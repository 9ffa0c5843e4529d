import type { Boundary } from '../errors.ts';

/** Verification tiers, cheapest first. */
export const TIERS = ['fast', 'simulation', 'high-fidelity', 'world'] as const;
export type Tier = (typeof TIERS)[number];

/** The part of a verifier, or of a rule, in a reward; kept with the episode so that a reward can be explained and recomposed. */
export interface RewardComponent {
  verifier: string;
  version: string;
  /** What the verifier said, in [0, 1]; null when it abstained. */
  score: number | null;
  /** What that counts for, where it is brought to another scale. */
  worth?: number;
  /** What it added to the reward after weight, gate and cap. */
  contribution: number;
  /** Whether that is a success, where the full score is not asked for. */
  passed?: boolean;
  /** A score in [0, 1] for each turn, of a verifier that judges steps. */
  steps?: number[];
  /** What an ensemble was made of. */
  members?: MemberVerdict[];
  /** What a reward model said in its place: that is what counts, and the score is only measured. */
  model?: ModelVerdict;
  /** What a reward model had said before a higher tier of the ladder judged. */
  overruled?: ModelVerdict;
  /**
   * In self-play by labels of the majority: whether the answer is the one that most samples of its task give. That is what
   * counts, and the score is only measured.
   */
  agreed?: boolean;
  /** What the answer comes down to; kept where samples vote. */
  canonical?: string;
  evidence?: string;
}

/** What the models of a reward stage said of an episode, probabilities of success; or the policy as its own judge. */
export interface ModelVerdict {
  /** What they come to together. */
  score: number;
  /** Their standard deviation; 0 of one model. */
  uncertainty: number;
  /** What they come to at the end of each turn; of an episode without turns, at its end. */
  steps: number[];
  /** What each said of the whole; of a judge, what each of its samples did that gave points. */
  members: number[];
  /** Of a judge: what its verdict has cost. */
  judge?: JudgeCost;
}

/** What it took the policy to judge an episode. */
export interface JudgeCost {
  /** Those that were drawn, whether or not they gave points. */
  samples: number;
  /** Sampled tokens of all of them. */
  tokens: number;
  /** What each sample said, its end. */
  words: string[];
  /** The transcript does not fit into the judge's context. */
  tooLong?: true;
}

/** A score for each turn, where the verifier, or the reward model in its place, has judged turns. */
export const stepsOf = ({
  model,
  score,
  steps,
}: Pick<RewardComponent, 'model' | 'score' | 'steps'>): number[] | undefined =>
  model?.steps ?? (score === null ? undefined : steps);

/** The component that is the whole reward of a proposal (self-play): by no verdict alone, so that no other weights change it. */
export const LEARNABILITY = 'self-play.learnability';

/** What a member of an ensemble said; null when it abstained. */
export type MemberVerdict = Pick<RewardComponent, 'verifier' | 'version' | 'score'>;

/** What a rule said of a sample, before it is composed. */
export type StoredRuleVerdict = Pick<RewardComponent, 'verifier' | 'version' | 'score' | 'evidence'>;

/**
 * What became of an episode. Only `scored` (and, where the spec says so, `truncated`) episodes enter group
 * statistics and the loss; the others are counted and never become a zero.
 */
export type Outcome =
  | { kind: 'scored'; reward: number; components: RewardComponent[] }
  | { kind: 'pending'; tier: Tier }
  /**
   * `ofSubject`: who should confirm it never can, so where success is counted this is none. `ruled`: what the rules that
   * compare the samples of a task have said of it, where a higher tier may yet speak of it alone. `judge`: the policy as its
   * own judge gave no score.
   */
  | {
      kind: 'abstained';
      reason: string;
      ofSubject?: true;
      ruled?: StoredRuleVerdict[];
      judge?: JudgeCost;
    }
  | { kind: 'truncated'; limit: 'tokens' | 'turns'; reward: number; components: RewardComponent[] }
  /** `acted`: at the boundary `environment`, where the policy had already acted in the session. */
  | { kind: 'failed'; boundary: Boundary; reason: string; acted?: true };

/** An outcome that verdicts were composed into. */
export type RewardedOutcome = Extract<Outcome, { components: unknown }>;

export const isRewarded = (outcome: Outcome): outcome is RewardedOutcome =>
  outcome.kind === 'scored' || outcome.kind === 'truncated';

/** A call of the policy made its tool fail, until the tool had no attempt left, or its session. */
export const isToolFailure = (outcome: Outcome): boolean =>
  outcome.kind === 'failed' && (outcome.boundary === 'tool' || outcome.acted === true);

export type OutcomeKind = Outcome['kind'];
export type OutcomeCounts = Record<OutcomeKind, number>;

export const noOutcomes = (): OutcomeCounts => ({
  scored: 0,
  pending: 0,
  abstained: 0,
  truncated: 0,
  failed: 0,
});

/** How many verdicts were composed for; where there is none, nothing can be learnt or decided. */
export const rewardedCount = ({ scored, truncated }: OutcomeCounts): number => scored + truncated;

/** In words, without the zeros. */
export function countsOf(counts: OutcomeCounts): string {
  const some = Object.entries(counts).filter(([, count]) => count > 0);
  return some.map(([kind, count]) => `${count} ${kind}`).join(', ') || 'there was none';
}

/** How truncated episodes are treated: trained on with their reward, or left out of loss and statistics. */
export type TruncatedRule = 'train' | 'mask';

/** The reward that group statistics may use, or null for an episode that must stay out of them. */
export function trainableReward(outcome: Outcome, truncated: TruncatedRule): number | null {
  if (outcome.kind === 'scored') return outcome.reward;
  if (outcome.kind === 'truncated' && truncated === 'train') return outcome.reward;
  return null;
}
