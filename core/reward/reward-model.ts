import type { ModelVerdict } from '../episode/outcome.ts';
import { isRewarded } from '../episode/outcome.ts';
import { LADDER } from '../ladder/requests.ts';
import type { Episode } from '../episode/episode.ts';
import { succeeded } from '../episode/reward.ts';
import type { CheckpointRef } from '../refs.ts';
import type { RewardSpec } from '../schema/reward.ts';
import { combined, disagreement } from './ensemble.ts';

// A reward model says of an episode how likely its success is: at the end of each turn, and so of the whole at the end of
// the last one. It is a critic (ADR 0069) whose value of a state is the logit.

/** What judges in training in the place of the verifier that decides. */
export interface ServedRewardModel {
  /** Of its stage: models that differ by what they were shown, and in which order. */
  models: CheckpointRef[];
  by: 'minimum' | 'mean-deviation';
  /** Of `mean-deviation`. */
  deviations: number;
}

/** An episode as a reward model reads it. */
export interface ReadEpisode {
  /** Prompt, completion, and one token more: the value of a state is said of the token behind it. */
  tokens: number[];
  /** Places of the tokens behind the ends of its turns, in order; of an episode without turns, the one behind all of it. */
  ends: number[];
}

/** What does not fit into the model is cut off behind, as it was for the policy. */
export function readEpisode(
  promptTokens: readonly number[],
  { tokens, turns }: Pick<Episode, 'tokens' | 'turns'>,
  maxPositions: number,
): ReadEpisode {
  const whole = [...promptTokens, ...tokens];
  // Whichever token stands there, nothing before it sees it.
  const read = [...whole, whole[0] ?? 0].slice(0, maxPositions);
  const last = read.length - 1;
  const ends = turns.length === 0 ? [tokens.length] : turns.map(({ end }) => end);
  return { tokens: read, ends: ends.map((end) => Math.max(1, Math.min(last, promptTokens.length + end))) };
}

/** What each model says at the end of each turn, in [0, 1]: one list a model. */
export type TurnProbabilities = readonly (readonly number[])[];

/**
 * What they come to: of the whole episode at the end of its last turn, and of each turn. An ensemble speaks by the minimum,
 * or by the mean less its deviations (Coste et al. 2023, arXiv 2310.02743): where its models disagree they have not seen
 * enough, and a policy that goes there is not paid for it.
 */
export function modelVerdict(
  said: TurnProbabilities,
  { by, deviations }: Pick<ServedRewardModel, 'by' | 'deviations'>,
): ModelVerdict {
  const turns = said[0]!.map((_, turn) => said.map((ofModel) => ofModel[turn]!));
  const members = turns.at(-1)!;
  return {
    score: combined(by, deviations, members),
    uncertainty: disagreement(members),
    steps: turns.map((scores) => combined(by, deviations, scores)),
    members,
  };
}

/**
 * What an episode is to be judged as: by the verifier that decides, whatever a model has said of it. null: nobody knows. On a
 * ladder that is so of what the lowest tier passed and no higher one was asked about.
 */
export function labelOf({ components, ladder }: RewardSpec, { outcome }: Episode): RewardLabel | null {
  if (!outcome) return null;
  const success = succeeded(components, outcome);
  if (success === null) return null;
  const decisive = components.find(({ role }) => role === 'outcome')!.verifier;
  const said = isRewarded(outcome) && outcome.components.find(({ verifier }) => verifier === decisive);
  const passedByLowest = success && said && said.version.startsWith(`${ladder?.verifier}@`);
  if (decisive === LADDER && said && (said.model || passedByLowest)) return null;
  const score = said && outcome.kind === 'scored' ? (said.worth ?? said.score) : null;
  return { label: score ?? Number(success), success };
}

interface RewardLabel {
  /** In [0, 1]. */
  label: number;
  success: boolean;
}

/** How well probabilities tell successes from failures, on episodes that they were not learnt from. */
export interface RewardModelQuality {
  episodes: number;
  successes: number;
  /** Part of them on the right side of a half. */
  accuracy: number;
  /**
   * The probability that a success is given more than a failure, ties counted half (Hanley & McNeil 1982); null where all
   * are of one kind.
   */
  auc: number | null;
  /** Mean squared error of the probability (Brier 1950); of graded scores, of what the model takes the score for. */
  brier: number;
  /**
   * Mean distance of probability and frequency over ten bins of equal width, by their episodes (Guo et al. 2017, arXiv 1706.04599);
   * of graded scores, of what the model takes the score for and its mean.
   */
  calibrationError: number;
  /** Mean deviation of the models of an ensemble from one another. */
  uncertainty: number;
}

const BINS = 10;

/** `predicted` is the mean of the models, `uncertainty` their deviation; `label` is the score that they learn. */
export function qualityOf(
  judged: readonly { predicted: number; uncertainty: number; label: number; success: boolean }[],
): RewardModelQuality {
  const count = Math.max(1, judged.length);
  const meanOf = (value: (one: (typeof judged)[number]) => number): number =>
    judged.reduce((sum, one) => sum + value(one), 0) / count;
  const bins = Array.from({ length: BINS }, () => ({ predicted: 0, labels: 0 }));
  for (const { predicted, label } of judged) {
    const bin = bins[Math.min(BINS - 1, Math.floor(predicted * BINS))]!;
    bin.predicted += predicted;
    bin.labels += label;
  }
  return {
    episodes: judged.length,
    successes: judged.filter(({ success }) => success).length,
    accuracy: meanOf(({ predicted, success }) => Number(predicted >= 0.5 === success)),
    auc: areaUnderCurve(judged),
    brier: meanOf(({ predicted, label }) => (predicted - label) ** 2),
    calibrationError:
      bins.reduce((sum, { predicted, labels }) => sum + Math.abs(predicted - labels), 0) / count,
    uncertainty: meanOf(({ uncertainty }) => uncertainty),
  };
}

/** By ranks (Mann & Whitney 1947); equal ones share theirs. */
function areaUnderCurve(judged: readonly { predicted: number; success: boolean }[]): number | null {
  const ordered = judged.toSorted((a, b) => a.predicted - b.predicted);
  const successes = judged.filter(({ success }) => success).length;
  const failures = judged.length - successes;
  if (successes === 0 || failures === 0) return null;
  let ranks = 0;
  for (let first = 0; first < ordered.length;) {
    let next = first;
    while (next < ordered.length && ordered[next]!.predicted === ordered[first]!.predicted) next++;
    const shared = (first + 1 + next) / 2;
    for (let i = first; i < next; i++) if (ordered[i]!.success) ranks += shared;
    first = next;
  }
  return (ranks - (successes * (successes + 1)) / 2) / (successes * failures);
}
