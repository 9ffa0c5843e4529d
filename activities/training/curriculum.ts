import type { BatchRequest, StoredRequest } from '../../core/requests/batch.ts';
import type {
  KeepReplayedRequest,
  KeepVersionRequest,
  ReplayRequest,
  TakeRequest,
} from '../../core/requests/collect.ts';
import type { DemonstrationsRequest, SynthesizeRequest } from '../../core/requests/demonstrations.ts';
import type { KeepEvaluationRequest, OpenEvaluateRequest } from '../../core/requests/evaluation.ts';
import type { KeepVariationsRequest, VaryFailuresRequest } from '../../core/requests/from-failures.ts';
import type { RewardBatchRequest, RewardExamplesRequest } from '../../core/requests/reward-model.ts';
import type {
  AdoptRequest,
  ChangeRequest,
  InitializeRequest,
  OpenRunRequest,
  RetentionRequest,
  StepAnswerRequest,
  StepFactsRequest,
} from '../../core/requests/run.ts';
import type { KeepProposalsRequest, RewardProposalsRequest } from '../../core/requests/self-play.ts';
import type { RelabelRequest } from '../../core/requests/verification.ts';
import type { StoredChange } from '../../core/run-change.ts';
import { putChange } from '../../store/run/changes.ts';
import { putStepAnswer, putStepFacts } from '../../store/training/step-facts.ts';
import { takeGroups } from '../../store/training/taken-groups.ts';
import { keepVersion } from '../../store/training/versions.ts';
import type { Durable } from '../durable.ts';
import { retainCheckpoints } from './apply-retention.ts';
import { buildBatch, buildDemonstrations } from './build-batch.ts';
import type { CurriculumDependencies } from './dependencies.ts';
import { adoptGroups, keepEvaluation, openEvaluate } from './evaluate.ts';
import { initializeModel } from './initialize-model.ts';
import { openRun } from './open-run.ts';
import { keepProposals, rewardStepProposals } from './proposals.ts';
import { relabelEpisodes } from './relabel.ts';
import { keepReplayed, replayGroups } from './replay-groups.ts';
import { buildRewardBatch, collectRewardExamples } from './reward-examples.ts';
import { collectStored } from './stored-episodes.ts';
import { synthesize } from './synthesize.ts';
import { keepVariations, varyFailures } from './vary-failures.ts';

export type CurriculumActivities = Durable<ReturnType<typeof createCurriculum>>;

/** What a curriculum, its stages and evaluations ask for beside rollouts, verification and the learner. */
export function createCurriculum(deps: CurriculumDependencies) {
  const { store } = deps;
  return {
    openRun: (request: OpenRunRequest, signal: AbortSignal) => openRun(deps, request, signal),
    openEvaluate: (request: OpenEvaluateRequest, signal: AbortSignal) => openEvaluate(deps, request, signal),
    adoptGroups: (request: AdoptRequest, signal: AbortSignal) => adoptGroups(store, request, signal),
    keepEvaluation: (request: KeepEvaluationRequest, signal: AbortSignal) =>
      keepEvaluation(store, request, signal),
    initializeModel: (request: InitializeRequest, signal: AbortSignal) =>
      initializeModel(deps, request, signal),

    buildDemonstrations: (request: DemonstrationsRequest, signal: AbortSignal) =>
      buildDemonstrations(deps, request, signal),
    /** The tasks of a step whose episodes are stored already, as if they had been rolled out. */
    collectStored: (request: StoredRequest, signal: AbortSignal) => collectStored(store, request, signal),
    /** Which groups a step of an asynchronous stage takes: those that it took before, where it did. */
    takeGroups: (request: TakeRequest, signal: AbortSignal) => takeGroups(store, request, { signal }),
    /** Says which weights are the newest of a stage, to whoever samples for it. */
    keepVersion: (request: KeepVersionRequest, signal: AbortSignal) =>
      keepVersion(store, request, { signal }),
    /** Groups of earlier steps that a step would replay, each alone in an object. */
    replayGroups: (request: ReplayRequest, signal: AbortSignal) => replayGroups(store, request, signal),
    /** Which of them it replays: those that it did before, where it did. */
    keepReplayed: (request: KeepReplayedRequest, signal: AbortSignal) => keepReplayed(store, request, signal),
    relabelEpisodes: (request: RelabelRequest, signal: AbortSignal) => relabelEpisodes(deps, request, signal),
    /** What the proposals of a step come to, and the tasks that are kept of them: those of before, where they were. */
    keepProposals: (request: KeepProposalsRequest, signal: AbortSignal) =>
      keepProposals(deps, request, signal),
    rewardProposals: (request: RewardProposalsRequest, signal: AbortSignal) =>
      rewardStepProposals(deps, request, signal),
    /** What a reward stage learns from, and what one of its models is shown in an epoch. */
    rewardExamples: (request: RewardExamplesRequest, signal: AbortSignal) =>
      collectRewardExamples(store, request, signal),
    rewardBatch: (request: RewardBatchRequest, signal: AbortSignal) =>
      buildRewardBatch(deps, request, signal),
    /** Tasks made of what an earlier stage failed, and those of them that are kept: those of before, where they were. */
    varyFailures: (request: VaryFailuresRequest, signal: AbortSignal) => varyFailures(deps, request, signal),
    keepVariations: (request: KeepVariationsRequest, signal: AbortSignal) =>
      keepVariations(store, request, signal),
    /** The data that a supervised stage makes of verified trajectories: that of before, where it was made. */
    synthesize: (request: SynthesizeRequest, signal: AbortSignal) => synthesize(deps, request, signal),
    buildBatch: (request: BatchRequest, signal: AbortSignal) => buildBatch(deps, request, signal),

    async keepStepFacts({ run, facts }: StepFactsRequest, signal: AbortSignal): Promise<void> {
      await putStepFacts(store, run, facts, { signal });
    },
    /** Keeps a change in the run's record, and returns it as it lies there. */
    keepChange: ({ run, made }: ChangeRequest, signal: AbortSignal): Promise<StoredChange> =>
      putChange(store, run, made, { signal }),
    async keepStepAnswer({ run, answer }: StepAnswerRequest, signal: AbortSignal): Promise<void> {
      await putStepAnswer(store, run, answer, { signal });
    },

    applyRetention: (request: RetentionRequest, signal: AbortSignal) =>
      retainCheckpoints(store, request, signal),
  };
}
