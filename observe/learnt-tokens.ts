import type { Episode, GroupTask } from '../core/episode/episode.ts';
import type { TrainBatch } from '../engine/learner/contract.ts';
import { loadBatch } from '../store/batches.ts';
import { batchKey } from '../store/keys.ts';
import type { CallOptions, ObjectStore } from '../store/object-store.ts';

/** What the learner was given of an episode, token by token, from its first token behind the prompt. */
export interface LearntTokens {
  mask: Float32Array;
  /** null where the method gave none, as of preferences. */
  advantages: Float32Array | null;
}

/**
 * What of the step's batch is this episode: the sequence of its very tokens. null where it was not learnt from. Of several
 * episodes that are alike to the letter it is the first one's.
 */
export async function learntTokens(
  store: ObjectStore,
  { run, stage, step }: { run: string; stage: string; step: number },
  { promptTokens, learntBehind = promptTokens }: GroupTask,
  { tokens }: Episode,
  options: CallOptions = {},
): Promise<LearntTokens | null> {
  const ref = await store.head(batchKey(run, stage, step), options);
  if (!ref) return null;
  const batch = await loadBatch(store, ref, options);
  const start = startOf(batch, [...learntBehind, ...tokens]);
  if (start === null) return null;
  const [from, to] = [start + learntBehind.length, start + learntBehind.length + tokens.length];
  const { advantages } = batch.streams;
  return {
    mask: batch.mask.subarray(from, to),
    advantages: advantages && !batch.sequences.pair ? advantages.subarray(from, to) : null,
  };
}

function startOf({ tokens, offsets }: TrainBatch, wanted: readonly number[]): number | null {
  for (let i = 0; i + 1 < offsets.length; i++) {
    const [start, end] = [offsets[i]!, offsets[i + 1]!];
    if (end - start === wanted.length && wanted.every((id, at) => tokens[start + at] === id)) return start;
  }
  return null;
}
