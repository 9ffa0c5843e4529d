import type { AlgorithmSpec } from './algorithms/index.ts';
import type { Plan } from './algorithms/method.ts';
import type { MovingMeans } from './algorithms/moving-means.ts';
import type { PreferenceSpec } from './algorithms/preference.ts';
import type { Score } from './algorithms/scores.ts';
import type { Objective, OfSamples } from './algorithms/objective.ts';
import type { Incident } from './episode/incidents.ts';
import type { OutcomeCounts } from './episode/outcome.ts';
import type { EnvironmentScale } from './reward/normalization.ts';
import type { RewardModelQuality, ServedRewardModel } from './reward/reward-model.ts';
import type { AskedJudge, ServedJudge } from './reward/self-judge.ts';
import type { Shown } from './training/supervised-stage.ts';
import type { BlobRef, CheckpointRef, MadeTaskRef, Split, TaskRef } from './refs.ts';
import type { StoredChange } from './run-change.ts';
import type { AgentSpec } from './schema/agent.ts';
import type { EvaluateSpec, ExpectedVerdicts } from './schema/evaluate.ts';
import type { LearnerSpec } from './schema/learner.ts';
import type { LoraSpec } from './schema/lora.ts';
import type { ModelSource } from './schema/model.ts';
import type { OptimizerSpec } from './schema/optimizer.ts';
import type { HeldModel, OtherPolicySpec, ServedPolicySpec } from './schema/policy.ts';
import type { RetentionSpec } from './schema/retention.ts';
import type { JudgeSpec, RewardSpec } from './schema/reward.ts';
import type { BeamsSpec } from './schema/beams.ts';
import type { SamplingSpec } from './schema/sampling.ts';
import type { SynthesisSpec } from './schema/stages/synthesis.ts';
import type { ProposerArm, SelfPlaySpec } from './schema/stages/self-play.ts';
import type { Arm } from './schema/tasks.ts';
import type { VerificationSpec } from './schema/verification.ts';
import type { Proportion } from './statistics/intervals.ts';
import type { ArmHowSolved } from './training/how-solved.ts';
import type { SynthesisFacts } from './training/step-facts.ts';
import type { WaitingTask } from './training/tasks-again.ts';
import type { VariedTasks } from './training/from-failures.ts';
import type { MadePlace } from './training/proposals.ts';
import type { MadeTasks } from './training/task-source.ts';
import type { BehaviourCounts, SelfPlayFacts, StepAnswer, StepFacts } from './training/step-facts.ts';

// What workflows ask of activities and of each other: references and small facts, never tokens or weights.

/** Wall time that an activity spent on one part of the work, epoch milliseconds. */
export interface Span {
  part: 'rollout' | 'tool' | 'verification' | 'learner' | 'data';
  start: number;
  end: number;
}

/** Groups that are rolled out together: `samples` of each task. Number and step name it within the stage. */
export interface GroupRequest {
  run: string;
  seed: number;
  /** The stage, or the name of an evaluation. */
  stage: string;
  step: number;
  group: number;
  /** Place of the first task among all of the step: what is sampled follows from it, not from how tasks are shared out. */
  firstTask: number;
  tasks: MadeTaskRef[];
  /** The first so many of them are drawn again: samples have failed them lately. */
  retries: number;
  samples: number;
  checkpoint: CheckpointRef;
  /** Absent: the decoder of rollout workers samples. */
  policy?: OtherPolicySpec;
  /** Makes the episodes; absent: the policy acts with the tools of the environment. */
  agent?: AgentSpec;
  sampling: SamplingSpec;
  /** Turns are searched for, and not sampled; the first turn of sample i of several is the best beam of group i. */
  beams?: BeamsSpec;
  reward: RewardSpec;
  /** Judges in the place of the verifier that decides; absent: nobody does. */
  rewardModel?: ServedRewardModel;
  /** The policy judges in that place, as the reward says; absent: it does not. */
  judge?: ServedJudge;
  /** Probability that an episode begins with a call of a tool that was drawn at random. */
  toolChoice?: number;
  /** Trajectories in which all of the tasks were failed: each gets a hint made of what went wrong there. */
  failed?: BlobRef;
  /** More samples of these tasks branch off what there is of them. */
  grows?: Growth;
  /** Its episodes go on with the newest weights, turn by turn; absent: they finish with those of the checkpoint. */
  continues?: Continues;
  /** The samples of a task vote for their answers: what these come down to is kept. Absent: they do not. */
  votes?: true;
}

/** Where the newest weights of a group's stage are looked for. */
export interface Continues {
  /** Steps of the stage after which the group was begun: its checkpoint is of these. */
  after: number;
  /** The run whose choices are made again. */
  follow?: string;
}

/** Says with which weights a stage goes on after so many of its steps. */
export interface KeepVersionRequest {
  run: string;
  stage: string;
  after: number;
  checkpoint: CheckpointRef;
}

/** A group that a step of an asynchronous stage takes. */
export interface TakenGroup extends Pick<GroupRequest, 'step' | 'group' | 'firstTask' | 'tasks' | 'retries'> {
  /** Those of its tasks that had waited to be drawn again. */
  again: WaitingTask[];
  /** Steps of the stage that were done when it was begun: the weights after them have sampled it. */
  begunAfter: number;
}

/** The groups that a step takes, in the order in which it learns from them. */
export interface TakenGroups {
  groups: TakenGroup[];
  /** The stage has rolled back behind the weights that sample: nothing is learnt from them. */
  givenUp?: true;
}

export interface TakeRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  /** The run whose steps are made again. */
  follow?: string;
  /** null: those that were taken before, if any. */
  wanted: TakenGroups | null;
}

/** A task of a group that may be trained again, with all of its samples. */
export interface ReplayedTask {
  /** The trajectories of the group, and the place of the task there. */
  ref: BlobRef;
  task: number;
}

/** Copies groups that a step would replay. */
export interface ReplayRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  groups: ReplayedTask[];
}

export interface KeepReplayedRequest extends Omit<ReplayRequest, 'groups'> {
  /** The copies. */
  groups: BlobRef[];
  /** Log-probs of their tokens under the policy that is trained, as `ScoreResult` has them; absent where nobody looks. */
  scores?: BlobRef;
  /** Effective sample size of its importance weights that a group must have, part of its sampled tokens. */
  minEffectiveSamples: number;
  /** Bounds of the probability of its successes that a group must have; absent: none. */
  successes?: { from: number; to: number };
  reward: RewardSpec;
}

/** A task whose samples had advantages that move the policy. */
export interface MovingTask {
  /** Places of the group in the request, and of the task in it. */
  group: number;
  task: number;
  /** Mean |advantage| of its sampled tokens. */
  advantage: number;
  /** How many these are; absent in older versions. */
  tokens?: number;
}

/** How a tree goes on. */
export interface Growth {
  /** Trajectories of the group that it began with, and of those that have grown it since, in their order. */
  trees: BlobRef[];
  /** Draws that a state should have before the search goes deeper. */
  width: number;
  /** How much what was tried seldom is preferred, in units of reward. */
  exploration: number;
}

/** A group whose tasks have been drawn: they are in its parts, and pass through no history again. */
export type OpenGroup = Omit<
  GroupRequest,
  'tasks' | 'retries' | 'reward' | 'rewardModel' | 'judge' | 'failed' | 'grows'
>;

/** Starts all episodes of a group. */
export interface AdvanceRequest {
  group: GroupRequest;
}

/**
 * What heartbeats of `advance` and `resume` tell: how many episodes of the activity have ended, or wait for a long call,
 * of how many, and the tokens that were sampled for them so far.
 */
export interface AdvanceProgress {
  done: number;
  total: number;
  tokens: number;
}

/** Whether servers can do what a run asks. `scalesLogits`: some of it is sampled at another temperature than 1. */
export interface ServersRequest {
  policy: ServedPolicySpec;
  scalesLogits: boolean;
}

/** What servers say of the model that they hold. */
export interface HeldRequest {
  policy: ServedPolicySpec;
}
export type HeldAnswer = Omit<HeldModel, 'version'>;

/** Whether a rollout worker can start the agent of a run. */
export interface AgentRequest {
  agent: AgentSpec;
}

export interface AdvanceResult {
  /** All episodes, wherever they stand now. */
  part: BlobRef;
  /** Those of them that wait for long calls, a page of a few each. */
  pages: BlobRef[];
  spans: Span[];
  incidents: Incident[];
}

export interface DueCallsRequest {
  group: OpenGroup;
  page: BlobRef;
}

/** An episode that waits for a long call. */
export interface WaitingEpisode {
  /** Where the episode lies, alone or with a few others. */
  part: BlobRef;
  call: LongCall;
}

/** A long call's observation, or why there is none and at which boundary: then the episode ends as `failed`. */
export type LongCallResult = { observation: BlobRef } | { failed: string; boundary: 'tool' | 'infra' };

/** An episode whose long call came back. */
export interface ReturnedEpisode extends WaitingEpisode {
  result: LongCallResult;
}

/** Advances a few episodes whose long calls came back. */
export interface ResumeRequest {
  group: OpenGroup;
  returned: ReturnedEpisode[];
}

export interface ResumeResult {
  /** In the order of the request: each episode alone, and the call that it waits for now, unless it has ended. */
  episodes: { part: BlobRef; call: LongCall | null }[];
  spans: Span[];
  incidents: Incident[];
}

/** Makes one object of episodes that have ended. */
export interface GatherRequest {
  group: OpenGroup;
  /** The number of the page that they waited in. */
  page: number;
  parts: BlobRef[];
}

/** A long tool call that is due; what it asks is in the part, so that arguments do not pass through histories. */
export interface LongCall {
  /** Which episode of the group waits: index of its task, and sample. */
  task: number;
  sample: number;
  environment: string;
  /** The module that the environment is from. */
  file: string;
  tool: string;
  /** The idempotency key, unique in the run. */
  id: string;
  timeoutSeconds: number;
  /** 1 for `once` tools. */
  maxAttempts: number;
  /** Must not be begun a second time, whatever happened to the first. */
  once: boolean;
  /** Of the one worker that has the episode's session; absent: any may take it. */
  queue?: string;
}

export interface CallToolResult {
  observation: BlobRef;
  spans: Span[];
  incidents: Incident[];
}

export interface CallToolRequest {
  run: string;
  call: LongCall;
  part: BlobRef;
}

export interface VerifyRequest {
  group: OpenGroup & Pick<GroupRequest, 'reward'>;
  /** All episodes as they stood when the first of them waited. */
  part: BlobRef;
  /** Those that have waited, as they ended. */
  followed: BlobRef[];
  /** What a reward model, or the policy itself, has said of all of them; absent where none judges. */
  judged?: BlobRef;
}

/** Has a reward model judge a group's episodes, all as they ended. */
export interface JudgeRequest extends Pick<VerifyRequest, 'part' | 'followed'> {
  group: OpenGroup;
  rewardModel: ServedRewardModel;
}

/** Has the policy judge a group's episodes, all as they ended. */
export interface SelfJudgeRequest extends Pick<VerifyRequest, 'part' | 'followed'> {
  group: OpenGroup;
  judge: AskedJudge;
}

export interface JudgeResult {
  judged: BlobRef;
  spans: Span[];
}

/** The stored episodes that a reward stage learns from, and is measured on. */
export interface RewardExamplesRequest {
  run: string;
  seed: number;
  stage: string;
  from: StoredRequest['from'];
  arms: Arm[];
  maxEpisodes: number;
  /** Part of the tasks. */
  heldOut: number;
  reward: RewardSpec;
  /** A component whose verifier judges steps; absent: it is not asked for. */
  stepsOf?: string;
  /** Whose tokens they must be of. */
  checkpoint: CheckpointRef;
}

export interface RewardExamplesResult {
  examples: BlobRef;
  /** Episodes with a label. */
  train: number;
  heldOut: number;
  spans: Span[];
}

/** What a model of a reward stage is shown in an epoch. */
export interface RewardBatchRequest {
  run: string;
  seed: number;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  /** Number of the model, from 0: it draws its tasks. */
  model: number;
  /** How many there are: one alone learns from all tasks. Absent of runs from before it was said: it draws. */
  models?: number;
  examples: BlobRef;
  labels: 'outcomes' | 'pairs' | 'steps';
  pairsPerTask: number;
  updates: UpdatePlan;
}

/** Measures the models of a reward stage on what they were not shown. */
export interface RewardQualityRequest {
  run: string;
  stage: string;
  examples: BlobRef;
  models: CheckpointRef[];
  compute?: LearnerSpec | undefined;
}

export interface RewardQualityResult {
  quality: RewardModelQuality;
  spans: Span[];
}

/** Successes out of the episodes of an arm of which it can be said. */
export interface ArmTally {
  arm: Arm;
  successes: number;
  trials: number;
  /** Trials without success because a call made its tool or its session fail; absent where there is none. */
  toolFailures?: number;
}

/** A task and how many of its samples solved it. */
export interface TriedTask extends TaskRef {
  successes: number;
  trials: number;
}

/** Sampled tokens of a group by weights, of this SHA-256, that are not those that it began with. */
export interface OthersTokens {
  weights: string;
  tokens: number;
}

export interface GroupResult {
  /** The trajectories; null where the whole group failed, with `failure` saying why. */
  trajectories: BlobRef | null;
  failure?: string;
  /** Of tasks that were drawn for the first time: those drawn again because samples had failed them say too little of an arm. */
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  /** Over the episodes whose reward may be trained on. */
  rewardSum: number;
  rewardCount: number;
  sampledTokens: number;
  /** Those of them that newer weights have sampled; absent where there are none. */
  sampledBy?: OthersTokens[];
  /** Sampled ones that episodes have of others, which they branched off; absent where there are none. */
  inheritedTokens?: number;
  /** Sum of their log-probs when sampled, nats. */
  sampledLogprob: number;
  turns: number;
  behaviour: BehaviourCounts;
  /** How tasks that are not trained on were gone about; absent of others. */
  conduct?: ArmHowSolved[];
  /** Tasks that not all of their samples solved; absent of others than training's, and from before they were told. */
  tried?: TriedTask[];
  /** What `failedTasksOf` derives from `tried`; only results from before that was told have it. */
  failedTasks?: TaskRef[];
  spans: Span[];
  /** What users' code did wrong, if anything. */
  incidents?: Incident[];
}

/** Looks for failed episodes that solved another task than theirs. */
export interface RelabelRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  reward: RewardSpec;
  /** For the tokenizer. */
  checkpoint: CheckpointRef;
}

export interface RelabelResult {
  /** Null where there was none. */
  trajectories: BlobRef | null;
  spans: Span[];
  incidents: Incident[];
}

/** Looks at the proposals of a step, and keeps the tasks that they make. */
export interface KeepProposalsRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  step: number;
  /** Trajectories of the episodes that were asked for proposals. */
  groups: BlobRef[];
  arms: ProposerArm[];
  /** Tasks of earlier steps; null where there are none. */
  source: BlobRef | null;
  /** Of each arm. */
  mostTasks: number;
}

export interface KeptProposals extends MadeTasks {
  /** Those of the step. */
  made: MadePlace[];
  /** What each proposal came to. */
  proposals: BlobRef;
  spans: Span[];
  incidents: Incident[];
}

/** Rewards the proposals of a step by how the samples of its solver fared. */
export interface RewardProposalsRequest extends Pick<
  KeepProposalsRequest,
  'run' | 'stage' | 'step' | 'groups'
> {
  proposals: BlobRef;
  /** Trajectories of the solver. */
  solved: BlobRef[];
  reward: RewardSpec;
  by: SelfPlaySpec;
}

export interface RewardedProposals {
  /** As they are now rewarded, in the order of the request. */
  groups: GroupResult[];
  /** What the solver learns from, in that order, where the majority of its samples labels it; absent where it is as it was. */
  solved?: GroupResult[];
  facts: SelfPlayFacts;
  spans: Span[];
}

/** Varies what an earlier stage failed. */
export interface VaryFailuresRequest {
  run: string;
  seed: number;
  stage: string;
  /** Whose failed tasks they are, of these arms. */
  from: string;
  arms: Arm[];
  /** Of each of them. */
  variations: number;
  mostFailures: number;
  /** For the tokenizer, and to say whether it has a critic. */
  checkpoint: CheckpointRef;
  reward: RewardSpec;
  /** What an episode must have room for. */
  limits: Pick<SamplingSpec, 'maxTurns' | 'maxCompletionTokens'>;
  temperature: number;
}

export interface VariedFailures {
  /** What was said of each variation. */
  checked: BlobRef;
  /** Episodes of the reference solutions of those that are tasks; null where there is none. */
  references: BlobRef | null;
  critic: boolean;
  spans: Span[];
  incidents: Incident[];
}

/** Keeps those variations as tasks that are within the bounds of value. */
export interface KeepVariationsRequest {
  run: string;
  stage: string;
  checked: BlobRef;
  /** What a critic says of the episodes; all three absent: nobody filters. */
  references?: BlobRef;
  scores?: BlobRef;
  values?: { from: number; to: number };
}

export interface KeptVariations extends VariedTasks {
  spans: Span[];
}

/** A step of tasks whose episodes are stored already. */
export interface StoredRequest {
  run: string;
  seed: number;
  stage: string;
  step: number;
  from: { run: string; stage: string; steps?: { from: number; to?: number | undefined } | undefined };
  /** What the stage's tasks are; others are left out. */
  arms: Arm[];
  /** Tasks of the step. */
  count: number;
  reward: RewardSpec;
  /** Whose tokens they must be of. */
  checkpoint: CheckpointRef;
}

/** What was taken, counted over all of it: a step may take tasks of thousands of groups. */
export interface StoredResult extends Omit<GroupResult, 'trajectories' | 'failure' | 'incidents'> {
  /** Kept as groups of the step. */
  groups: BlobRef[];
}

/** How a batch is cut into the updates of a learner step. */
export interface UpdatePlan {
  /** Sequences per optimizer update at most; a step's updates have the same number, give or take one. */
  minibatch: number;
  /** Passes over the batch. */
  epochs: number;
  /** Orders the sequences: the step's own, a function of its place in the run. */
  seed: number;
}

/** Scores of every sampled token of the episodes that credit may be given for. */
export interface ScoreRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  reward: RewardSpec;
  scores: Score[];
  /** What log-probs are of. */
  from: OfSamples;
  /** Whose critic, and whose log-probs as `policy`. */
  policy: CheckpointRef;
  reference: CheckpointRef | null;
  compute?: LearnerSpec | undefined;
}

export interface ScoreResult {
  scores: BlobRef;
  spans: Span[];
}

export interface BatchRequest {
  run: string;
  stage: string;
  step: number;
  groups: BlobRef[];
  /** One greedy sample of each task, where credit asks for it. */
  greedy?: BlobRef[];
  /** What `ScoreResult` has of the same groups, where credit asks for it. */
  scores?: BlobRef;
  algorithm: AlgorithmSpec;
  plan: Pick<Plan, 'movesAll' | 'refillBy'>;
  /** Part of the groups that is learnt from, those whose rewards deviate most; absent: all. */
  keepGroups?: number;
  reward: RewardSpec;
  /** The last so many of the groups are replayed; absent: none. */
  replayed?: number;
  /** Tell which tasks moved the policy. */
  tellMoving?: true;
  /** SHA-256 of the weights that the step starts from: what others have sampled is late. */
  policy: string;
  /** What the stage's earlier steps have left, where its method leaves something. */
  movingMeans?: MovingMeans;
  /** How many learner steps these are ahead of others, by the SHA-256 of those; absent: nobody asks. */
  stepsAhead?: Record<string, number>;
  updates: UpdatePlan;
}

export interface BatchResult {
  /** What the rewards of each environment were brought to one scale by, where the spec asks for it. */
  scales?: EnvironmentScale[];
  /** null when no episode of the step can teach anything. */
  batch: BlobRef | null;
  sequences: number;
  tokens: number;
  /** Those whose mask is 1, of sequences that the policy learns from. */
  maskedTokens: number;
  /** Tokens of the step's episodes that something is learnt from: an advantage that is not zero; absent of demonstrations. */
  taughtTokens?: number;
  /** Groups whose rewards were all equal, or too few: their advantages are zero. */
  degenerateGroups: number;
  /** How many were looked at for that, where samples of one task came in several groups. */
  trees?: number;
  /** Those of groups that are not replayed; absent where nobody asked. */
  moving?: MovingTask[];
  /** What the step leaves to the next one, where its method leaves something. */
  movingMeans?: MovingMeans;
  spans: Span[];
}

/** Of an episode, as the spec has them. */
export type EpisodeLimits = Pick<SamplingSpec, 'maxTurns' | 'maxCompletionTokens' | 'maxParallelCalls'>;

export interface DemonstrationsRequest {
  run: string;
  seed: number;
  stage: string;
  round: number;
  /** What earlier stages of the run have shown; absent: nothing. */
  shownBefore?: Shown;
  arms: Arm[];
  count: number;
  /** In the place of demonstrations of the arms: the data that was given, what it is called, and what learns preferences of it. */
  given?: { source: string; ref: BlobRef; prefers?: PreferenceSpec['kind'] };
  /** Demonstrations of which none fits into an episode are refused. Absent: nothing is. */
  limits?: EpisodeLimits;
  updates: UpdatePlan;
  /** For the tokenizer. */
  checkpoint: CheckpointRef;
}

/** Makes the data of a supervised stage. */
export interface SynthesizeRequest {
  run: string;
  seed: number;
  stage: string;
  arms: Arm[];
  how: SynthesisSpec;
  /** For the dialect. */
  checkpoint: CheckpointRef;
  reward: RewardSpec;
  limits: EpisodeLimits;
}

/** What was made; small enough to be carried along. */
export interface Synthesized {
  /** Lines of data, as somebody could have given them. */
  data: BlobRef;
  facts: SynthesisFacts;
}

export interface SynthesizeResult extends Synthesized {
  spans: Span[];
  incidents: Incident[];
}

/** What a reward model minimizes: see engine/learner/losses/reward-model.ts. */
export type RewardModelLoss = 'cross-entropy' | 'bradley-terry';

/** One learner step: a pure function of these fields, so that a step that was lost is made again to the bit. */
export interface TrainRequest {
  run: string;
  stage: string;
  /** Of the stage, from 1. */
  stageStep: number;
  /** Of the run, from 1: names the checkpoint. */
  step: number;
  parent: CheckpointRef;
  batch: BlobRef;
  /** null: the critic alone is trained. */
  objective: Objective | null;
  optimizer: OptimizerSpec;
  /** A critic learns beside the policy, and begins with the first step that has one. Absent: if there is one, it ends. */
  critic?: {
    clip: number;
    optimizer: OptimizerSpec;
    /** Of a reward model: its values are logits. Absent: the squared error of returns. */
    loss?: RewardModelLoss;
    /** A critic that the parent has is left behind, and another begins. */
    anew?: true;
  };
  /** Start with empty moments and a cold learning rate. */
  resetOptimizer: boolean;
  /** The run's, which a fresh adapter is drawn by. */
  seed: number;
  reference: CheckpointRef | null;
  /** Whose distributions the objective reads, in its order; absent: none. */
  teachers?: CheckpointRef[];
  /** Train an adapter, which starts beside the weights of a parent that has none. Absent: train all weights. */
  lora?: LoraSpec | undefined;
  compute?: LearnerSpec | undefined;
  /** Mean |learner − sampler| log-prob above which the step is refused before the first update, nats. Absent: no bound. */
  maxLogprobGap?: number;
}

/**
 * Of the tokens that the step computed, in nats unless said otherwise. Loss and norm are means over its updates. null is
 * what was not measured: all that is said of the policy, in a step that trains the critic alone.
 */
export interface LearnerMetrics {
  loss: number | null;
  /** L2 norm before clipping. */
  gradientNorm: number | null;
  /**
   * Cosine of the gradient, before clipping, with Adam's first moment before the update: in the mean over the updates that
   * have one, null where gradient or moment is zero in all of them. Absent in older versions.
   */
  gradientMomentumCosine?: number | null;
  entropy: number | null;
  /**
   * K3 estimate of KL(policy ‖ reference), or the divergence from the teachers where there are such; null where the loss
   * computes neither.
   */
  kl: number | null;
  /** Part of the masked tokens whose ratio was clipped; null of a loss without a clip. */
  clipFraction: number | null;
  /**
   * Of an objective that prefers: mean reward β log(π / π_ref) of what is preferred or desirable less that of what is
   * not, and the share of pairs or sequences on the right side: means over the updates that had such, null without.
   */
  preference?: { margin: number | null; accuracy: number | null };
  /**
   * Of the critic, where one was trained: its loss and norm, the part of the tokens whose value was held (null where none
   * ever is), and the share of the returns' variance that its values explained before each update (null where returns do
   * not vary, and of pairs). Of a reward model the values are probabilities there.
   */
  critic?: {
    loss: number;
    gradientNorm: number;
    clipFraction: number | null;
    explainedVariance: number | null;
    /** Of a reward model: part of its labels, or pairs, that were on the right side before each update. Absent of others. */
    accuracy?: number;
  };
  /**
   * Largest and mean |learner − rollout| log-prob before the first update: the gap between the engines, over what the
   * weights that the step starts from have sampled: in late episodes it would be drift. null where nothing is such.
   */
  logprobGapMax: number | null;
  logprobGapMean: number | null;
  /**
   * The mean gap by position behind the first sampled token of a sequence, and by how many positions there are from its
   * first sampled token to its last; absent where the gap is null, and in older versions.
   */
  logprobGapByPosition?: GapBin[];
  logprobGapByLength?: GapBin[];
  /**
   * The same mean by staleness, late sequences included: at 0 it is the gap between the engines, above it is that and how
   * far the policy has moved. Absent where the batch does not say how stale it is, and in older versions.
   */
  logprobGapByStaleness?: StalenessGap[];
  /**
   * Of a loss that weighs samples by importance: the effective sample size (Kish) of the weights before any bound and before
   * the first update, as a part of the tokens, and of the sequences. 1: all weigh the same. Absent of others, and in older
   * versions.
   */
  effectiveSamples?: { tokens: number; sequences: number };
  updates: number;
  /** Tokens that went through forward and backward, of the policy unless the critic is trained alone, without padding. Those of episodes that nothing is learnt from do not. */
  tokens: number;
  seconds: number;
}

/** Sampled tokens at `from` up to where the next bin begins, which doubles from 64 on, and their mean gap, nats. */
export interface GapBin {
  from: number;
  tokens: number;
  mean: number;
}

/** Sampled tokens of weights that are so many learner steps behind those that learn, and their mean gap, nats. */
export interface StalenessGap {
  staleness: number;
  tokens: number;
  mean: number;
}

/** Asks the learner what it makes of the fixed sequence, for servers to be compared with. */
export interface ProbeRequest {
  run: string;
  checkpoint: CheckpointRef;
}

export interface TrainResult {
  checkpoint: CheckpointRef;
  metrics: LearnerMetrics;
  backend: string;
  spans: Span[];
}

export interface EvaluationRequest {
  run: string;
  seed: number;
  name: string;
  step: number;
  checkpoint: CheckpointRef;
  arms: Arm[];
  /** In equal parts over the arms. */
  tasks: number;
  /** Of each task; absent: one. */
  samples?: number;
  /** As in a group. */
  policy?: OtherPolicySpec;
  agent?: AgentSpec;
  split: Split;
  sampling: SamplingSpec;
  /** As in a group. */
  beams?: BeamsSpec;
  reward: RewardSpec;
  /** Absent: the fast tier has the last word. */
  verification?: VerificationSpec;
  /** Says how many samples of a task differ. */
  distinct?: true;
  /** Groups that are stored already are taken as they are, and not rolled out again. Absent: all are rolled out. */
  adopts?: true;
}

export interface EvaluationResult {
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  meanReward: number;
  sampledTokens: number;
  /** How tasks were gone about, by arm; absent where nothing could be rolled out. */
  conduct?: ArmHowSolved[];
  /** Samples beyond the first of their task, and those of them that differ from all before; absent where nobody asked. */
  distinct?: Proportion;
  spans: Span[];
  incidents?: Incident[];
}

export interface InitializeRequest {
  run: string;
  seed: number;
  model: ModelSource;
  /** Whose demonstrations a new model's tokenizer is learnt from. */
  arms: Arm[];
  /** What episodes may add to a prompt, in tokens: a model that has no room for it is refused. */
  maxCompletionTokens: number;
  /** The model's weights are on a server: only how it speaks is read and copied. */
  held?: true;
  /** Checkpoints of other runs that stages name, as they name them: a model with other tokens is refused. */
  checkpoints?: Record<string, CheckpointRef>;
  /** Those of them that sample in the model's place: they must speak as it does. */
  speaking?: string[];
  /** Other runs whose stored episodes stages learn from: a new model with other tokens is refused. */
  episodesOf?: string[];
  /** What the policy is to judge itself by: a model that has no room for it is refused. */
  judge?: JudgeSpec;
}

export interface OpenRunRequest {
  /** As a person wrote it. */
  spec: unknown;
  /** The run's name where the spec gives none. */
  workflowId: string;
  /** Tells a resumed run from another one of the same name. */
  firstExecutionRunId: string;
}

export interface OpenEvaluateRequest extends OpenRunRequest {
  /** What servers said of the model that they hold, where an earlier request wanted to know it. */
  held?: HeldAnswer;
}

/** Stored groups of an evaluation, by the numbers from `from` to before `to`. */
export interface AdoptRequest {
  run: string;
  stage: string;
  step: number;
  from: number;
  to: number;
  reward: RewardSpec;
}

/** An evaluation that may begin. */
export interface OpenedEvaluate {
  /** null where no checkpoint was named in a dry run. */
  spec: EvaluateSpec | null;
  /** Of a dry run without a checkpoint: tasks of all levels together, and samples of each. */
  counts?: Pick<EvaluateSpec['evaluation'], 'count' | 'samples'>;
  /** What its verdicts may cost at most, where a tier judges. */
  expected?: ExpectedVerdicts;
  /** Only the input was to be checked: nothing was claimed. */
  dryRun: boolean;
  /** These servers are to be asked what they hold, and then all of this again; absent: they need not. */
  ask?: ServedPolicySpec;
}

/** Keeps what was measured, with every sample of every task. */
export interface KeepEvaluationRequest {
  spec: EvaluateSpec;
  /** What was sampled from. */
  checkpoint: CheckpointRef;
  measured: Omit<EvaluationResult, 'spans' | 'incidents'>;
}

export interface StepFactsRequest {
  run: string;
  facts: StepFacts;
}

export interface ChangeRequest {
  run: string;
  made: StoredChange;
}

export interface StepAnswerRequest {
  run: string;
  answer: StepAnswer;
}

export interface RetentionRequest {
  run: string;
  retention: RetentionSpec;
  /** Never deleted. */
  pinned: CheckpointRef[];
  scores: { checkpoint: CheckpointRef; score: number }[];
}
