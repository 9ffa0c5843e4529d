import type { Budget } from './ladder/budget.ts';
import type { Rung } from './ladder/policy.ts';
import type { TruncatedRule } from './episode/outcome.ts';
import type { CheckpointRef } from './refs.ts';

/**
 * A curriculum as the workflows see it: parsed, defaults filled in, every name checked. What a person writes is
 * described by `examples/curriculum.schema.json`, generated from the zod schema in `spec/`.
 */
export interface CurriculumSpec {
  run: string;
  seed: number;
  model: ModelSource;
  /** Absent: all weights are trained. */
  lora?: LoraSpec;
  learner?: LearnerSpec;
  sampling: SamplingSpec;
  reward: RewardSpec;
  /** Absent: verdicts of fast verifiers are all there is. */
  verification?: VerificationSpec;
  /** null only for a model that comes from a checkpoint. */
  warmStart: WarmStartSpec | null;
  stages: StageSpec[];
  evaluation: FinalEvaluationSpec;
  retention: RetentionSpec;
}

/** Where the first weights come from: random ones, or a checkpoint of an earlier run (an imported model is one). */
export type ModelSource =
  { kind: 'scratch'; shape: ModelSpec } | { kind: 'from'; checkpoint: CheckpointRef; dialect?: DialectSpec };

export const DIALECTS = ['gradus', 'hermes', 'llama3', 'search-r1', 'retool'] as const;
export type DialectName = (typeof DIALECTS)[number];

/** How a policy is spoken to. Recorded in the checkpoint, so that everybody who uses it speaks the same. */
export interface DialectSpec {
  name: DialectName;
  /** What a chat template reads as `enable_thinking`; its own default where absent. */
  thinking?: boolean;
  /** The day that a chat template is told, `YYYY-MM-DD`. */
  date?: string;
  /** For dialects without names of tools: the tool that the tag calls, and the argument that it gives. */
  tool?: string;
  argument?: string;
}

/** A decoder-only transformer of the Llama family, trained from scratch, with a byte-level BPE tokenizer learnt from demonstrations. */
export interface ModelSpec {
  vocabSize: number;
  hiddenSize: number;
  intermediateSize: number;
  layers: number;
  attentionHeads: number;
  keyValueHeads: number;
  headSize: number;
  /** Longest sequence in tokens: prompt + everything after it. */
  maxPositions: number;
  tieEmbeddings: boolean;
}

export interface SamplingSpec {
  temperature: number;
  /** 0 and 1 in training, where nothing may be cut. */
  topK: number;
  topP: number;
  /** Policy turns per episode. */
  maxTurns: number;
  /** Tokens after the prompt per episode: sampled and observed. */
  maxCompletionTokens: number;
}

/** How verdicts become a reward: a weighted sum of components, each of them data. */
export interface RewardSpec {
  components: RewardComponentSpec[];
  truncated: TruncatedRule;
  /** The lowest rung, which stands for the component `ladder` until a dearer one has spoken. */
  ladder?: Pick<Rung, 'verifier' | 'passAtLeast'>;
}

/** The ladder that candidates climb, from the fast rung to the dearest. */
export interface VerificationSpec {
  rungs: RungSpec[];
  /** For so many steps a late verdict still brings its episodes before the learner again; 0: never. */
  offerLateFor: number;
  /**
   * What a budget's `count` counts. `verdicts`: all that the run asks for, known to the store or not, so that the same
   * spec ends the same in any store. `computations`: those that were made for it; what others have computed is free.
   */
  counts: 'verdicts' | 'computations';
  /** The rung whose verdict counts where a checkpoint is measured; the lowest one asks no dearer verifier. */
  evaluateBy: string;
}

export interface RungSpec extends Rung {
  /** A step waits for this rung's verdicts; else it goes on with the cheaper ones. */
  wait: boolean;
  /** How long a step waits at most, seconds. */
  deadlineSeconds: number;
  /** While this rung should have spoken and has not: the cheaper verdict stands, or the episode is pending. */
  missing: 'cheaper' | 'pending';
  /** Of each stage. */
  budget: Budget;
  /** Computations in flight at once. */
  concurrency: number;
  /** People whose majority is the verdict, where people give it. */
  reviewers: number;
}

export interface RewardComponentSpec {
  verifier: string;
  /** `outcome`: decides success, exactly one. `bonus`: adds weight × score. `penalty`: subtracts weight × (1 − score). */
  role: 'outcome' | 'bonus' | 'penalty';
  weight: number;
  /** Counts only where this verifier gave the full score. */
  gatedBy: string | null;
}

/** One kind of task: an environment at a level. Tasks inside a stage are drawn among its arms. */
export interface Arm {
  environment: string;
  level: number;
}

export interface OptimizerSpec {
  learningRate: number;
  warmupUpdates: number;
  beta1: number;
  beta2: number;
  epsilon: number;
  maxGradientNorm: number;
}

/** LoRA (Hu et al. 2021): the weights stay, and low-rank matrices beside some of them are learnt. */
export interface LoraSpec {
  rank: number;
  /** What the matrices add counts for α / rank. */
  alpha: number;
  /** Linear layers by the ends of their names, e.g. `q_proj`. */
  targetModules: string[];
  /** α / √rank instead (Kalajdzievski 2023). */
  rsLora: boolean;
}

/** How the learner computes: what it costs in time and memory, and in rounding. */
export interface LearnerSpec {
  /** Operands of matrix products. Weights, moments, norms, softmax and loss are float32 either way. */
  precision: 'float32' | 'bfloat16';
  /** Keep one activation a layer and compute the others again for the backward pass (Chen et al. 2016). */
  gradientCheckpointing: boolean;
  /** Positions that go through the model at once; the gradients of a minibatch's parts are summed. 0: as many as are fast. */
  microBatchTokens: number;
}

export interface WarmStartSpec {
  arms: Arm[];
  /** Sequences per optimizer update. */
  minibatch: number;
  /** Optimizer updates per round; each round trains on freshly generated demonstrations. */
  updatesPerRound: number;
  maxRounds: number;
  optimizer: OptimizerSpec;
  graduation: {
    /** Success on held-out tasks that *every* arm must reach: what is never sampled is never reinforced. */
    successAtLeast: number;
    /** Held-out tasks per arm. */
    tasksPerArm: number;
  };
}

export type PlateauAction = 'advance' | 'stop' | 'ask';
export type CollapseAction = 'rollback' | 'stop' | 'ask';

export interface StageSpec {
  name: string;
  arms: Arm[];
  groupsPerStep: number;
  /** Groups that one child workflow rolls out together: what durability costs is shared, what a loss costs grows. */
  groupsPerWorkflow: number;
  /** Samples per task. */
  numGenerations: number;
  maxSteps: number;
  algorithm: AlgorithmSpec;
  optimizer: OptimizerSpec;
  graduation: {
    /** Held-out success that must be shown. */
    successAtLeast: number;
    /** With this probability no evaluation of the stage, of however many, graduates a policy that is worse. */
    confidence: number;
    /** Held-out tasks per evaluation, in equal parts over the arms. */
    tasks: number;
    everySteps: number;
  };
  plateau: {
    /** Evaluations whose second half is compared with their first. */
    evaluations: number;
    /** A gain of held-out success that is worth going on for: a plateau is where it can be ruled out. */
    minImprovement: number;
    /** With this probability no evaluation of the stage finds a plateau where there is that gain on its held-out tasks. */
    confidence: number;
    action: PlateauAction;
  };
  collapse: {
    /** Held-out success below this part of the best of the stage; 0 switches the rule off. */
    successBelowBest: number;
    /** With this probability no evaluation of the stage finds such a fall where there is none. */
    confidence: number;
    /** Entropy of the step's policy, estimated from all tokens that it sampled (nats a token), below this. */
    entropyBelow: number;
    action: CollapseAction;
    /** Multiplies the learning rate after a roll-back. */
    learningRateFactor: number;
    maxRollbacks: number;
  };
  /** Part of each step's tasks drawn again from those that were failed lately. */
  retryFailures: number;
  /** By verifier, in place of the rung's own. */
  budgets?: Record<string, Budget>;
}

export type Aggregation = 'token' | 'sequence' | 'dr-grpo';

export interface AlgorithmSpec {
  kind: 'grpo';
  /** `group`: divide by the group's standard deviation (GRPO). `none`: do not, as Dr. GRPO (Liu et al. 2025) with its `aggregation`. */
  scaleRewards: 'group' | 'none';
  clipRatioLow: number;
  clipRatioHigh: number;
  beta: number;
  /** `token`: DAPO's mean. `sequence`: GRPO's. `dr-grpo`: with the constant denominator of Dr. GRPO. */
  aggregation: Aggregation;
  /** Passes over the batch. */
  numIterations: number;
  /** Sequences per optimizer update at most; a step's updates have the same number, give or take one. */
  minibatch: number;
  /** Caps the truncated importance weight between learner and rollout log-probs; 0 leaves it out. */
  importanceCap: number;
}

/** The report before → after, on tasks that no decision of the run has seen. */
export interface FinalEvaluationSpec {
  arms: Arm[];
  tasks: number;
  confidence: number;
}

export interface RetentionSpec {
  keepLast: number;
  keepBest: number;
  /** Keep every n-th step; 0 keeps none for its number. */
  keepEvery: number;
}
