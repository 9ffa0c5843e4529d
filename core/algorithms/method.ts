import type { z } from 'zod';
import type { SamplingSpec } from '../schema/curriculum-spec.ts';
import type { Objective } from './objective.ts';

/**
 * A training method, one file each in this folder: what a spec may say of it, what it must know of the tokens before it
 * gives credit, the credit itself, and the loss that it names. It is pure: numbers in, numbers out.
 *
 * A step collects episodes, *scores* their tokens where the plan asks for it, gives *credit*, and *updates*.
 */
export interface Method<Schema extends z.ZodObject, Spec = z.output<Schema>> {
  /** Credit of a group depends on that group alone, and of a sample is one advantage: late verdicts can be made good. */
  readonly perGroup: boolean;
  /** Learns as well from what another policy has sampled, at least as some of its fields are set: from stored episodes. */
  readonly offPolicy: boolean;
  /**
   * Lessons are of whole episodes: one that branched off another is learnt from its beginning on, which several then
   * have in common. Otherwise a token is learnt from once, in the sample that drew it.
   */
  readonly whole?: boolean;
  /** Credit reads the rewards of single turns. */
  readonly readsTurns: boolean;
  /**
   * Credit is the same on any scale of an environment's rewards: it goes by the group's own, by their order, by success,
   * or by none. Absent: it is not.
   */
  ignoresScale?(spec: Spec): boolean;
  /** Of a stage that says none. Absent: 3e-4. */
  readonly learningRate?: number;
  /** The section of the spec, strict. */
  readonly schema: Schema;
  /** What a stage needs to know; made once, when the spec is read. */
  plan(spec: Spec, sampling: SamplingSpec): Plan;
  /** What each sample of the step is taught; samples without a lesson stay out of statistics and loss. */
  credit(groups: readonly CreditGroup[], spec: Spec): Lesson[];
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

/**
 * What must be known of each sampled token before credit is given, under weights that are not those that sampled:
 * `values` of the critic, log-probs under the `reference`, and under the `policy` that the step starts from.
 */
export type Score = 'values' | 'reference' | 'policy';

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

export interface HindsightPlan {
  /** Samples of each failed task with a hint; 0: none. */
  corrections: number;
  /** Who is given it, as the spec names checkpoints; null: the policy itself. */
  teacher: string | null;
  relabel: boolean;
}

/** One task's samples. */
export interface CreditGroup {
  environment: string;
  /** Sampled with a hint, or for another task; what the samples learn from is the prompt that they should have needed. */
  hindsight?: boolean;
  samples: readonly Sample[];
  /** Reward of the greedy sample, where the plan asks for one; null where it has none that counts. */
  greedy: number | null;
}

/** One episode; what is per token is over its completion: everything after the prompt. */
export interface Sample {
  /** null: pending, abstained, failed by infrastructure, or left out by the spec. It then acts on nothing. */
  reward: number | null;
  success: boolean | null;
  tokens: readonly number[];
  /** 1 where the policy sampled, 0 for observations, and for what was sampled in the sample that this one branched off. */
  mask: readonly (0 | 1)[];
  /** The sample's own. */
  turns: readonly SampleTurn[];
  /** Turns of the sample that this one branched off, which come before its own. */
  before: readonly SampleTurn[];
  /** Log-probs when sampled, nats; 0 where the mask is. */
  samplerLogprobs: ArrayLike<number>;
  scores: Partial<Record<Score, ArrayLike<number>>>;
  /** Cut by a limit. */
  truncated: boolean;
}

export interface SampleTurn {
  /** First sampled token, and one past the last. */
  start: number;
  end: number;
  /** Of the turn alone, in units of reward; 0 where nothing speaks of turns. */
  reward: number;
  /** What the policy saw last when the turn began: equal texts are equal states. */
  state: string;
}

/** What a sample is taught. */
export interface Lesson {
  group: number;
  sample: number;
  /** Per token of the completion, 0 where the mask is. */
  advantages: number[];
  /** Part of the sample's mask: the tokens that the lesson is about. Absent: all of it. */
  mask?: (0 | 1)[];
  /** What the critic is to predict, likewise. */
  returns?: number[];
  /** Two lessons of one number are the two of a preference. */
  pair?: number;
  /** 1: preferred, or desirable; −1: the other; 0: neither, but what the others are compared with. */
  label?: 1 | -1 | 0;
  /** The completion stands after the prompt of this group, not of its own. */
  promptOf?: number;
  /** Place of the only teacher that it is learnt from; absent: all of them, by weight. */
  teacher?: number;
}

/** The lessons of one advantage for all sampled tokens of a sample; null leaves it out. */
export function spread(group: number, samples: readonly Sample[], advantages: readonly (number | null)[]) {
  return samples.flatMap(({ mask }, sample): Lesson[] => {
    const advantage = advantages[sample] ?? null;
    return advantage === null ? [] : [{ group, sample, advantages: mask.map((bit) => bit * advantage) }];
  });
}
