import { GradusError } from '../../core/errors.ts';
import type { CheckpointRef } from '../../core/refs.ts';
import type { LoraSpec } from '../../core/schema/lora.ts';
import type { ScoreRequest, ScoreResult } from '../../core/requests/batch.ts';
import type { ProbeRequest, TrainRequest, TrainResult } from '../../core/requests/learner.ts';
import type { RewardQualityRequest, RewardQualityResult } from '../../core/requests/reward-model.ts';
import type { JudgeRequest, JudgeResult } from '../../core/requests/verification.ts';
import { DEFAULT_COMPUTE } from '../../engine/learner/contract.ts';
import type {
  ComputeSettings,
  CriticState,
  Learner,
  Teacher,
  TrainMetrics,
  TrainState,
} from '../../engine/learner/contract.ts';
import { withoutCritic } from '../../engine/learner/critic.ts';
import { inTurns } from '../../engine/in-pieces.ts';
import { initialAdapterInPieces } from '../../engine/lora/initial-adapter.ts';
import type { Weights } from '../../core/model/config.ts';
import { loadBatch } from '../../store/training/batches.ts';
import {
  loadCheckpoint,
  loadPolicy,
  readManifest,
  saveCheckpoint,
} from '../../store/training/checkpoints.ts';
import type { ModelFiles } from '../../store/training/checkpoints.ts';
import { judgedKey, metricsKey, probeKey, scoresKey } from '../../store/keys.ts';
import { mergeParts } from '../rollout/trajectory-parts.ts';
import { judgedEpisodes, judgeGroup, measureRewardModels, rewardModelsOf } from './judge-episodes.ts';
import { loadTrajectories } from '../../store/rollout/trajectories.ts';
import { probeOf } from './probe.ts';
import { scoreEpisodes } from './scores.ts';
import { probes } from '../../store/training/probes.ts';
import { scoresCodec } from '../../store/training/scores.ts';
import { CREATED_BY } from '../../store/training/manifest.ts';
import { stepRecords } from '../../store/training/step-records.ts';
import type { StepRecord } from '../../store/training/step-records.ts';
import { trainRequestOf } from '../../store/training/train-request.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import type { Durable } from '../durable.ts';

export interface LearnerDependencies {
  store: ObjectStore;
  learner: Learner;
}

export type LearnerActivities = Durable<ReturnType<typeof createTraining>>;

interface Parent {
  state: TrainState;
  files: ModelFiles;
  base: CheckpointRef | undefined;
  /** Where the moments are not there: the step that makes them again. */
  madeBy: TrainRequest | undefined;
}

/** A step that is computed, and what else its checkpoint names. */
interface Learned extends Pick<Parent, 'state' | 'files' | 'base'> {
  metrics: TrainMetrics;
  precision: ComputeSettings['precision'];
}

/** What a step trains. Throws GradusError('learner', 'adapter') when the parent has another adapter than is asked for. */
async function withAdapter(
  { state, base }: Pick<Parent, 'state' | 'base'>,
  { lora, parent, seed }: TrainRequest,
  signal: AbortSignal,
): Promise<Pick<Parent, 'state' | 'base'>> {
  if (lora && !state.adapter) {
    const adapter = {
      lora,
      weights: await inTurns(initialAdapterInPieces(state.config, lora, seed), signal),
    };
    const { withoutMoments: _, ...policy } = state;
    return { state: { ...policy, adapter, firstMoments: new Map(), secondMoments: new Map() }, base: parent };
  }
  const sorted = (given: LoraSpec | undefined) =>
    JSON.stringify(given && [given.rank, given.alpha, given.rsLora, given.targetModules.toSorted()]);
  if (sorted(lora) !== sorted(state.adapter?.lora)) {
    throw new GradusError(
      'learner',
      'adapter',
      `${parent.manifest.key} has ${state.adapter ? 'another' : 'no'} LoRA adapter than the step is to train: ` +
        'begin a run with it by model.from, which merges it into its weights',
    );
  }
  return { state, base };
}

function withFreshMoments(whole: TrainState): TrainState {
  const { withoutMoments: _, ...state } = whole;
  return {
    ...state,
    firstMoments: new Map(),
    secondMoments: new Map(),
    updates: 0,
    ...(state.critic && { critic: withFreshCriticMoments(state.critic) }),
  };
}

const withFreshCriticMoments = ({ weights }: CriticState): CriticState => ({
  weights,
  firstMoments: new Map(),
  secondMoments: new Map(),
  updates: 0,
});

/** What is stored, with the moments that its step has come to again. */
const withMomentsOf = (stored: TrainState, made: TrainState): TrainState => ({
  ...stored,
  firstMoments: made.firstMoments,
  secondMoments: made.secondMoments,
  ...(stored.critic &&
    made.critic && {
      critic: {
        ...stored.critic,
        firstMoments: made.critic.firstMoments,
        secondMoments: made.critic.secondMoments,
      },
    }),
});

/** The step itself where its checkpoint is to keep no moments. */
function insteadOfMoments(request: TrainRequest): TrainRequest | undefined {
  const every = request.compute?.saveOptimizerEvery;
  return every === undefined || request.step % every === 0 ? undefined : request;
}

export function createTraining({ store, learner }: LearnerDependencies) {
  // The newest checkpoint that was read or written, so that it need not be read again. Its moments may be the learner's alone.
  let newest: (Parent & { manifest: string }) | undefined;
  // What a step came to that could not be stored yet: the next attempt stores it, and computes nothing.
  let unsaved: { asked: string; step: Learned } | undefined;
  // The same object again and again, so that the learner knows it by identity and need not be sent it.
  let lastReference: { manifest: string; weights: Weights } | undefined;
  const referenceWeights = async (ref: CheckpointRef, signal: AbortSignal): Promise<Weights> => {
    if (lastReference?.manifest !== ref.manifest.sha256) {
      const { weights } = await loadPolicy(store, ref, { signal });
      lastReference = { manifest: ref.manifest.sha256, weights };
    }
    return lastReference.weights;
  };
  const rewardModels = rewardModelsOf(store);
  let lastTeachers: { manifests: string; models: Teacher[] } | undefined;
  const teacherModels = async (refs: readonly CheckpointRef[], signal: AbortSignal): Promise<Teacher[]> => {
    const manifests = refs.map(({ manifest }) => manifest.sha256).join();
    if (lastTeachers?.manifests !== manifests) {
      const models = await Promise.all(refs.map((ref) => loadPolicy(store, ref, { signal })));
      lastTeachers = { manifests, models: models.map(({ config, weights }) => ({ config, weights })) };
    }
    return lastTeachers.models;
  };
  const parentOf = async (ref: CheckpointRef, signal: AbortSignal): Promise<Parent> => {
    if (newest?.manifest !== ref.manifest.sha256) {
      const { state, files, manifest } = await loadCheckpoint(store, ref, { signal });
      const madeBy = await trainRequestOf(store, manifest, { signal });
      newest = { manifest: ref.manifest.sha256, state, files, base: manifest.base, madeBy };
    }
    return newest;
  };
  /**
   * A parent that the store has no moments of: its step is made again, and before it that of its own parent, back to a
   * checkpoint that has some. The stored weights count, so that a learner that does not repeat to the bit goes on from them.
   */
  const withMomentsAgain = async (ref: CheckpointRef, signal: AbortSignal): Promise<Parent | undefined> => {
    if (newest?.manifest === ref.manifest.sha256 && newest.madeBy === undefined) return undefined;
    const manifest = await readManifest(store, ref.manifest, { signal });
    const request = await trainRequestOf(store, manifest, { signal });
    if (request === undefined) return undefined;
    const made = await learn(request, signal, false);
    const stored = await parentOf(ref, signal);
    const whole = { ...stored, state: withMomentsOf(stored.state, made.state), madeBy: undefined };
    newest = { ...whole, manifest: ref.manifest.sha256 };
    return whole;
  };
  /** Computes a step, and stores nothing. What is stored without moments leaves them with the learner. */
  const learn = async (
    request: TrainRequest,
    signal: AbortSignal,
    withoutMoments: boolean,
  ): Promise<Learned> => {
    try {
      return await learnFromParent(request, signal, withoutMoments);
    } catch (error) {
      if (!(error instanceof GradusError && error.type === 'moments-gone')) throw error;
      // Then the parent counts as one that nobody but the store knows.
      newest = undefined;
      return learnFromParent(request, signal, withoutMoments);
    }
  };
  const learnFromParent = async (
    request: TrainRequest,
    signal: AbortSignal,
    withoutMoments: boolean,
  ): Promise<Learned> => {
    // Moments that are thrown away need not be made again.
    const again = request.resetOptimizer ? undefined : await withMomentsAgain(request.parent, signal);
    const [parent, batch, reference, teachers] = await Promise.all([
      again ?? parentOf(request.parent, signal),
      loadBatch(store, request.batch, { signal }),
      request.reference ? referenceWeights(request.reference, signal) : undefined,
      request.teachers && teacherModels(request.teachers, signal),
    ]);
    const { state: whole, base } = await withAdapter(parent, request, signal);
    const trained = request.critic?.anew ? withoutCritic(whole) : whole;
    const compute = request.compute ?? DEFAULT_COMPUTE;
    const before: TrainState = request.resetOptimizer ? withFreshMoments(trained) : trained;
    const { objective, optimizer, critic, maxLogprobGap } = request;
    const { state, metrics } = await learner.step(
      before,
      batch,
      { objective, optimizer, critic, compute, maxLogprobGap, withoutMoments },
      { reference, ...(teachers && { teachers }) },
      undefined,
      signal,
    );
    return { state, metrics, base, files: parent.files, precision: compute.precision };
  };
  return {
    /** What credit reads of each sampled token of a step, where the method asks for it; a retry makes the same bytes again. */
    async scoreTokens(request: ScoreRequest, signal: AbortSignal): Promise<ScoreResult> {
      const start = Date.now();
      const [{ state }, groups, reference] = await Promise.all([
        parentOf(request.policy, signal),
        Promise.all(request.groups.map((ref) => loadTrajectories(store, ref, { signal }))),
        request.reference ? referenceWeights(request.reference, signal) : undefined,
      ]);
      const scores = await scoreEpisodes(learner, { state, reference }, groups, request, signal);
      const { run, stage, step } = request;
      const { ref } = await store.putIfAbsent(scoresKey(run, stage, step), scoresCodec, scores, { signal });
      return { scores: ref, spans: [{ part: 'learner', start, end: Date.now() }] };
    },

    /** What a reward model says of a group's episodes, stored for who verifies them; a retry makes the same bytes again. */
    async judgeEpisodes(
      { group, part, followed, rewardModel }: JudgeRequest,
      signal: AbortSignal,
    ): Promise<JudgeResult> {
      const start = Date.now();
      const { run, stage, step } = group;
      const [whole, models] = await Promise.all([
        mergeParts(store, part, followed),
        rewardModels(rewardModel.models, signal),
      ]);
      const judged = await judgeGroup(learner, models, whole, rewardModel, signal);
      const key = judgedKey(run, stage, step, whole.id);
      const { ref } = await store.putIfAbsent(key, judgedEpisodes, judged, { signal });
      return { judged: ref, spans: [{ part: 'learner', start, end: Date.now() }] };
    },

    /** How well the models of a reward stage judge what they were not shown. */
    async rewardQuality(
      { examples, models, compute }: RewardQualityRequest,
      signal: AbortSignal,
    ): Promise<RewardQualityResult> {
      const start = Date.now();
      const loaded = await rewardModels(models, signal);
      const quality = await measureRewardModels(store, learner, loaded, examples, compute, signal);
      return { quality, spans: [{ part: 'learner', start, end: Date.now() }] };
    },

    /** What the weights of a checkpoint make of the fixed sequence, stored for those who hand them to servers. */
    async probePolicy({ run, checkpoint }: ProbeRequest, signal: AbortSignal): Promise<void> {
      const key = probeKey(run, checkpoint.weights);
      if (await store.head(key, { signal })) return;
      const { state } = await parentOf(checkpoint, signal);
      await store.putIfAbsent(key, probes, await probeOf(learner, state, signal), { signal });
    },

    /** One learner step: batch and parent in, a committed checkpoint out. A retry makes the same bytes again. */
    async trainStep(request: TrainRequest, signal: AbortSignal): Promise<TrainResult> {
      const start = Date.now();
      const instead = insteadOfMoments(request);
      const asked = JSON.stringify(request);
      if (unsaved?.asked !== asked) {
        unsaved = undefined;
        unsaved = { asked, step: await learn(request, signal, instead !== undefined) };
      }
      const { state, metrics, base, files, precision } = unsaved.step;
      const saved = await saveCheckpoint(
        store,
        {
          run: request.run,
          stage: request.stage,
          step: request.step,
          parent: request.parent,
          backend: precision === 'float32' ? learner.backend : `${learner.backend}, ${precision}`,
          createdBy: CREATED_BY,
          state,
          base,
          files,
          insteadOfMoments: instead,
          maxShardBytes: request.compute?.maxShardBytes,
        },
        { signal },
      );
      newest = {
        manifest: saved.manifest.sha256,
        state,
        files,
        base,
        madeBy: undefined,
      };
      unsaved = undefined;
      // A learner that is not repeatable may have made other weights before: the first step that was reported counts.
      const { run, stage, step, stageStep } = request;
      const report: StepRecord = { stage, step, metrics, checkpoint: saved, backend: learner.backend };
      const { value: kept } = await store.putIfAbsent(
        metricsKey(run, stage, stageStep),
        stepRecords,
        report,
        {
          signal,
        },
      );
      return {
        checkpoint: kept.checkpoint,
        metrics: kept.metrics,
        backend: kept.backend,
        spans: [{ part: 'learner', start, end: Date.now() }],
      };
    },
  };
}
