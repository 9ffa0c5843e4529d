import type { MovingMeans } from '../algorithms/moving-means.ts';
import type { LeagueRecord } from './league.ts';
import type { Adjusted, HeededAlarm } from '../diagnosis/act.ts';
import type { DiagnosisName } from '../diagnosis/alarm.ts';
import type { Boundary } from '../errors.ts';
import type { Incident } from '../episode/incidents.ts';
import type { OutcomeCounts } from '../episode/outcome.ts';
import type { Decision, Question } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import type { EnvironmentScale } from '../reward/normalization.ts';
import type { Proportion } from '../statistics/intervals.ts';
import type { RewardModelQuality } from '../reward/reward-model.ts';
import type { AgreementSums } from '../reward/self-judge.ts';
import type { LearnerMetrics } from '../requests/learner.ts';
import type { ArmTally } from '../requests/verification.ts';
import type { TimeSplit } from '../time/time-split.ts';
import type { Criterion } from './enough.ts';
import type { ArmHowSolved } from './how-solved.ts';
import type { ArmEstimates } from './task-draw.ts';

/**
 * What one step leaves behind: counts, from which every figure of it follows, and what was decided. It is kept at
 * `runs/<run>/steps/<stage>/<step>.json`. Two executions of the same step leave the same, but for `circumstances`.
 */
export interface StepFacts {
  stage: string;
  /** Of the stage, from 1. */
  stageStep: number;
  maxSteps: number;
  /** Of the run, from 1. */
  step: number;
  /** Its environments, with commas between them. */
  environment: string;
  /** After the step. */
  checkpoint: CheckpointRef;
  /** What trained it; null where nothing was learnt. */
  backend: string | null;
  /** null where nothing was rolled out to learn from, as in a warm start. */
  rollout: RolloutFacts | null;
  /** What was put together for the learner; null where nothing could be judged. */
  batch: BatchFacts | null;
  /** null where there was no learner step. */
  learner: Omit<LearnerMetrics, 'seconds'> | null;
  /** Of the checkpoint after the step, on tasks that are not trained on; null where it was not measured. */
  heldOut: HeldOutFacts | null;
  /** Of a reward stage: how well its models judge what they were not shown, after an epoch of all; absent of others. */
  rewardModel?: RewardModelQuality;
  /** Of a supervised stage that asks whether it is enough: how far each criterion is; absent of others. */
  criteria?: Criterion[];
  /** Of a supervised stage that makes its own data: what was made before its first round; absent of others. */
  synthesis?: SynthesisFacts;
  /** What the stage knows of its arms after this step; empty in a warm start. */
  estimates: ArmEstimates;
  /** Number of the newest change of the run that held in the step (`runs/<run>/changes`); absent where there is none. */
  change?: number;
  /** By what the step differed from the spec; null where nothing is diagnosed, as in a supervised stage. */
  adjusted: Adjusted | null;
  /** What its rewards were compared with, by arm: moving means of those before it. Absent where its method has none, or none yet. */
  movingMeans?: MovingMeans;
  /** How the policy fared against each opponent of its league, after the step; absent where none is drawn by it. */
  league?: LeagueRecord;
  /** Alarms that were raised at this step. */
  alarms: HeededAlarm[];
  /** Names of the alarms that stand after it, whenever they were raised; absent where none does. */
  standing?: DiagnosisName[];
  decision: DecisionFacts;
  circumstances: Circumstances;
}

/** Of the episodes that a step has rolled out. Sums run in the order of the groups, so they repeat to the bit. */
export interface RolloutFacts extends BehaviourCounts, Partial<Staleness> {
  outcomes: OutcomeCounts;
  /** Of tasks that were drawn for the first time. */
  arms: ArmTally[];
  /** Over the episodes whose reward may be trained on. */
  rewardSum: number;
  rewardCount: number;
  sampledTokens: number;
  /** Tokens that were sampled besides, for baselines and corrections; absent where there were none. */
  otherTokens?: number;
  /** Of samples with a hint, of tasks that others had failed; they are in no other count. Absent where there were none. */
  hinted?: Proportion;
  /** Sampled tokens that episodes have of others, which they branched off; absent where there are none. */
  inheritedTokens?: number;
  /** Sum of the log-probs of `sampledTokens` when sampled, nats: the negative mean is an estimate of the policy's entropy. */
  sampledLogprob: number;
  turns: number;
  /** Groups of earlier steps that were trained with them; absent where a stage replays none. */
  replayed?: ReplayFacts;
  /** Of a step of self-play: what its roles came to; absent of others. */
  selfPlay?: SelfPlayFacts;
  /** What the stage has made of failed tasks before its first step; absent of others. */
  fromFailures?: FailureFacts;
  /** Why groups failed as a whole. */
  failedGroups: string[];
  /** The stage has rolled back behind the weights that sampled: nothing was learnt from these episodes. */
  givenUp?: true;
}

/** How old the weights were that sampled for a step. Absent where nothing is sampled ahead. */
export interface Staleness {
  /** Learner steps by which the weights that learn were ahead of those that sampled; of the oldest. */
  staleness: number;
  /** The same in updates of the optimizer, for the last one of the step; absent where nobody counts. */
  staleUpdates?: number;
  /** Sampled tokens by the number of learner steps, from 0; absent where all are as old. */
  sampledByStaleness?: number[];
}

/** What a stage has made of the tasks that an earlier one failed: of its variations each is one of those from `none` on. */
export interface FailureFacts {
  /** Failed tasks that were varied. */
  failed: number;
  variations: number;
  /** The environment made none. */
  none: number;
  /** Tasks that measure. */
  setAside: number;
  /** Tasks that another variation is. */
  known: number;
  /** What its own expert does not pass. */
  unsolved: number;
  /** Whose value is below or above the bounds; null where no critic was asked. */
  tooHard: number | null;
  tooEasy: number | null;
  kept: number;
  /** SHA-256 of the task source; null where nothing is kept. */
  source: string | null;
}

/** What a supervised stage has made of verified trajectories. Tasks are kept or left out by one of three reasons. */
export interface SynthesisFacts {
  /** Tasks of the train split that were looked at. */
  tasks: number;
  /** What their own expert does not pass. */
  unsolved: number;
  /** Tasks that measure ask the same. */
  setAside: number;
  /** Tasks that another one is. */
  known: number;
  /** Other actions that were looked at; of these, those that do what was done, and those that nobody can call worse. */
  actions: number;
  same: number;
  notWorse: number;
  /** Steps of trajectories with too few other actions to choose among. */
  tooFew: number;
  /** Examples that the dialect cannot write, or the model has no room for. */
  unwritable: number;
  /** Examples that are kept, by kind. */
  first: number;
  plans: number;
  choices: number;
  /** SHA-256 of the data. */
  source: string;
}

/** What the two roles of a step of self-play came to. Sums and counts, so that steps add up. */
export interface SelfPlayFacts {
  proposer: RoleRewards;
  solver: RoleRewards;
  /** Episodes that were asked for a task. */
  proposals: number;
  /** Those of them that made one; of these, those that another one of the step had made before. */
  made: number;
  repeated: number;
  /** Kinds of task that these are: those that resemble each other are one. Absent of steps from before they were counted. */
  kinds?: number;
  /** Those that made a task which was there already. */
  known: number;
  invalid: number;
  malformed: number;
  /** Neither kept nor rewarded. */
  setAside: number;
  /** Of the solver's samples of tasks that the step has made. */
  successes: number;
  trials: number;
  /** Tasks that are kept after the step. */
  kept: number;
  /** SHA-256 of the task source after it; null where nothing has been made yet. */
  source: string | null;
  /** The stage whose policy played the other role; absent where the policy played both. */
  opponent?: string;
  /** How the policy fared against the opponent, within [0, 1] each; absent where none is drawn by it. */
  score?: Score;
  /** Of a stage whose labels are the majority's; absent of others. */
  labels?: LabelFacts;
}

/** A sum over so many; nothing can be said where these are 0. */
export interface Score {
  sum: number;
  count: number;
}

/** Of the tasks that the solver's samples of a step have voted on. Each is one of those from `tooFew` to `learnt`. */
export interface LabelFacts {
  tasks: number;
  /** Too few samples had an answer. */
  tooFew: number;
  /** No answer led. */
  undecided: number;
  /** With a label whose share of the votes is below or above the filter. */
  tooHard: number;
  tooEasy: number;
  /** With a label that is within its bounds: what a solver that is trained learns from. */
  learnt: number;
  /** Sum over those with enough answers of the share of the majority among the votes. */
  shareSum: number;
  /** Labels that the environment's verifier passes, of those of which it can say. */
  right: number;
  checked: number;
  /** The same of those that are learnt from; absent of older facts. */
  rightLearnt?: number;
  checkedLearnt?: number;
}

/** Over the episodes of a role whose reward may be trained on. */
export interface RoleRewards {
  rewardSum: number;
  rewardCount: number;
}

/** What a step has replayed. A group is the samples of one task here. */
export interface ReplayFacts {
  groups: number;
  /** Those of them by the learner steps since they were sampled, from 0. */
  byStaleness: number[];
  /** Their tokens that are trained, likewise; absent of steps from before they were counted. */
  tokensByStaleness?: number[];
  /** Left the buffer at this step without having been replayed: older than maxStaleness. */
  tooOld: number;
  /** Chosen and left out: the effective sample size of their importance weights was too small, or their successes not as probable as asked. */
  tooFar: number;
  /** May be replayed by later steps, without the groups that this step has sampled. */
  buffered: number;
}

/**
 * What the episodes of a step did, in numbers that add up over rollout groups. A group is the samples of one task here,
 * as in GRPO.
 */
export interface BehaviourCounts {
  episodes: number;
  /** Episodes that a limit of tokens or of turns cut off, whatever a verifier said of them. */
  truncated: number;
  /** Sampled tokens of the longest episode. */
  longest: number;
  /** Turns of the episode that has most. */
  mostTurns: number;
  /** Tokens that came back from tools. */
  observationTokens: number;
  /** Runs of four sampled tokens within a turn, and those of them that the same turn had before (seq-rep-4). */
  fourGrams: number;
  repeatedFourGrams: number;

  /** Calls that reached a tool, by its name. */
  calls: Record<string, number>;
  /** Turns that were neither a call nor an answer. */
  malformedCalls: number;
  unknownTools: number;
  /** Calls whose arguments a tool did not take. */
  invalidArguments: number;
  /** Calls that a tool answered with an error. */
  toolErrors: number;
  /** Calls, of whatever tool, that the same episode has made before with the same arguments and the same result. */
  repeatedCalls: number;
  /** Different calls of an episode that an earlier sample of its group has made, too. */
  duplicateCalls: number;
  answers: number;
  /** Answers that an earlier sample of the group has given. */
  duplicateAnswers: number;
  /** Episodes whose turns are those of an earlier sample of the group, to the letter. */
  duplicateEpisodes: number;

  /** Episodes of the outcome `failed`, by where. */
  failures: Partial<Record<Boundary, number>>;
  /** By verifier, over the episodes that have a reward. */
  components: Record<string, ComponentCounts>;
  /** Groups with two trainable rewards or more, and those of them whose rewards are all equal (σ = 0). */
  rewardGroups: number;
  equalRewards: number;
  /** Those of them of which some samples succeed and some fail; absent of steps from before it was counted. */
  mixedGroups?: number;
  /** Sums over `rewardGroups` of the variance within the group (of the sample: n − 1) and of its root. */
  rewardVariance: number;
  rewardDeviation: number;
}

/** What a component of the reward came to. */
export interface ComponentCounts {
  /** Episodes that its verifier gave a score, and the sum of these scores, each in [0, 1]. */
  scored: number;
  score: number;
  /** What it added to rewards, in sum. */
  contribution: number;
  /**
   * The least and the greatest score that an episode got, by the model where one has judged. Absent where none got any,
   * and of steps from before they were kept.
   */
  lowest?: number;
  highest?: number;
  /** What a reward model said in its place; absent where none has. */
  model?: ModelCounts;
}

/** What a reward model came to, beside the verifier that it stands for. Sums, so that groups add up. */
export interface ModelCounts {
  /** Episodes that it has judged, its scores, and the deviations of its ensemble. */
  judged: number;
  score: number;
  uncertainty: number;
  /** Those that the verifier has scored, too; by how much more the model gave them, and the squares of that. */
  compared: number;
  excess: number;
  squaredError: number;
  /** Where the policy is its own judge; absent of reward models. */
  judge?: JudgeCounts;
}

/** What the policy came to as its own judge. Sums, so that groups add up. */
export interface JudgeCounts extends AgreementSums {
  /** Episodes that none of its samples has scored: they have no reward. */
  unjudged: number;
  /** Those whose transcript does not fit into its context: they are worth 0. */
  tooLong: number;
  /** Its samples, those of them that give points, and the tokens that were sampled for all of them. */
  samples: number;
  readable: number;
  tokens: number;
}

export interface BatchFacts {
  /** 0 where none of them could teach anything. */
  sequences: number;
  /** Prompts, completions and observations. */
  tokens: number;
  /** Those whose mask is 1: the ones that the policy is taught. */
  maskedTokens: number;
  /**
   * Sampled tokens of episodes that something was learnt from: their advantage was not zero. Absent of demonstrations, and
   * of steps from before they were counted.
   */
  taughtTokens?: number;
  /**
   * Groups whose rewards were all equal, or too few: their advantages are zero. Of a method that goes by success those that
   * all succeed or all fail: they are left out.
   */
  degenerateGroups: number;
  /** Tasks among which those are, where each has several groups: a tree grows in rounds. */
  trees?: number;
  /** What the rewards of each environment were brought to one scale by, where the spec asks for it. */
  scales?: EnvironmentScale[];
}

export interface HeldOutFacts {
  arms: ArmTally[];
  outcomes: OutcomeCounts;
  meanReward: number;
  sampledTokens: number;
  /** How the tasks were solved. */
  conduct?: ArmHowSolved[];
  /** Part of the stage's error (1 − confidence) that its evaluations up to this one have left; absent in a warm start. */
  errorLeft?: number;
  /** Part of it that this evaluation has spent; absent as `errorLeft` is, and in facts of older versions. */
  errorPart?: number;
}

/** What followed from the step. */
export interface DecisionFacts {
  /** `continue`, `graduate`, `plateau`, `collapse`; `stuck` of a warm start whose rounds do not suffice. */
  kind: string;
  reason: string | null;
  /** What was done about it, as far as it was known at once: `ask` where a person was to say. */
  action: string | null;
  /** What a person was asked. The answer is kept beside the facts, once it is there. */
  question: Question | null;
}

/** What a person answered to the question of a step. */
export interface StepAnswer {
  stage: string;
  stageStep: number;
  answer: Decision;
}

/** What another execution of the same step may have otherwise: a comparison leaves it out. */
interface Circumstances {
  /** Epoch milliseconds. */
  endedAt: number;
  /** Wall seconds of the step by part. */
  seconds: TimeSplit;
  /** Wall seconds of the learner's own work; null where it had none. */
  learnerSeconds: number | null;
  /** Seconds in which enough groups were there, but older ones had to come first; absent where no step waits so. */
  waitedForOldest?: number;
  /** Wall seconds of the step without work; absent where nothing is sampled ahead, and in facts of older versions. */
  idle?: {
    /** In which neither a group nor an evaluation was under way. */
    rollout: number;
    /** In which the learner did nothing. */
    learner: number;
  };
  /** What users' code did wrong. */
  incidents: Incident[];
}
