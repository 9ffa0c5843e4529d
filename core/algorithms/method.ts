import type { z } from 'zod';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { MovingMeans } from './moving-means.ts';
import type { Objective } from './objective.ts';
import type { Score } from './scores.ts';
import type { TaskGroup } from './task-group.ts';

export const USUAL_LEARNING_RATE = 3e-4;

/**
 * A training method, one file each in this folder: what a spec may say of it, what it must know of the tokens before it
 * computes advantages, the advantages themselves, and the loss that it names. It is pure: numbers in, numbers out.
 *
 * A step collects episodes, *scores* their tokens where the plan asks for it, computes *advantages*, and *updates*.
 */
export interface Method<Schema extends z.ZodObject, Spec = z.output<Schema>> {
  /** Advantages of a group depend on that group alone, and a sample has one for all tokens: late verdicts can be made good. */
  readonly perGroup: boolean;
  /** Learns as well from what another policy has sampled, at least as some of its fields are set: from stored episodes. */
  readonly offPolicy: boolean;
  /** Learns from what weights have sampled that are some steps behind, though not from stored episodes. */
  readonly lags?: boolean;
  /**
   * Advantages are of whole episodes: one that branched off another is learnt from its beginning on, which several then
   * have in common. Otherwise a token is learnt from once, in the sample that drew it.
   */
  readonly whole?: boolean;
  /**
   * Learns from episodes of agents that branch: it has one advantage for all tokens of a sample, whichever came first, and its
   * loss is a sum over tokens. Absent: it does not.
   */
  readonly branches?: boolean;
  /** Advantages depend on the rewards of single turns. */
  readonly readsTurns: boolean;
  /**
   * Advantages are the same on any scale of an environment's rewards: they go by the group's own, by their order, by success,
   * or by none. Absent: it is not.
   */
  ignoresScale?(spec: Spec): boolean;
  /** Of a stage that says none. Absent: `USUAL_LEARNING_RATE`. */
  readonly learningRate?: number;
  /** The section of the spec, strict. */
  readonly schema: Schema;
  /** What a stage needs to know; made once, when the spec is read. */
  plan(spec: Spec, sampling: SamplingSpec): Plan;
  /** Of each sample of the step; samples without any stay out of statistics and loss. `before`: what earlier steps have left. */
  advantages(groups: readonly TaskGroup[], spec: Spec, before?: MovingMeans): SampleAdvantages[];
  /** What the step leaves to the next one. Absent, or undefined: advantages depend on their own step alone. */
  movingMeans?(groups: readonly TaskGroup[], spec: Spec, before?: MovingMeans): MovingMeans | undefined;
  /** What the shape of the section cannot say. */
  refuse?(spec: Spec, context: MethodContext): { field: string; message: string }[];
}

/** What the rest of the spec says that a method may not go with. */
export interface MethodContext {
  /** An adapter is trained, not all weights. */
  lora: boolean;
  /** Late verdicts bring episodes of an earlier policy before the learner. */
  late: boolean;
  /** Episodes are stored ones, and none is sampled. */
  stored: boolean;
  /** The field of `collect` that lets the policy that samples be some steps behind the one that is trained; null: none. */
  lags: 'lag' | 'maxStaleness' | null;
  /** How many learner steps old a sample may be that is not stored. Absent: 0. */
  maxStaleness?: number | undefined;
  /** Groups of earlier steps are trained again. */
  replays?: boolean | undefined;
  /** The spec insists on a loss without a clip, however old samples are. */
  allowUnclipped?: boolean | undefined;
  /** Episodes may have branches, for an agent makes them. */
  branches?: boolean | undefined;
  /** Samples of a task branch off others. */
  tree: boolean;
  /** One of the environments says what other tasks an episode has solved. */
  relabels: boolean;
  /** A rule of the reward pays single turns. */
  turnRewards: boolean;
  /** What an episode may have after its prompt, tokens. */
  maxCompletionTokens: number;
  /** The checkpoint of another run that the stage's policy is when it begins, as the spec names it, where it is one. */
  beginsWith?: string | undefined;
  /** Those that the stage draws tasks of, once each. */
  environments: readonly string[];
}

/** A method, as a stage carries it out. */
export interface Plan {
  objective: Objective;
  scores: Score[];
  /** One more sample of each task, of the likeliest token each time, whose reward is a baseline. */
  greedy: boolean;
  /** A network that predicts returns, with weights and an optimizer of its own; null: none. */
  critic: CriticPlan | null;
  /** The learner needs the weights of the reference. */
  reference: boolean;
  /** Checkpoints whose distributions the learner needs, as the spec names them: RUN or RUN@STEP. */
  teachers: string[];
  /** A sequence without advantage moves the weights all the same. */
  movesAll: boolean;
  /** Sequences per optimizer update at most, and passes over the batch. */
  minibatch: number;
  epochs: number;
  /** What failed is asked again, or learnt as something else. */
  hindsight: HindsightPlan | null;
  /** How often more tasks are drawn in place of those that teach nothing, at most; 0: never. */
  refills: number;
  /** Those whose samples all succeed or all fail teach nothing. Absent: those whose rewards are all equal. */
  refillBy?: 'correctness';
  /**
   * What must differ for something to be learnt: rewards of all samples of a `step`, or of `none`. Absent: of the samples
   * of one task.
   */
  contrast?: 'step' | 'none';
}

export interface CriticPlan {
  /** How far a value may move from the one before the step, in units of reward; 0: as far as it does. */
  valueClip: number;
  learningRate: number;
  /** Steps at the beginning of the stage that train the critic alone. */
  pretrainingSteps: number;
}

interface HindsightPlan {
  /** Samples of each failed task with a hint; 0: none. */
  corrections: number;
  /** Who is given it, as the spec names checkpoints; null: the policy itself. */
  teacher: string | null;
  relabel: boolean;
}
