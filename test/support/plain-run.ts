import { setMaxListeners } from 'node:events';
import { createCurriculum } from '../../activities/training/curriculum.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { createTraining } from '../../activities/training/learner.ts';
import type { PolicyPool } from '../../activities/rollout/policy-pool.ts';
import { createRollout } from '../../activities/rollout/rollout.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { createVerification } from '../../activities/verification/verifiers.ts';
import { runCurriculum } from '../../core/training/curriculum.ts';
import type { CurriculumResult } from '../../core/training/curriculum.ts';
import { evaluate } from '../../core/training/evaluation.ts';
import type { EvaluationPorts } from '../../core/training/evaluation.ts';
import type { RewardPorts, StepReport, TrainingPorts } from '../../core/ports.ts';
import type { GroupRequest } from '../../core/requests/rollout.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { trainRewardStage } from '../../core/training/reward-stage.ts';
import { trainStage } from '../../core/training/stage.ts';
import { reportOf } from '../../core/training/step-report.ts';
import { superviseStage } from '../../core/training/supervised-stage.ts';
import type { Learner } from '../../engine/learner/contract.ts';
import { plainLadder } from './plain-ladder.ts';

export interface PlainRunOptions {
  store: ObjectStore;
  environments: Environments;
  policies: PolicyPool;
  learner: Learner;
  run: string;
  onStep?: (report: StepReport) => void;
}

type LearnerOperations = ReturnType<typeof createTraining>;

/** Rollout groups as function calls. Tools must be inline. */
export function plainRollout(
  { store, environments, policies }: Pick<PlainRunOptions, 'store' | 'environments' | 'policies'>,
  signal: AbortSignal,
  judge: LearnerOperations['judgeEpisodes'] = () => {
    throw new Error('this rollout has no reward model');
  },
): TrainingPorts['rollout'] {
  // Every group listens to it.
  setMaxListeners(0, signal);
  const rollouts = createRollout({ store, environments, policies });
  const verification = createVerification({ store, environments });
  const rolloutGroup = async (group: GroupRequest): Promise<GroupResult> => {
    const advanced = await rollouts.advance({ group }, signal);
    if (advanced.pages.length > 0) throw new Error('a plain run has no place for long tool calls');
    const { rewardModel, judge: own, ...open } = group;
    const ended = { part: advanced.part, followed: [] };
    const judging = rewardModel
      ? await judge({ group: open, ...ended, rewardModel }, signal)
      : own &&
        (await rollouts.judgeOwn(
          { group: open, ...ended, judge: { ...group.reward.judge!, ...own } },
          signal,
        ));
    const verified = await verification.verifyGroup(
      { group, ...ended, ...(judging && { judged: judging.judged }) },
      signal,
    );
    return { ...verified, spans: [...advanced.spans, ...(judging?.spans ?? []), ...verified.spans] };
  };
  return (requests) => Promise.all(requests.map(rolloutGroup));
}

/** What training needs done, as function calls in this process, and what a run does besides its stages. */
export function plainTraining(options: PlainRunOptions, signal: AbortSignal) {
  const { store, environments, learner } = options;
  const curriculum = createCurriculum({ store, environments });
  const training = createTraining({ store, learner });
  const ports: TrainingPorts & RewardPorts & EvaluationPorts = {
    now: () => Date.now(),
    rollout: plainRollout(options, signal, (...args) => training.judgeEpisodes(...args)),
    stored: (request) => curriculum.collectStored(request, signal),
    takeGroups: (request) => curriculum.takeGroups(request, signal),
    keepVersion: (request) => curriculum.keepVersion(request, signal),
    replay: (request) => curriculum.replayGroups(request, signal),
    keepReplayed: (request) => curriculum.keepReplayed(request, signal),
    relabel: (request) => curriculum.relabelEpisodes(request, signal),
    keepProposals: (request) => curriculum.keepProposals(request, signal),
    rewardProposals: (request) => curriculum.rewardProposals(request, signal),
    rewardExamples: (request) => curriculum.rewardExamples(request, signal),
    rewardBatch: (request) => curriculum.rewardBatch(request, signal),
    rewardQuality: (request) => training.rewardQuality(request, signal),
    varyFailures: (request) => curriculum.varyFailures(request, signal),
    keepVariations: (request) => curriculum.keepVariations(request, signal),
    synthesize: (request) => curriculum.synthesize(request, signal),
    evaluate: (request) => evaluate(ports, request),
    demonstrations: (request) => curriculum.buildDemonstrations(request, signal),
    score: (request) => training.scoreTokens(request, signal),
    batch: (request) => curriculum.buildBatch(request, signal),
    escalate: () => {
      throw new Error('this training has no verification ladder');
    },
    train: (request) => training.trainStep(request, signal),
    retain: (request) => curriculum.applyRetention(request, signal),
    report: async (facts) => {
      await curriculum.keepStepFacts({ run: options.run, facts }, signal);
      options.onStep?.(reportOf(facts));
    },
    ask: ({ reason }) => {
      throw new Error(`a plain run cannot ask a person: ${reason}`);
    },
  };
  return { ports, curriculum };
}

/**
 * The training of a curriculum as a plain loop in one process: the same algorithm and operations as the durable run,
 * without Temporal. What dies with the process is lost; it is here to measure what durability costs. Tools must be
 * inline.
 */
export async function plainRun(spec: unknown, options: PlainRunOptions): Promise<CurriculumResult> {
  const { signal } = new AbortController();
  const { ports, curriculum } = plainTraining(options, signal);
  const go = async (): Promise<'go'> => 'go';
  const parsed = await curriculum.openRun(
    { spec, workflowId: options.run, firstExecutionRunId: options.run },
    signal,
  );
  if (parsed.verification)
    Object.assign(ports, plainLadder(options, options.run, parsed.verification, signal));
  return runCurriculum(
    {
      evaluate: (request) => ports.evaluate(request),
      initialize: (request) => curriculum.initializeModel(request, signal),
      supervised: (input) => superviseStage(ports, input, null, go),
      reward: (input) => trainRewardStage(ports, input, null, go),
      stage: (input) => trainStage(ports, input, null, go),
      entered: () => undefined,
    },
    parsed,
    null,
    go,
  );
}
