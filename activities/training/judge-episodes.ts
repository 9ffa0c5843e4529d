import { z } from 'zod';
import type { CheckpointRef } from '../../core/refs.ts';
import { modelVerdict, qualityOf, readEpisode } from '../../core/reward/reward-model.ts';
import type {
  ReadEpisode,
  RewardModelQuality,
  ServedRewardModel,
  TurnProbabilities,
} from '../../core/reward/reward-model.ts';
import type { Episode, GroupTask, RolloutGroup } from '../../core/episode/episode.ts';
import type { ModelVerdict } from '../../core/episode/outcome.ts';
import type { Unjudged } from '../../core/reward/self-judge.ts';
import { DEFAULT_COMPUTE } from '../../engine/learner/contract.ts';
import type { ComputeSettings, Learner, TrainState } from '../../engine/learner/contract.ts';
import { sigmoid } from '../../engine/learner/losses/sigmoid.ts';
import { jsonCodec } from '../../store/codec.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { loadCheckpoint } from '../../store/training/checkpoints.ts';
import { packBatch } from './training-batch.ts';
import { rewardExamples } from './reward-examples.ts';
import type { BlobRef } from '../../core/refs.ts';

/** Of each episode of a group, in order; null where nothing was judged: what did not come to an end is the verifier's. */
export type JudgedEpisodes = (ModelVerdict | Unjudged | null)[];

const cost = z.strictObject({
  samples: z.number(),
  tokens: z.number(),
  words: z.array(z.string()),
  tooLong: z.literal(true).optional(),
});
const verdict = z.looseObject({
  score: z.number(),
  uncertainty: z.number(),
  steps: z.array(z.number()),
  members: z.array(z.number()),
  judge: cost.optional(),
});
const unjudged = z.strictObject({ unjudged: z.string(), judge: cost });
export const judgedEpisodes = jsonCodec<JudgedEpisodes>(
  'what a reward model has said of a group',
  z.array(z.union([verdict, unjudged]).nullable()),
);

/** A model of a reward stage, as it scores. */
export type RewardModel = Pick<TrainState, 'config' | 'weights' | 'adapter' | 'critic'>;

/** Loads models, and keeps the latest ones: every group of a step asks for the same. */
export function rewardModelsOf(store: ObjectStore) {
  let last: { manifests: string; models: RewardModel[] } | undefined;
  return async (refs: readonly CheckpointRef[], signal: AbortSignal): Promise<RewardModel[]> => {
    const manifests = refs.map(({ manifest }) => manifest.sha256).join();
    if (last?.manifests !== manifests) {
      const models: RewardModel[] = [];
      for (const ref of refs) {
        const { state } = await loadCheckpoint(store, ref, { signal });
        const { config, weights, adapter, critic } = state;
        models.push({
          config,
          weights,
          ...(adapter && { adapter }),
          critic: { ...critic!, firstMoments: new Map(), secondMoments: new Map() },
        });
      }
      last = { manifests, models };
    }
    return last.models;
  };
}

/** Judges a group's episodes. What a model says of one does not depend on how the others end. */
export async function judgeGroup(
  learner: Learner,
  models: readonly RewardModel[],
  { tasks, episodes }: RolloutGroup,
  by: Pick<ServedRewardModel, 'by' | 'deviations'>,
  signal: AbortSignal,
): Promise<(ModelVerdict | null)[]> {
  const { maxPositions } = models[0]!.config;
  const read = episodes
    .filter((episode) => isJudged(episode, tasks[episode.task]!))
    .map((episode) => readEpisode(tasks[episode.task]!.promptTokens, episode, maxPositions));
  const said = await probabilities(learner, models, read, DEFAULT_COMPUTE, signal);
  let next = 0;
  return episodes.map((episode) =>
    isJudged(episode, tasks[episode.task]!) ? modelVerdict(said[next++]!, by) : null,
  );
}

/**
 * Whether a model, or the policy as a judge, is asked about an episode. One that has seen few cut off answers pays for them, and
 * that they are none is known without it.
 */
export const isJudged = ({ status, branches }: Episode, { ref }: Pick<GroupTask, 'ref'>): boolean =>
  (status.kind === 'answered' || status.kind === 'ended') && !branches && ref.split === 'train';

/** How well the models together judge what they were not shown; of an ensemble the mean counts. */
export async function measureRewardModels(
  store: ObjectStore,
  learner: Learner,
  models: readonly RewardModel[],
  examples: BlobRef,
  compute: ComputeSettings | undefined,
  signal: AbortSignal,
): Promise<RewardModelQuality> {
  const { heldOut } = await store.read(examples, rewardExamples, { signal });
  const said = await probabilities(learner, models, heldOut, compute ?? DEFAULT_COMPUTE, signal);
  return qualityOf(
    heldOut.map(({ label, success }, i) => {
      const { score, uncertainty } = modelVerdict(said[i]!, { by: 'mean-deviation', deviations: 0 });
      return { predicted: score, uncertainty, label, success };
    }),
  );
}

/** What each model says at the ends of the turns of each episode, in [0, 1]. */
async function probabilities(
  learner: Learner,
  models: readonly RewardModel[],
  episodes: readonly ReadEpisode[],
  compute: ComputeSettings,
  signal: AbortSignal,
): Promise<TurnProbabilities[]> {
  if (episodes.length === 0) return [];
  const batch = packBatch(
    episodes.map(({ tokens, ends }) => {
      const mask = tokens.map(() => 0);
      for (const end of ends) mask[end] = 1;
      return { tokens, mask, streams: {} };
    }),
    { minibatch: 1, epochs: 0, seed: 0 },
  );
  const said: number[][][] = episodes.map(() => []);
  for (const model of models) {
    const { values } = await learner.score(model, batch, { values: true }, compute, signal);
    episodes.forEach(({ ends }, i) =>
      said[i]!.push(ends.map((end) => sigmoid(values![batch.offsets[i]! + end]!))),
    );
  }
  return said;
}
