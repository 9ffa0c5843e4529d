import type { Json } from '../../core/json/json.ts';
import type { ToolCall } from '../../core/episode/episode.ts';
import type { Image, Task, ToolContext } from './environment.ts';

// Environments with state: what an episode has changed is in its session, and how a session comes back after its holder
// is gone is declared. Nothing that a process merely remembers is relied on (ADR 0044).

/** The episode that a session belongs to. */
export interface SessionPlace {
  /** Unique in the store, and the same for every attempt at the episode: letters, digits, `._/-`. */
  id: string;
  /** Aborted when the episode is called off, or opening takes too long. */
  signal: AbortSignal;
}

/** What a session on a server begins as. */
export interface Opening extends SessionPlace {
  /** Unique, and another one each time that the episode's session is opened: letters, digits, `-`. */
  opening: string;
}

/** What a call did; a text alone is an observation that neither rewards nor ends. */
export type Acted = string | ActedFully;

export interface ActedFully {
  /** What the policy reads. */
  text: string;
  /** The environment would not take the call: the policy's own mistake, as if ToolRefusal had been thrown. */
  refused?: boolean;
  /** What the environment gives for this turn, in its own units; finite. */
  reward?: number;
  /** The environment ends the episode: nothing is sampled after this. */
  done?: boolean;
  /** What it shows besides, at most 8 and 4 MiB in all: kept with the episode, and named in its text by a line each. */
  images?: readonly Image[];
}

/** How an episode came to its end, for a session that has a last word. */
export interface EpisodeEnd {
  /** What the policy answered; null where it never did. */
  answer: string | null;
  by: 'answer' | 'environment' | 'turns' | 'tokens';
}

/** The session's last word about its episode. */
export interface SessionEnd {
  /** Of the whole episode, in the environment's own units; finite. In place of the sum of the turns' rewards. */
  reward?: number;
  /** Whatever verifiers want to know; at most 64,000 characters as JSON. */
  info?: Json;
}

/** A session that is alive in one process, used by one call at a time. */
export interface Session {
  /** Throws ToolRefusal for what the policy did wrong; whatever else it throws, the session is given up. */
  act(call: ToolCall, context: ToolContext): Acted | Promise<Acted>;
  /** Called once all calls are over, before verifiers; not where the episode has failed. */
  end?(end: EpisodeEnd, signal: AbortSignal): SessionEnd | Promise<SessionEnd>;
  /** Lets go of what it holds. Called when the episode is over, has failed or moved elsewhere; not when the process dies. */
  close?(): void | Promise<void>;
}

/** What the ways to come back have in common. */
interface AnySessions {
  /** How long `end` may take, seconds: 60 unless given, null where all that it waits for has limits of its own. */
  endSeconds?: number | null;
}

/**
 * `fold`: the state is a small value, at most 64,000 characters as JSON, which passes from call to call and is kept with
 * the episode. `act` is a function of state and call alone, and changes neither: any process goes on with it.
 */
export interface Fold<State = Json> extends AnySessions {
  resume: 'fold';
  open(task: Task, place: SessionPlace): State | Promise<State>;
  act(
    state: State,
    call: ToolCall,
    context: ToolContext,
  ): { state: State; did: Acted } | Promise<{ state: State; did: Acted }>;
  end?(state: State, end: EpisodeEnd, signal: AbortSignal): SessionEnd | Promise<SessionEnd>;
}

/**
 * `replay`: where the session is gone it is opened again and the recorded calls are made again; each observation (text,
 * refusal, reward, end and images) must be the recorded one, or the episode is `failed` at the environment.
 */
export interface Replay extends AnySessions {
  resume: 'replay';
  open(task: Task, place: SessionPlace): Session | Promise<Session>;
}

/** `pin`: it lives in one worker's process, whose end is the end of the session: the episode is `failed`. */
export interface Pin extends AnySessions {
  resume: 'pin';
  open(task: Task, place: SessionPlace): Session | Promise<Session>;
  /**
   * How long it may be without a call, seconds; then it is closed, for nobody tells of an episode whose workflow was
   * terminated. 6 hours unless given: more than any call of another tool between two of its own takes.
   */
  idleSeconds?: number;
}

/** `snapshot`: as `replay`, from the last snapshot instead of the beginning. */
export interface Snapshot extends AnySessions {
  resume: 'snapshot';
  open(task: Task, place: SessionPlace): Snapshooting | Promise<Snapshooting>;
  /** A session as it was when `value` was taken. */
  restore(task: Task, place: SessionPlace, value: Json): Snapshooting | Promise<Snapshooting>;
  /** A snapshot is taken after so many calls; 1 unless given. */
  every?: number;
}

export interface Snapshooting extends Session {
  /** At most 1,000,000 characters as JSON. */
  snapshot(): Json | Promise<Json>;
}

/**
 * `reattach`: the session outlives us, on a server that knows it by the episode's id and its opening. A call whose fate is unknown is made
 * again with the same `idempotencyKey` if its tool is `pure` or `idempotent`, or the server says that it never saw it; else
 * the episode is `failed`.
 */
export interface Reattach extends AnySessions {
  resume: 'reattach';
  /**
   * Begins anew: what was opened under the id before ends, where it is known. Whoever opened that may live and still call,
   * cut off from us: so what is opened has a name that goes by `place.opening`, and no call reaches it by the id alone.
   */
  open(task: Task, place: Opening): Attached | Promise<Attached>;
  /** Goes on with what is there. Throws where nothing is: the episode is `failed`. `handle` is what `open` gave. */
  attach(task: Task, place: SessionPlace, handle: Json): Attached | Promise<Attached>;
  /**
   * Ends the session of that handle, and no other: another attempt may have opened one meanwhile. Where it is null, the
   * episode is over: ends whatever is there under the id. Both also where nothing is there (any more).
   */
  close(task: Task, place: SessionPlace, handle: Json): void | Promise<void>;
}

export interface Attached extends Omit<Session, 'close'> {
  /** What the server calls the session, such as its opening; kept with the episode; null unless given. */
  handle?: Json;
  /** How many calls the server has taken, where it can tell: then the fate of one that was cut off is known. */
  acts?: number;
}

// A fold of any state: `State` stands in both directions, and the host knows no more of it than that it is JSON.
export type Sessions = Fold<any> | Replay | Pin | Snapshot | Reattach; // eslint-disable-line @typescript-eslint/no-explicit-any

export type Resume = Sessions['resume'];

/** A fold with its state's type. */
export function fold<State>(sessions: Omit<Fold<State>, 'resume'>): Fold<State> {
  return { resume: 'fold', ...sessions };
}
