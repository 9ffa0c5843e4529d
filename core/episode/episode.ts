import type { Json } from '../json/json.ts';
import type { Outcome } from './outcome.ts';
import type { MadeTaskRef } from '../refs.ts';
import type { BeamsSpec } from '../schema/beams.ts';
import type { SamplingSpec } from '../schema/sampling.ts';

/** A call that the policy wrote and that parsed: the tool may still not exist, or refuse the arguments. */
export interface ToolCall {
  name: string;
  arguments: Json;
}

/** What a turn of the policy asks for. `malformed` gets an error observation that the policy can learn from. */
export type Action =
  | { kind: 'call'; call: ToolCall }
  /** Two or more, in order, where the spec allows a turn several (`sampling.maxParallelCalls`). */
  | { kind: 'calls'; calls: ToolCall[] }
  | { kind: 'answer'; answer: string }
  | { kind: 'malformed'; reason: string };

/** An image that a tool showed: it lies in its run's folder of the store, under its digest. */
export interface ImageRef {
  type: 'image';
  mediaType: string;
  /** Of the image's bytes, lower-case hex. */
  sha256: string;
  bytes: number;
}

/** What came back from a tool, as the policy reads it. */
export interface Observation {
  /** What the tool said, without the frame that a dialect gives it; for `error` a message that starts with `error:`. */
  text: string;
  error?: 'malformed-call' | 'unknown-tool' | 'invalid-arguments' | 'tool-error';
  /** Wall seconds that the call took, as measured once by the attempt that finished it. */
  seconds?: number;
  /** What an environment with sessions gave for the turn, in its own units. */
  reward?: number;
  /** The environment ended the episode with it. */
  done?: true;
  /** What it showed; the text has a line in place of each. */
  images?: ImageRef[];
}

/** What is kept of an episode's session, so that any process can go on with it. */
export interface EpisodeSession {
  /** Of a fold: its state after the last call. */
  state?: Json;
  /** The newest snapshot, and after how many calls it was taken. */
  snapshot?: { acts: number; value: Json };
  /** What a server calls the session that it has under the episode's id. */
  handle?: Json;
  /** What the session said last. */
  ended?: { reward?: number; info?: Json };
}

/** A call of a tool of the environment that an agent made, and what it brought. */
export interface AgentCall {
  call: ToolCall;
  observation: Observation;
}

/** One action of the policy and what it led to. Token positions are into `Episode.tokens`. */
export interface Turn {
  /** First sampled token of the turn. */
  start: number;
  /** One past the last sampled token of the turn. */
  end: number;
  text: string;
  action: Action;
  /** SHA-256 of the weights that sampled it; absent: those of the group. */
  weights?: string;
  /** Of several calls: what all of them brought together, once no other is to be made. */
  observation?: Observation;
  /** Of several calls: what each brought, in order, as far as they were made. */
  results?: Observation[];
}

/**
 * A path of an agent's turns that left an earlier one: its own tokens begin at `start` and end where the next branch begins, or
 * with the episode. Before them it reads what was read up to `from`: the path of that place, until there.
 */
export interface EpisodeBranch {
  start: number;
  from: number;
}

/**
 * One sample of one task, token in, token out: ids are kept as they were sampled and are never re-tokenized.
 * `tokens` starts after the prompt (kept once in the group); `mask[i]` is 1 where the policy sampled
 * `tokens[i]`, 0 for observations; `samplerLogprobs[i]` is the log-probability (nats, at the sampling temperature) of a
 * sampled token, 0 elsewhere: among `kept[i]`, where a cut of the sampling left no others. All have the same length.
 */
export interface Episode {
  sample: number;
  /** Index into `RolloutGroup.tasks`. */
  task: number;
  tokens: number[];
  mask: (0 | 1)[];
  samplerLogprobs: number[];
  /** Ids that each token was sampled among, ascending; empty where nothing was cut. Absent where sampling cuts nothing. */
  kept?: number[][];
  turns: Turn[];
  /**
   * Of an agent that rewrote what was said, or had others work for it. `tokens` then has all of its tokens once, branch after
   * branch, and is no sequence by itself. Absent: there is one path.
   */
  branches?: EpisodeBranch[];
  /** Of an agent that has the tools of the environment: its calls of them, in the order in which they were begun. */
  calls?: AgentCall[];
  /** What it has of another sample of its task, which sampled it: it branched off before the next turn. */
  inherited?: { sample: number; turns: number; tokens: number };
  /** Of an environment with sessions, once one was opened. */
  session?: EpisodeSession;
  status: EpisodeStatus;
  outcome?: Outcome;
  /** What it was judged to be when its group was last learnt from: only what has changed since is learnt. */
  learntAs?: Outcome;
}

export type EpisodeStatus =
  | { kind: 'running' }
  /** A long tool call is due: it runs as an activity of its own, and then the episode advances again. */
  | { kind: 'calling'; call: ToolCall }
  | { kind: 'answered'; answer: string }
  /** The environment ended it. */
  | { kind: 'ended' }
  | { kind: 'truncated'; limit: 'tokens' | 'turns' }
  | { kind: 'failed'; boundary: 'policy' | 'tool' | 'environment' | 'infra'; reason: string };

/** A tool as it is kept with a task that has its own. */
interface TaskTool {
  name: string;
  placement: 'inline' | 'long';
  effect: 'pure' | 'idempotent' | 'once';
  described: { name: string; description: string; parameters: { [key: string]: Json } };
  limits: {
    timeoutSeconds: number;
    heartbeatSeconds: number;
    maxAttempts: number;
    maxOutputCharacters: number;
  };
  ofSession: boolean;
}

export interface GroupTask {
  ref: MadeTaskRef;
  /** Its place among all tasks of the step that sampled it: the draws of its episodes follow from it. */
  place?: number;
  prompt: string;
  promptTokens: number[];
  /** Where they are not those of the environment. */
  tools?: TaskTool[];
  /** Drawn again because samples had failed it. */
  retried?: true;
  /**
   * The prompt that the episodes are learnt behind, where that is not the one that they were sampled behind: without its
   * hint, or of the task that they have solved instead.
   */
  learntBehind?: number[];
}

/**
 * What a group was sampled by besides its weights, so that it can be sampled again: where in its run, which copies of it keep,
 * and how.
 */
export interface SampledBy {
  seed: number;
  /** The stage, or the name of an evaluation. */
  stage: string;
  step: number;
  sampling: SamplingSpec;
  /** Probability that an episode begins with a call of a tool that was drawn at random. */
  toolChoice?: number;
  /** Turns were searched for with these. */
  beams?: BeamsSpec;
  /** By an agent, which nobody but itself can start again. */
  agent?: true;
}

/** Episodes that advance together: G samples of one task in training, one sample of many tasks in an evaluation. */
export interface RolloutGroup {
  id: string;
  /** SHA-256 of the weights that sampled, but for turns that name others. */
  weights: string;
  temperature: number;
  /** Absent: nobody knows any more. */
  sampled?: SampledBy;
  /** Id of the group of the same step whose samples these are more of: of the same tasks, in a tree. */
  grows?: string;
  tasks: GroupTask[];
  episodes: Episode[];
}
