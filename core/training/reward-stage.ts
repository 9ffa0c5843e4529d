import { percent } from '../percent.ts';
import type { RewardPorts } from '../ports.ts';
import { STOP, stopOrThrow } from '../question.ts';
import type { Question } from '../question.ts';
import type { BlobRef, CheckpointRef } from '../refs.ts';
import type { BatchResult } from '../requests/batch.ts';
import type { Span } from '../requests/span.ts';
import type { RewardModelQuality } from '../reward/reward-model.ts';
import type { CurriculumSpec } from '../schema/curriculum-spec.ts';
import type { RewardStageSpec } from '../schema/stages/reward.ts';
import { splitTime } from '../time/time-split.ts';
import { batchFacts, learnerFacts } from './facts-of.ts';
import type { StageEnd, StageResult } from './stage.ts';
import type { DecisionFacts } from './step-facts.ts';
import { updateSeed } from './update-seed.ts';

export interface RewardStageInput {
  spec: Pick<CurriculumSpec, 'run' | 'seed' | 'lora' | 'learner' | 'reward' | 'retention'>;
  stage: RewardStageSpec;
  /** The policy, which the models begin as and which stays as it is. */
  checkpoint: CheckpointRef;
  reference: CheckpointRef;
  /** Steps that the run did before this stage. */
  stepsBefore: number;
  /** Models of earlier reward stages, which later ones may be judged by, and policies that later stages go on with. */
  others: CheckpointRef[];
}

export interface RewardStageState {
  /** Steps done: each is an epoch of one model, the models in turn. */
  step: number;
  /** Rounds that it may take: as many as the spec says, and as many again each time that a person gives it more. */
  maxRounds: number;
  /** The models as far as they are trained. */
  models: CheckpointRef[];
  /** What they learn from; null before the first step. */
  examples: BlobRef | null;
}

/**
 * Trains the models of a reward stage on stored episodes, an epoch of each in turn, until they tell what they were not shown.
 * `gate` is passed before each step and may wait, stop, or carry the state elsewhere. The policy goes on unchanged.
 */
export async function trainRewardStage(
  ports: RewardPorts,
  input: RewardStageInput,
  from: RewardStageState | null,
  gate: (state: RewardStageState) => Promise<'go' | 'stop'>,
): Promise<StageResult> {
  const { stage, checkpoint } = input;
  const { run, seed, reward, retention } = input.spec;
  let state: RewardStageState = from ?? {
    step: 0,
    maxRounds: stage.maxRounds,
    models: [],
    examples: null,
  };
  const end = (kind: StageEnd, reason: string): StageResult => ({
    end: kind,
    reason,
    checkpoint,
    steps: input.stepsBefore + state.step,
    rewardModels: state.models,
  });

  for (;;) {
    if ((await gate(state)) === 'stop') return end('stopped', 'stopped by a person');
    const start = ports.now();
    const done = await trainOne(state.step + 1).catch(stopOrThrow);
    if (done === 'stop') return end('stopped', 'stopped by a person in the middle of a round');
    const { batch, trained, quality, spans } = done;
    state = { ...state, step: state.step + 1, models: done.models, examples: done.examples };
    const decision = decide(quality);
    const endedAt = ports.now();
    await ports.report({
      stage: stage.name,
      stageStep: state.step,
      maxSteps: state.maxRounds * stage.models,
      step: input.stepsBefore + state.step,
      environment: [...new Set(stage.arms.map((arm) => arm.environment))].join(','),
      // The policy; what was trained is no version of it.
      checkpoint,
      rollout: null,
      batch: batchFacts(batch),
      heldOut: null,
      ...(quality && { rewardModel: quality }),
      estimates: {},
      adjusted: null,
      alarms: [],
      decision,
      ...learnerFacts(trained, { endedAt, seconds: splitTime(start, endedAt, spans), incidents: [] }),
    });
    await ports.retain({
      run,
      retention,
      pinned: [checkpoint, input.reference, ...input.others, ...state.models],
      scores: [],
    });
    const { kind, question } = decision;
    const reason = decision.reason ?? '';
    if (kind === 'graduate') return end('graduated', reason);
    if (question === null) continue;
    const answer = await ports.ask(question, { stage: stage.name, stageStep: state.step });
    if (answer === 'stop') return end('stopped', reason);
    if (answer === 'advance') return end('exhausted', reason);
    state = { ...state, maxRounds: state.maxRounds + stage.maxRounds };
  }

  /** What follows from a step: the next one, the next stage, or a question. Only whole rounds are measured. */
  function decide(quality: RewardModelQuality | null): DecisionFacts & { question: Question<Answer> | null } {
    const goOn = { kind: 'continue', reason: null, action: null, question: null };
    if (quality === null) return goOn;
    const { aucAtLeast, calibrationErrorAtMost } = stage.graduation;
    const { auc, calibrationError, episodes, successes } = quality;
    const tells = (auc ?? 0) >= aucAtLeast;
    const fits = calibrationError <= calibrationErrorAtMost;
    const area = auc === null ? 'not known' : auc.toFixed(3);
    const found = `on ${episodes} held-out episodes, ${successes} of them successes: AUC ${area}, ${aucAtLeast} wanted; calibration error ${percent(calibrationError)}, at most ${percent(calibrationErrorAtMost)} wanted`;
    if (tells && fits) return { kind: 'graduate', reason: found, action: null, question: null };
    const rounds = state.step / stage.models;
    // What is held out stays the same: where it is all of one kind no round can tell more.
    const unknowable = auc === null && aucAtLeast > 0;
    if (rounds < state.maxRounds && !unknowable) return goOn;
    const reason = `${stage.name} did not reach its goal in ${rounds} round${rounds === 1 ? '' : 's'}: ${found}`;
    return { kind: 'stuck', reason, action: 'ask', question: questionOf(reason, stage) };
  }

  async function trainOne(step: number) {
    const spans: Span[] = [];
    const taken = async <T extends { spans: Span[] }>(work: Promise<T>): Promise<T> => {
      const result = await work;
      spans.push(...result.spans);
      return result;
    };
    const examples = state.examples ?? (await taken(ports.rewardExamples(examplesOf(input)))).examples;
    const model = (step - 1) % stage.models;
    const before = state.models[model];
    const batch: BatchResult = await taken(
      ports.rewardBatch({
        run,
        seed,
        stage: stage.name,
        step,
        model,
        models: stage.models,
        examples,
        labels: stage.labels,
        pairsPerTask: stage.pairsPerTask,
        updates: {
          minibatch: stage.minibatch,
          epochs: 1,
          seed: updateSeed(seed, stage.name, input.stepsBefore + step),
        },
      }),
    );
    if (batch.batch === null) throw new Error('a reward stage has nothing to learn from');
    const trained = await taken(
      ports.train({
        run,
        stage: stage.name,
        stageStep: step,
        step: input.stepsBefore + step,
        parent: before ?? checkpoint,
        batch: batch.batch,
        objective: null,
        optimizer: stage.optimizer,
        critic: {
          clip: 0,
          optimizer: stage.optimizer,
          loss: stage.labels === 'pairs' ? 'bradley-terry' : 'cross-entropy',
          ...(!before && { anew: true as const }),
        },
        resetOptimizer: !before,
        seed,
        reference: null,
        lora: input.spec.lora,
        compute: input.spec.learner,
      }),
    );
    const models = [...state.models];
    models[model] = trained.checkpoint;
    const quality =
      step % stage.models === 0
        ? await taken(
            ports.rewardQuality({
              run,
              stage: stage.name,
              examples,
              models,
              compute: input.spec.learner,
            }),
          )
        : null;
    return { examples, batch, trained, models, quality: quality?.quality ?? null, spans };
  }

  function examplesOf({ stage: { episodes, labels, stepsOf } }: RewardStageInput) {
    return {
      run,
      seed,
      stage: stage.name,
      from: { run: episodes.run ?? run, stage: episodes.stage, steps: episodes.steps },
      arms: stage.arms,
      maxEpisodes: stage.maxEpisodes,
      heldOut: stage.heldOut,
      reward,
      ...(labels === 'steps' && stepsOf !== undefined && { stepsOf }),
      checkpoint,
    };
  }
}

type Answer = 'more-rounds' | 'advance' | 'stop';

function questionOf(reason: string, { maxRounds }: RewardStageSpec): Question<Answer> {
  return {
    reason,
    answers: [
      {
        answer: 'more-rounds',
        effect: `give the stage ${maxRounds} more round${maxRounds === 1 ? '' : 's'}`,
      },
      { answer: 'advance', effect: 'go on to the next stage with the reward model as it is' },
      STOP,
    ],
  };
}
