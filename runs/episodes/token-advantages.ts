import { isDeepStrictEqual } from 'node:util';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { isRewarded } from '../../core/episode/outcome.ts';
import type { TrainBatch } from '../../engine/learner/contract.ts';
import { loadBatch } from '../../store/training/batches.ts';
import { batchKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';

/** What the learner was given of an episode, token by token, from its first token behind the prompt. */
export interface TokenAdvantages {
  mask: Float32Array;
  /** null where the method gave none, as of preferences. */
  advantages: Float32Array | null;
}

/**
 * What of the step's batch is this episode of a group: the sequence of its very tokens. null where it was not learnt from.
 * Those of episodes that are alike to the letter stand in the order of the episodes.
 */
export async function tokenAdvantages(
  store: ObjectStore,
  { run, stage, step }: { run: string; stage: string; step: number },
  { tasks, episodes }: Pick<RolloutGroup, 'tasks' | 'episodes'>,
  index: number,
): Promise<TokenAdvantages | null> {
  const episode = episodes[index]!;
  if (!isTrained(episode)) return null;
  const { task, tokens } = episode;
  const { promptTokens, learntBehind = promptTokens } = tasks[task]!;
  const alike = episodes
    .slice(0, index)
    .filter((other) => other.task === task && isTrained(other) && isDeepStrictEqual(other.tokens, tokens));
  const ref = await store.head(batchKey(run, stage, step));
  if (!ref) return null;
  const batch = await loadBatch(store, ref);
  const start = startsOf(batch, [...learntBehind, ...tokens])[alike.length] ?? null;
  if (start === null) return null;
  const [from, to] = [start + learntBehind.length, start + learntBehind.length + tokens.length];
  const { advantages } = batch.streams;
  return {
    mask: batch.mask.subarray(from, to),
    advantages: advantages && !batch.sequences.pair ? advantages.subarray(from, to) : null,
  };
}

/** What came to nothing is in no batch. */
const isTrained = ({ outcome }: Episode): boolean => outcome !== undefined && isRewarded(outcome);

function startsOf({ tokens, offsets }: TrainBatch, wanted: readonly number[]): number[] {
  const starts: number[] = [];
  for (let i = 0; i + 1 < offsets.length; i++) {
    const [start, end] = [offsets[i]!, offsets[i + 1]!];
    if (end - start === wanted.length && wanted.every((id, at) => tokens[start + at] === id))
      starts.push(start);
  }
  return starts;
}
