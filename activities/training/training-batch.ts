import { groupAdvantages } from '../../core/algorithms/advantage.ts';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { trainableReward } from '../../core/episode/outcome.ts';
import type { Outcome } from '../../core/episode/outcome.ts';
import type { BatchRequest } from '../../core/requests.ts';
import type { KeptSets, TrainBatch } from '../../engine/learner/contract.ts';

/** One sequence on its way into a batch; all arrays have the same length. */
export interface TrainSequence {
  tokens: number[];
  mask: number[];
  advantages: number[];
  logprobs: number[];
  /** Ids that each token was sampled among; empty where nothing was cut. Absent: nowhere. */
  kept?: number[][];
  /** Was sampled by an earlier policy than the one that learns from it. */
  late?: true;
}

/** Lays sequences end to end. */
export function packBatch(sequences: readonly TrainSequence[]): TrainBatch {
  const total = sequences.reduce((sum, { tokens }) => sum + tokens.length, 0);
  const batch: TrainBatch = {
    tokens: new Int32Array(total),
    offsets: new Int32Array(sequences.length + 1),
    ...(sequences.some(({ late }) => late) && {
      late: Int32Array.from(sequences, ({ late }) => Number(late === true)),
    }),
    mask: new Float32Array(total),
    advantages: new Float32Array(total),
    rolloutLogprobs: new Float32Array(total),
  };
  if (sequences.some(({ kept }) => kept)) batch.kept = packKept(sequences);
  let at = 0;
  sequences.forEach((sequence, i) => {
    batch.tokens.set(sequence.tokens, at);
    batch.mask.set(sequence.mask, at);
    batch.advantages.set(sequence.advantages, at);
    batch.rolloutLogprobs.set(sequence.logprobs, at);
    at += sequence.tokens.length;
    batch.offsets[i + 1] = at;
  });
  return batch;
}

function packKept(sequences: readonly TrainSequence[]): KeptSets {
  const sets = sequences.flatMap(({ tokens, kept }) => kept ?? tokens.map((): number[] => []));
  const offsets = new Int32Array(sets.length + 1);
  sets.forEach((set, i) => (offsets[i + 1] = offsets[i]! + set.length));
  return { ids: Int32Array.from(sets.flat()), offsets };
}

type Prompt = Pick<RolloutGroup['tasks'][number], 'promptTokens'>;

/** A difference of advantages that is smaller is one of rounding. */
const SMALLEST_LESSON = 1e-6;

/**
 * What a step's episodes teach: group-relative advantages, spread over the sampled tokens. Episodes without a
 * trainable reward are left out. Those of groups without variance have an advantage of zero and stay, for GRPO's mean
 * runs over them too, and its minibatches are cut from all; the learner passes over what cannot move it. Without a
 * pull to the reference a step of nothing but such groups is none.
 *
 * Of a group that was learnt from before, with other verdicts, every member whose advantage changed is taught the
 * difference, also where only the group's mean and deviation did that: what was taught is taken back, so that all
 * lessons together are those of the last verdicts.
 */
export function trainingSequences(
  groups: readonly RolloutGroup[],
  { algorithm, truncated }: Pick<BatchRequest, 'algorithm' | 'truncated'>,
): { sequences: TrainSequence[]; degenerateGroups: number } {
  const sequences: TrainSequence[] = [];
  let degenerateGroups = 0;
  let teaches = algorithm.beta > 0;
  const teach = (
    { promptTokens }: Prompt,
    { tokens, mask, logprobs, kept }: Episode,
    advantage: number,
    late = false,
  ): void => {
    if (advantage !== 0) teaches = true;
    const nothing = promptTokens.map(() => 0);
    sequences.push({
      tokens: [...promptTokens, ...tokens],
      mask: [...nothing, ...mask],
      advantages: [...nothing, ...mask.map((bit) => bit * advantage)],
      logprobs: [...nothing, ...logprobs],
      ...(kept && { kept: [...nothing.map(() => []), ...kept] }),
      ...(late && { late }),
    });
  };
  const advantagesBy = (outcomes: readonly (Outcome | undefined)[]) =>
    groupAdvantages(
      outcomes.map((outcome) => (outcome ? trainableReward(outcome, truncated) : null)),
      algorithm.scaleRewards,
    );
  for (const group of groups) {
    group.tasks.forEach((task, index) => {
      const episodes = group.episodes.filter((episode) => episode.task === index);
      const { advantages, degenerate } = advantagesBy(episodes.map(({ outcome }) => outcome));
      if (episodes.some(({ learntAs }) => learntAs)) {
        const taught = advantagesBy(episodes.map(({ learntAs }) => learntAs)).advantages;
        episodes.forEach((episode, i) => {
          const lesson = (advantages[i] ?? 0) - (taught[i] ?? 0);
          if (Math.abs(lesson) > SMALLEST_LESSON) teach(task, episode, lesson, true);
        });
        return;
      }
      if (degenerate) degenerateGroups++;
      episodes.forEach((episode, i) => {
        const advantage = advantages[i] ?? null;
        if (advantage !== null) teach(task, episode, advantage);
      });
    });
  }
  return { sequences: teaches ? sequences : [], degenerateGroups };
}
