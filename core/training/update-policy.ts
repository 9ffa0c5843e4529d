import type { TrainingPorts } from '../ports.ts';
import type { BlobRef } from '../refs.ts';
import type { BatchResult } from '../requests/batch.ts';
import type { TrainResult } from '../requests/learner.ts';
import type { Span } from '../requests/span.ts';
import type { Collected } from './collect-rollouts.ts';
import type { StageInput, StageState } from './stage.ts';
import { objectiveAt, samplingAt } from './exploration.ts';
import { updateSeed } from './update-seed.ts';

export interface PolicyUpdate {
  batch: BatchResult;
  /** null where nothing of the step could move the weights. */
  trained: TrainResult | null;
  spans: Span[];
}

/** Scores what was collected, where the plan asks for it, gives credit, and updates the policy. */
export async function updatePolicy(
  ports: TrainingPorts,
  { spec, stage, reference, stepsBefore }: StageInput,
  state: StageState,
  {
    groups: fresh,
    offered,
    greedy,
    sampledAs,
    stepsAhead,
    replayed,
  }: Pick<Collected, 'groups' | 'offered' | 'greedy'> & {
    /** By what the sampling differed from the spec. */
    sampledAs: StageState['adjusted'];
    /** As `StepEpisodes` has it. */
    stepsAhead?: Record<string, number>;
    /** Groups of earlier steps, which come last; absent where the stage replays none. */
    replayed?: BlobRef[];
  },
  stageStep: number,
): Promise<PolicyUpdate> {
  const { run, seed, reward } = spec;
  const { plan } = stage;
  const { adjusted } = state;
  const sampling = samplingAt(stage, spec.sampling, stageStep, sampledAs);
  const step = stepsBefore + stageStep;
  const groups = [...fresh, ...offered, ...(replayed ?? [])];
  const scored =
    plan.scores.length === 0
      ? null
      : await ports.score({
          run,
          stage: stage.name,
          step: stageStep,
          groups,
          reward,
          scores: plan.scores,
          from: { temperature: sampling.temperature, topK: sampling.topK },
          policy: state.checkpoint,
          reference: plan.scores.includes('reference') ? reference : null,
          compute: spec.learner,
        });
  const batch = await ports.batch({
    run,
    stage: stage.name,
    step: stageStep,
    groups,
    ...(greedy.length > 0 && { greedy }),
    ...(scored && { scores: scored.scores }),
    algorithm: stage.algorithm,
    plan: { movesAll: plan.movesAll, ...(plan.refillBy && { refillBy: plan.refillBy }) },
    ...(adjusted.keepGroups < 1 && { keepGroups: adjusted.keepGroups }),
    reward,
    ...(replayed && { replayed: replayed.length, tellMoving: true as const }),
    policy: state.checkpoint.weights,
    ...(state.movingMeans && { movingMeans: state.movingMeans }),
    ...(stepsAhead && { stepsAhead }),
    updates: {
      minibatch: plan.minibatch,
      epochs: plan.epochs,
      seed: updateSeed(seed, stage.name, step),
    },
  });
  const spans = [...(scored?.spans ?? []), ...batch.spans];
  if (batch.batch === null) return { batch, trained: null, spans };

  const learningRate = (rate: number): number => rate * adjusted.learningRateFactor;
  const { critic } = plan;
  const trained = await ports.train({
    run,
    stage: stage.name,
    stageStep,
    step,
    parent: state.checkpoint,
    batch: batch.batch,
    objective: critic && stageStep <= critic.pretrainingSteps ? null : objectiveAt(plan.objective, sampling),
    optimizer: { ...stage.optimizer, learningRate: learningRate(stage.optimizer.learningRate) },
    ...(critic && {
      critic: {
        clip: critic.valueClip,
        optimizer: { ...stage.optimizer, learningRate: learningRate(critic.learningRate) },
      },
    }),
    resetOptimizer: state.resetOptimizer,
    seed,
    reference: plan.reference ? reference : null,
    ...(plan.teachers.length > 0 && { teachers: plan.teachers.map((name) => spec.checkpoints![name]!) }),
    lora: spec.lora,
    compute: spec.learner,
    ...(spec.policy &&
      spec.policy.kind !== 'recorded' &&
      spec.policy.maxLogprobGap > 0 && { maxLogprobGap: spec.policy.maxLogprobGap }),
  });
  return { batch, trained, spans: [...spans, ...trained.spans] };
}
