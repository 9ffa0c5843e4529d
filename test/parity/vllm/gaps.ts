import { packBatch } from '../../../activities/training/training-batch.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { rolloutsPrefix } from '../../../store/keys.ts';
import { loadTrajectories } from '../../../store/rollout/trajectories.ts';
import { loadPolicy } from '../../../store/training/checkpoints.ts';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';

/** Positions of a completion that are told together. */
const BIN = 16;

interface Gap {
  /** Sampled tokens. */
  n: number;
  /** |server − learner|, nats. */
  mean: number;
  max: number;
  /** Mean of server − learner, nats. */
  bias: number;
}

/**
 * How far what the server said of each token that was learnt from is from what the learner says under the same weights, by the
 * token's place behind its prompt.
 */
export async function gapsByPosition(store: ObjectStore, run: string): Promise<Record<string, Gap>> {
  const { checkpoints } = await findCheckpoints(store, run);
  const bins = new Map<number, number[]>();
  const learner = await createLocalLearner({ backend: 'cpu' });
  try {
    for (const { key } of await store.list(rolloutsPrefix(run, 'rl'))) {
      const group = await loadTrajectories(store, (await store.head(key))!);
      const checkpoint = checkpoints.find(({ ref }) => ref.weights === group.weights);
      if (checkpoint === undefined) throw new Error(`no checkpoint has the weights of ${key}`);
      const state = await loadPolicy(store, checkpoint.ref);
      const sequences = group.episodes.map(({ task, tokens, mask }) => {
        const prompt = group.tasks[task]!.promptTokens;
        const none = prompt.map(() => 0);
        return { tokens: [...prompt, ...tokens], mask: [...none, ...mask], streams: {} };
      });
      const batch = packBatch(sequences, { minibatch: sequences.length, epochs: 0, seed: 0 });
      const { logprobs } = await learner.score(state, batch, {
        logprobs: { temperature: group.temperature, topK: 0 },
      });
      for (const [i, { task, mask, samplerLogprobs }] of group.episodes.entries()) {
        const begin = batch.offsets[i]! + group.tasks[task]!.promptTokens.length;
        for (const [at, sampled] of mask.entries()) {
          if (sampled === 0) continue;
          const bin = Math.floor(at / BIN);
          if (!bins.has(bin)) bins.set(bin, []);
          bins.get(bin)!.push(samplerLogprobs[at]! - logprobs![begin + at]!);
        }
      }
    }
  } finally {
    await learner.close();
  }
  const told = [...bins].toSorted(([a], [b]) => a - b);
  return Object.fromEntries([
    ...told.map(([bin, all]) => [`${bin * BIN}–${(bin + 1) * BIN - 1}`, gapOf(all)]),
    ['all', gapOf(told.flatMap(([, all]) => all))],
  ]) as Record<string, Gap>;
}

function gapOf(differences: readonly number[]): Gap {
  const n = differences.length;
  return {
    n,
    mean: differences.reduce((sum, one) => sum + Math.abs(one), 0) / n,
    max: differences.reduce((most, one) => Math.max(most, Math.abs(one)), 0),
    bias: differences.reduce((sum, one) => sum + one, 0) / n,
  };
}
