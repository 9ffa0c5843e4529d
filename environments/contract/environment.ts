import type { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import type { Tier } from '../../core/episode/outcome.ts';
import type { MadeTaskRef, Split } from '../../core/refs.ts';
import type { Episode, ToolCall } from '../../core/episode/episode.ts';
import type { TierAnswer } from '../../core/tier-contract.ts';
import type { Sessions } from './session.ts';

/** What a tool knows about the call it serves. */
export interface ToolContext {
  /** The same for every attempt of this call, and for no other call. */
  idempotencyKey: string;
  /** 1 for the first attempt. */
  attempt: number;
  /** Aborted when the call is cancelled or its time is up. */
  signal: AbortSignal;
  /** Says that a long call is alive; a long call that stays silent for `limits.heartbeatSeconds` is tried again. */
  heartbeat(details?: Json): void;
  /** The task of the episode, made when it is first asked for. */
  task(): Promise<Task>;
}

/** A JSON Schema (draft 2020-12 or 7) of an object, as other programs give them. */
export interface JsonSchema {
  type: 'object';
  [keyword: string]: unknown;
}

/** What `run` is given. */
export type ArgumentsOf<Arguments extends z.ZodType | JsonSchema> = Arguments extends z.ZodType
  ? z.infer<Arguments>
  : { [name: string]: Json };

/** What a tool shows besides text. Policies read text alone; the image is kept for whoever looks at the episode. */
export interface Image {
  /** Such as `image/png`. */
  mediaType: string;
  /** The bytes, or their base64. */
  data: Uint8Array | string;
}

/** What a tool gives: text, or text and images, of which the policy reads a line each, such as `[image image/png]`. */
export type ToolOutput = string | { text: string; images?: readonly Image[] };

/**
 * A tool that a policy can call.
 *
 * `placement` `inline`: milliseconds, runs inside the rollout activity and is run again if that is. `long`: runs as a
 * Temporal activity of its own on the tool queue, with time-outs, heartbeats, retries and cancellation.
 * `effect` `pure`: may be repeated. `idempotent`: may be repeated with the same `idempotencyKey`. `once`: never
 * repeated; must be `long`, and an attempt whose fate is unknown ends the episode as an infrastructure outcome.
 *
 * `run` returns what the policy reads, and what it shows. Throw ToolRefusal for what the policy did wrong (it reads the message and can
 * learn from it); anything else thrown is a failure of the tool, retried for `pure` and `idempotent` ones.
 */
export interface Tool<Arguments extends z.ZodType | JsonSchema = z.ZodType | JsonSchema> {
  name: string;
  description: string;
  /** Checked before `run`, by zod or by Ajv. */
  arguments: Arguments;
  placement: 'inline' | 'long';
  effect: 'pure' | 'idempotent' | 'once';
  cost: { seconds: number; usd: number };
  limits?: Partial<ToolLimits>;
  /** Left out of a tool of an environment with sessions: the session's `act` has the call. */
  run?(args: ArgumentsOf<Arguments>, context: ToolContext): ToolOutput | Promise<ToolOutput>;
}

export interface ToolLimits {
  /** One attempt, seconds. */
  timeoutSeconds: number;
  /** Long calls only: silence after which an attempt counts as lost, seconds. */
  heartbeatSeconds: number;
  /** Attempts in all, for `pure` and `idempotent` tools. */
  maxAttempts: number;
  /** Longer output is cut, and says so to the policy, in characters. */
  maxOutputCharacters: number;
}

export const DEFAULT_TOOL_LIMITS: ToolLimits = {
  timeoutSeconds: 60,
  heartbeatSeconds: 10,
  maxAttempts: 5,
  maxOutputCharacters: 4096,
};

/** How long one attempt at an inline call may take where the tool does not say, seconds. */
const INLINE_TIMEOUT_SECONDS = 10;

export const toolLimitsOf = (tool: Pick<Tool, 'limits' | 'placement'>): ToolLimits => ({
  ...DEFAULT_TOOL_LIMITS,
  ...(tool.placement === 'inline' && { timeoutSeconds: INLINE_TIMEOUT_SECONDS }),
  ...tool.limits,
});

/** The policy's own mistake, told to it as the observation. */
export class ToolRefusal extends Error {
  override name = 'ToolRefusal';
}

/** A tool with a function of its own: all that it knows of the episode is the call and the task. */
export interface FunctionTool<
  Arguments extends z.ZodType | JsonSchema = z.ZodType | JsonSchema,
> extends Tool<Arguments> {
  run(args: ArgumentsOf<Arguments>, context: ToolContext): ToolOutput | Promise<ToolOutput>;
}

export function defineTool<Arguments extends z.ZodType | JsonSchema>(
  tool: FunctionTool<Arguments>,
): FunctionTool<Arguments> {
  return tool;
}

/** A tool that acts on the session: milliseconds, and as safe to repeat as its environment's sessions are. */
export function sessionTool(tool: Omit<Tool, 'placement' | 'effect' | 'cost' | 'run'> & Partial<Tool>): Tool {
  return { placement: 'inline', effect: 'idempotent', cost: { seconds: 0, usd: 0 }, ...tool };
}

/** One task: what the policy is asked, and what verifiers need to judge it. */
export interface Task {
  ref: MadeTaskRef;
  /** The user's message. */
  prompt: string;
  /** The expected answer where there is one. */
  answer?: string;
  /** The calls that solve it, where that can be said. */
  calls?: readonly ToolCall[];
  /** The tools of this task where they are not those of its environment. */
  tools?: readonly Tool[];
  info?: Json;
}

/** How an expert solves a task: what the policy should write, turn by turn. The tools' real answers go between. */
export interface DemonstrationTurn {
  think?: string;
  /** Exactly one of `call`, `calls`, `answer` and `raw`; `raw` is written as it stands (for malformed examples), in any dialect. */
  call?: { name: string; arguments: Json };
  /**
   * Two or more in one turn, in order, for dialects that have several (`sampling.maxParallelCalls`). Each may say what its tool
   * answers; without that it is run, as for `call`.
   */
  calls?: readonly (ToolCall & { observation?: string })[];
  answer?: string;
  raw?: string;
  /** What the tool answers to `call`. Without it the tool is run, which must then be inline and pure. */
  observation?: string;
}

export interface Demonstration {
  turns: DemonstrationTurn[];
  /** 1 for an example to imitate; negative for one to make less likely (only its last turn counts then). */
  weight: number;
}

/** What a verifier judges: the task and everything the policy did. */
export interface Candidate {
  task: Task;
  /** `session` has the state that a fold ended with, and what a session said last; `calls` what an agent called itself. */
  episode: Pick<Episode, 'turns' | 'status' | 'session' | 'calls'>;
  /** What the policy answered, null if it never did. */
  answer: string | null;
  /** Names of the tools it could call. */
  tools: readonly string[];
}

/** A score in [0, 1] with its uncertainty (one standard deviation), or an abstention, which is never a zero. */
export type Verdict =
  | {
      kind: 'score';
      score: number;
      uncertainty?: number;
      /** Of a verifier that judges steps: a score in [0, 1] for each turn of the episode, in order. */
      steps?: readonly number[];
      /**
       * What the answer comes down to, equal for two answers that say the same: by it the reward's rules tell whether
       * samples agree or differ. Without it they compare the letters of the answers. Empty: the answer cannot be read, so
       * that it is none, and no vote.
       */
      canonical?: string;
      evidence?: string;
    }
  /** `canonical`, where the answer can be read though nobody knows what is expected: samples are compared by it all the same. */
  | { kind: 'abstain'; reason: string; canonical?: string };

interface VerifierFacts {
  name: string;
  /** Changes when the same candidate could get another verdict. */
  version: string;
  tier: Tier;
  /** What one verdict is expected to cost; the ledger keeps what it did cost. */
  cost: { seconds: number; usd: number };
}

/**
 * Judges the whole candidate where episodes are verified: microseconds to milliseconds, cheaper than asking for it. One that gives
 * nothing in ten seconds has hung, and its episode is `failed`; what it waits for its turn in the sandbox is not counted.
 */
export interface FastVerifier extends VerifierFacts {
  tier: 'fast';
  verify(candidate: Candidate, context: { signal: AbortSignal }): Verdict | Promise<Verdict>;
}

/**
 * Judges a subject on its tier's own queue, once for ever: its answers are kept by (name, version, digest of the
 * subject), across episodes, runs and restarts.
 */
export interface TierVerifier extends VerifierFacts {
  tier: 'simulation' | 'high-fidelity' | 'world';
  /**
   * The part of a candidate that the verdict depends on, in canonical form; null for what is not worth asking about: the
   * verdict of the tier below then stands, in training and in evaluations.
   */
  subject(candidate: Candidate): Json;
  /**
   * Abstentions that say something against the subject, by their type, and the score in [0, 1] that they stand for: a
   * molecule that has no arrangement in space is a bad one, not one that nobody could judge.
   */
  faults?: Readonly<Record<string, number>>;
  /** What an answer means for this task. Needed when the worker measures; a `scored` answer is taken as it is without it. */
  interpret?(candidate: Candidate, answer: TierAnswer): Verdict;
  /** Where it is computed: here in TypeScript, by a pool of workers in another language, or by people (world tier). */
  served:
    | {
        by: 'function';
        verify(subject: Json, context: { signal: AbortSignal; heartbeat(): void }): Promise<TierFinding>;
      }
    | { by: 'pool'; pool: string }
    | { by: 'people' };
  limits?: Partial<TierLimits>;
  /** Environment variables that its function reads when it is called, such as an API key: it sees no others. */
  variables?: readonly string[];
}

/** What a function of a tier says; the worker adds format, names and what was spent. */
export type TierFinding =
  | { kind: 'scored'; score: number; uncertainty?: number; evidence?: string; usd?: number }
  | {
      kind: 'measured';
      values: Record<string, number>;
      uncertainties?: Record<string, number>;
      evidence?: string;
      usd?: number;
    }
  | { kind: 'abstained'; type: string; reason: string; evidence?: string; usd?: number };

export interface TierLimits {
  /** One attempt, seconds. */
  timeoutSeconds: number;
  /** Silence after which an attempt counts as lost, seconds. */
  heartbeatSeconds: number;
  /** Attempts that may be lost before the verdict is an abstention. */
  maxAttempts: number;
}

export const DEFAULT_TIER_LIMITS: TierLimits = { timeoutSeconds: 3600, heartbeatSeconds: 30, maxAttempts: 5 };

export type Verifier = FastVerifier | TierVerifier;

/**
 * A piece of what people are shown of a subject. Text is text, also in a table: nothing in it is markup. A drawing (an
 * element `svg`, with its name space) is shown as an image: it runs nothing and fetches nothing, and `alt` says in words
 * what is on it.
 */
export type SubjectBlock =
  | { kind: 'text'; text: string }
  | { kind: 'table'; columns: readonly string[]; rows: readonly (readonly (string | number)[])[] }
  | { kind: 'svg'; svg: string; alt: string };

/** What a policy proposed comes to. */
export type Proposed =
  /**
   * A task. `proposal` is what it is made of again, at most 4,000 characters as JSON. Two with one `canonical` are the same
   * task, however they are written; two with one `like` resemble each other.
   */
  | { kind: 'accepted'; proposal: Json; canonical: string; like: string }
  /** Written as was asked, and no task: too easy, not deterministic, an error. */
  | { kind: 'invalid'; reason: string }
  /** Not written as was asked. */
  | { kind: 'malformed'; reason: string }
  /** A task that is not to be trained on, as one of another split: neither kept nor punished. */
  | { kind: 'set-aside'; reason: string };

/** Tasks that a policy makes (self-play, docs/self-play.md). */
export interface Proposals {
  /** By the level at which a policy is asked for a task: the level of the task that it makes. */
  levels: Readonly<Record<number, number>>;
  /**
   * Looks at what was answered, and runs it, within bounds of time and size. The same answer comes to the same.
   * `candidate.task.ref.made` has the references that were shown.
   */
  check(candidate: Candidate, signal: AbortSignal): Proposed | Promise<Proposed>;
}

/** What another task made of one comes to. */
export type Varied =
  /**
   * A task. `proposal` is what it is made of again, at most 4,000 characters as JSON, and gets to `task` as the only one of
   * `ref.made`. Two with one `canonical` are the same task, however they are told. `split` is the one that its problem belongs
   * to, by the same rule as that of generated tasks: it is not trained on in any other than train.
   */
  | { kind: 'task'; proposal: Json; canonical: string; split: Split }
  /** No other task could be made of it. */
  | { kind: 'none'; reason: string };

/** A task family: tasks, tools and verifiers together, without the model. */
export interface Environment {
  name: string;
  /** Difficulty levels, easiest first. */
  levels: readonly number[];
  tools: readonly Tool[];
  verifiers: readonly Verifier[];
  /** Changes when the same coordinates may give another task, or the same call another answer; kept with the run. */
  version?: string;
  /**
   * The same coordinates give the same task; no task of one split is a task of another. `ref.made`, where it is given, has
   * what policies proposed: at a level that asks for proposals the references to show, at others the task to make.
   */
  task(ref: MadeTaskRef): Task | Promise<Task>;
  /** State from call to call: how it is opened, acted on, ended and come back to. */
  sessions?: Sessions;
  /**
   * An expert's way through a task. `index` draws among several ways (and, now and then, a malformed one with negative
   * weight). Without it, supervised stages are not for this environment.
   */
  demonstrate?(task: Task, index: number): Demonstration | Promise<Demonstration>;
  /**
   * What to tell whoever tries a task again after this attempt at it has failed; null: nothing of its own. Only what it says
   * may give the answer away: without it Gradus says what tools and verifiers said, and never the expected answer.
   */
  hint?(candidate: Candidate): string | null;
  /**
   * Another task, for which an episode that failed its own is a success, as if that one had been asked: with the prompt and
   * whatever verifiers read, and no task of another split; null where there is none. Verifiers have the last word.
   */
  relabel?(candidate: Candidate): Omit<Task, 'ref'> | null;
  /** Tasks that a policy may make. Without it, self-play is not for this environment. */
  proposals?: Proposals;
  /**
   * A task that resembles this one, at its level: with other numbers, or another wish at the same place. The same task and
   * `index` give the same one; another `index` gives another one, as far as there are any. The expert must know a way through
   * it, which shows that it can be solved. Without it, no stage makes tasks of those that were failed (docs/failures.md).
   */
  vary?(task: Task, index: number): Varied | Promise<Varied>;
  /**
   * How a subject of its verifiers is shown to people: to reviewers, and to whoever looks at what became of a candidate.
   * Without it, and where it throws, hangs or gives something else, they are shown the subject's JSON.
   */
  present?(subject: Json): readonly SubjectBlock[] | Promise<readonly SubjectBlock[]>;
  /** How many different tasks a split has at a level, for bounds checks; Infinity where it is practically endless. */
  taskCount(split: Split, level: number): number;
  /**
   * Loads what its functions need and what is not worth having where nobody uses them. Awaited once in each process
   * that calls them, before the first (where it fails, again before the next), on no call's and no verdict's time; at
   * most 60 s. Names, levels, tools and counts are read without it. It shares its event loop with other work.
   */
  prepare?(): Promise<void>;
  /** What must be on the machine for it, beside Gradus: looked for, and told by `gradus environments`. Quick. */
  needs?(): Promise<readonly Need[]>;
}

/** Something that an environment does not work without, or not wholly. */
export interface Need {
  /** In words, such as "the Python of reasoning-gym" or "Chromium". */
  what: string;
  present: boolean;
  /** The command that brings it. */
  setUp: string;
}

/** An environment whose tasks and demonstrations need no waiting for. */
export interface PlainEnvironment extends Environment {
  task(ref: MadeTaskRef): Task;
  demonstrate(task: Task, index: number): Demonstration;
}

export function defineEnvironment<E extends Environment>(environment: E): E {
  return environment;
}
