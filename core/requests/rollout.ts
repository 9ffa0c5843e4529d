import type { Incident } from '../episode/incidents.ts';
import type { BlobRef, CheckpointRef, MadeTaskRef } from '../refs.ts';
import type { ServedRewardModel } from '../reward/reward-model.ts';
import type { ServedJudge } from '../reward/self-judge.ts';
import type { AgentSpec } from '../schema/agent.ts';
import type { BeamsSpec } from '../schema/beams.ts';
import type { HeldModel, OtherPolicySpec, ServedPolicySpec } from '../schema/policy.ts';
import type { RewardSpec } from '../schema/reward.ts';
import type { SamplingSpec } from '../schema/sampling.ts';
import type { Span } from './span.ts';

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

/** A long call's observation, or why there is none and at which boundary: then the episode ends as `failed`. */
export type LongCallResult = { observation: BlobRef } | { failed: string; boundary: 'tool' | 'infra' };

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
