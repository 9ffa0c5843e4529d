import { createHash, randomUUID } from 'node:crypto';
import { callKey } from '../../core/episode/acts.ts';
import type { Act } from '../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall } from '../../core/episode/episode.ts';
import { GradusError, isA } from '../../core/errors.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { Json } from '../../core/json/json.ts';
import { toolLimitsOf, ToolRefusal } from '../contract/environment.ts';
import type { Environment, Task, Tool, ToolContext } from '../contract/environment.ts';
import type {
  Acted,
  Attached,
  SessionEnd,
  EpisodeEnd,
  Fold,
  Session,
  SessionPlace,
  Sessions,
  Snapshooting,
} from '../contract/session.ts';
import type { SessionAsk } from './asks.ts';
import { cutText, END_SECONDS, errorText } from './facts.ts';
import { inTime } from './in-time.ts';
import { ownTask } from './own-task.ts';
import { readActed, readEnd, readSnapshot, readSessionState } from './read-answers.ts';
import type { Did, Read } from './read-answers.ts';
import { observationOf } from './tool-call.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

// What a process does with sessions. Those that it holds are a convenience: each is known by the calls that it has taken,
// and one that is gone, or has taken others, comes back as its environment declares.

/** How long opening or closing one may take, milliseconds. */
const LIMIT_MS = 60_000;
/** Sessions that one process holds, of those that can come back, and how long without a call, milliseconds. */
const MOST = 256;
const IDLE_MS = 10 * 60_000;
/** How long one is held that cannot come back, seconds, where its environment does not say. */
const PINNED_IDLE_SECONDS = 6 * 60 * 60;
const SWEEP_MS = 60_000;

interface Live {
  session: Session | Snapshooting | Attached;
  /** Of the calls that it has taken. */
  trail: string;
  busy: boolean;
  usedAt: number;
  comesBack: boolean;
  /** After so long without a call nobody will ask for it any more, milliseconds. */
  idleMs: number;
}

/** Those that are alive in a process; a fold never is. */
type Living = Exclude<Sessions, { resume: 'fold' }>;

const live = new Map<string, Live>();
let sweeping: NodeJS.Timeout | undefined;

/** A session that is there and waits for a call. */
export interface ReadySession {
  /** Throws what the session throws, but ToolRefusal. Called once. */
  act(call: ToolCall, context: ToolContext): Promise<Did>;
  /** What is to be kept of it now. */
  readonly kept: EpisodeSession;
  /** Where the call has not come to its end: nobody knows what the session has come to. */
  giveUp(): void;
}

/**
 * An episode's session, as the calls before have left it, in no call's time.
 * Throws GradusError('environment', 'no-sessions' | 'open' | 'session-lost' | 'replay-differs' | 'session').
 */
export async function readySession(
  { name, sessions }: Environment,
  task: Task,
  ask: SessionAsk,
  tools: readonly Tool[],
  context: ToolContext,
): Promise<ReadySession> {
  if (!sessions) {
    throw new GradusError('environment', 'no-sessions', `${name} has tools without run() and no sessions`);
  }
  return sessions.resume === 'fold'
    ? readyFold(name, sessions, await stateOf(name, sessions, task, ask, tools, context))
    : readyLive(name, sessions, task, ask, await take(name, sessions, task, ask, tools, context), tools);
}

function readyFold(name: string, sessions: Fold, state: Json): ReadySession {
  let kept: EpisodeSession = { state };
  return {
    async act(call, context) {
      const next = await folded(name, sessions, state, call, context);
      kept = { state: next.state };
      return next.did;
    },
    get kept() {
      return kept;
    },
    giveUp: () => undefined,
  };
}

function readyLive(
  name: string,
  sessions: Living,
  task: Task,
  ask: SessionAsk,
  held: Live,
  tools: readonly Tool[],
): ReadySession {
  const kept: EpisodeSession = { ...ask.kept };
  return {
    async act(call, context) {
      const did = await acted(name, () => held.session.act(call, context));
      const acts = ask.acts.length + 1;
      held.trail = longer(held.trail, { call, observation: observationOf(did, toolOf(tools, call)) });
      if (sessions.resume === 'reattach') kept.handle = (held.session as Attached).handle ?? null;
      if (sessions.resume === 'snapshot' && acts % (sessions.every ?? 1) === 0) {
        const value = promised(name, readSnapshot(await (held.session as Snapshooting).snapshot()));
        kept.snapshot = { acts, value };
      }
      held.busy = false;
      held.usedAt = Date.now();
      return did;
    },
    kept,
    giveUp() {
      // Whoever took its place has closed it.
      if (live.get(keyOf(name, ask.id)) === held) giveUp(name, ask.id);
      void endUnkept(sessions, task, ask, held.session);
    },
  };
}

/** The session's last word about an episode that has ended. */
export async function endOfSession(
  { name, sessions }: Environment,
  task: Task,
  ask: SessionAsk,
  tools: readonly Tool[],
  end: EpisodeEnd,
  context: ToolContext,
): Promise<SessionEnd> {
  if (!sessions) return {};
  const { endSeconds = END_SECONDS } = sessions;
  const ended = await inTime(
    context.signal,
    endSeconds === null ? null : 1000 * endSeconds,
    async ({ signal }): Promise<SessionEnd> => {
      if (sessions.resume === 'fold') {
        if (!sessions.end) return {};
        const state = await stateOf(name, sessions, task, ask, tools, context);
        return sessions.end(copyOf(state), end, signal);
      }
      const held = await take(name, sessions, task, ask, tools, context);
      try {
        return (await held.session.end?.(end, signal)) ?? {};
      } finally {
        // It may be asked again.
        held.busy = false;
        held.usedAt = Date.now();
      }
    },
    (seconds) =>
      new GradusError('environment', 'end', `a session of ${name} took longer than ${seconds} s to end`),
  );
  return promised(name, readEnd(ended));
}

/** Lets go of an episode's session, here and where it outlives us. */
export async function closeOf(
  { name, sessions }: Pick<Environment, 'name' | 'sessions'>,
  task: Task,
  { id, kept }: Pick<SessionAsk, 'id' | 'kept'>,
  signal: AbortSignal,
): Promise<void> {
  const held = live.get(keyOf(name, id));
  live.delete(keyOf(name, id));
  const late = (seconds: number): GradusError =>
    new GradusError('environment', 'close', `a session of ${name} took longer than ${seconds} s to close`);
  await inTime(
    signal,
    LIMIT_MS,
    async (limited) => {
      if (sessions?.resume === 'reattach') {
        const place: SessionPlace = { id, signal: limited.signal };
        const opened = held && (held.session as Attached).handle;
        const handle = kept?.handle ?? opened ?? null;
        try {
          if (handle !== null) await sessions.close(ownTask(task), place, handle);
        } finally {
          await sessions.close(ownTask(task), place, null);
        }
      } else if (held) await (held.session as Session).close?.();
    },
    late,
  );
}

/** The state that a fold has come to: as it was kept, or from the beginning by the calls that it has taken. */
async function stateOf(
  name: string,
  sessions: Fold,
  task: Task,
  { id, acts, kept }: SessionAsk,
  tools: readonly Tool[],
  context: ToolContext,
): Promise<Json> {
  if (kept?.state !== undefined) return kept.state;
  const place: SessionPlace = { id, signal: context.signal };
  let state = promised(
    name,
    readSessionState(await opened(name, context.signal, () => sessions.open(ownTask(task), place))),
  );
  for (const [n, act] of acts.entries()) {
    const again = { ...context, idempotencyKey: callKey(id, act.turn, act.nth) };
    const next = await folded(name, sessions, state, act.call, again);
    assertSame(name, id, n, act, next.did, tools);
    ({ state } = next);
  }
  return state;
}

async function folded(
  name: string,
  sessions: Fold,
  state: Json,
  call: ToolCall,
  context: ToolContext,
): Promise<{ state: Json; did: Did }> {
  let after = state;
  const did = await acted(name, async () => {
    const next = await sessions.act(copyOf(state), call, context);
    after = promised(name, readSessionState(next.state));
    return next.did;
  });
  return { state: after, did };
}

/** What a session made of a call. What the policy did wrong is an observation, too. */
async function acted(name: string, act: () => Acted | Promise<Acted>): Promise<Did> {
  try {
    const did = promised(name, readActed(await act()));
    return did.refused ? { ...did, text: asError(did.text) } : did;
  } catch (error) {
    if (!isA(error, ToolRefusal)) throw error;
    return { text: asError(error.message), refused: true };
  }
}

const asError = (text: string): string => (text.startsWith('error:') ? text : `error: ${text}`);

async function take(
  name: string,
  sessions: Living,
  task: Task,
  ask: SessionAsk,
  tools: readonly Tool[],
  context: ToolContext,
): Promise<Live> {
  const key = keyOf(name, ask.id);
  const trail = ask.acts.reduce<string>(longer, '');
  const known = live.get(key);
  if (known && !known.busy && known.trail === trail) {
    known.busy = true;
    return known;
  }
  giveUp(name, ask.id);
  const session = await opened(
    name,
    context.signal,
    () => comeBack(name, sessions, task, ask, tools, context),
    (late) => {
      void closeQuietly(late);
      void endUnkept(sessions, task, ask, late);
    },
  );
  // Another attempt at the episode may have opened one meanwhile.
  giveUp(name, ask.id);
  const held: Live = {
    session,
    trail,
    busy: true,
    usedAt: Date.now(),
    comesBack: sessions.resume !== 'pin',
    idleMs: sessions.resume === 'pin' ? 1000 * (sessions.idleSeconds ?? PINNED_IDLE_SECONDS) : IDLE_MS,
  };
  live.set(key, held);
  sweep();
  sweeping ??= setInterval(sweep, SWEEP_MS).unref();
  return held;
}

async function comeBack(
  name: string,
  sessions: Living,
  task: Task,
  { acts, kept, id }: SessionAsk,
  tools: readonly Tool[],
  context: ToolContext,
): Promise<Live['session']> {
  const place: SessionPlace = { id, signal: context.signal };
  const own = ownTask(task);
  if (acts.length === 0) return sessions.open(own, { ...place, opening: randomUUID() });
  if (sessions.resume === 'pin') {
    const { idleSeconds = PINNED_IDLE_SECONDS } = sessions;
    throw lost(
      name,
      id,
      `its process is gone, and it is pinned to it, or it had no call for ${idleSeconds} s (idleSeconds)`,
    );
  }
  if (sessions.resume === 'reattach') {
    const session = await sessions.attach(own, place, kept?.handle ?? null);
    const { acts: taken = acts.length } = session;
    if (taken === acts.length) return session;
    throw lost(name, id, `its server has taken ${taken} calls, and we know of ${acts.length}`);
  }
  if (sessions.resume === 'snapshot' && kept?.snapshot) {
    const { acts: before, value } = kept.snapshot;
    const session = await sessions.restore(own, place, copyOf(value));
    return played(name, id, session, acts, before, tools, context);
  }
  return played(name, id, await sessions.open(own, place), acts, 0, tools, context);
}

/** Makes recorded calls again, from one on. Throws GradusError('environment', 'replay-differs' | 'session-lost'). */
async function played<S extends Session>(
  name: string,
  id: string,
  session: S,
  acts: readonly Act[],
  from: number,
  tools: readonly Tool[],
  context: ToolContext,
): Promise<S> {
  try {
    for (let n = from; n < acts.length; n++) {
      const { call, turn, nth } = acts[n]!;
      const idempotencyKey = callKey(id, turn, nth);
      const did = await inTime(
        context.signal,
        toolLimitsOf(toolOf(tools, call)).timeoutSeconds * 1000,
        ({ signal }) => acted(name, () => session.act(call, { ...context, idempotencyKey, signal })),
        (seconds) => lost(name, id, `call ${n + 1}, made again, took longer than ${seconds} s`, true),
      );
      assertSame(name, id, n, acts[n]!, did, tools);
    }
    return session;
  } catch (error) {
    void closeQuietly(session);
    throw error;
  }
}

/** Throws GradusError('environment', 'replay-differs') where a call that was made again brought something else. */
function assertSame(
  name: string,
  id: string,
  n: number,
  { call, observation }: Act,
  did: Did,
  tools: readonly Tool[],
): void {
  const now = observationOf(did, toolOf(tools, call));
  // As JSON, which what was recorded has passed through: it knows no -0.
  const same = (one: unknown): string => canonicalJson(one as Json);
  if (same(now) === same(observation)) return;
  const shown = (value: unknown): string => cutText(JSON.stringify(value), 300);
  throw new GradusError(
    'environment',
    'replay-differs',
    `${name} does not repeat: call ${n + 1} of ${id}, ${shown(call)}, brought ${shown(observation)}, and ` +
      `${shown(now)} when it was made again. Make it a function of task and calls, or declare another \`resume\``,
  );
}

/** `late` gets what is opened when nobody waits any more. Throws GradusError('environment', 'open', retryable), and those that `open` throws of its own. */
async function opened<T>(
  name: string,
  signal: AbortSignal,
  open: () => T | Promise<T>,
  late: (session: T) => void = () => undefined,
): Promise<T> {
  const failed = (how: string, cause?: unknown): GradusError =>
    new GradusError('environment', 'open', `a session of ${name} ${how}`, { retryable: true, cause });
  let opening: Promise<T> | undefined;
  try {
    return await inTime(
      signal,
      LIMIT_MS,
      () => (opening = (async () => open())()),
      (seconds) => failed(`took longer than ${seconds} s to open`),
    );
  } catch (error) {
    // What opens too late nobody has.
    void opening?.then(late, () => undefined);
    signal.throwIfAborted();
    if (isA(error, GradusError)) throw error;
    throw failed(`could not be opened: ${errorText(error)}`, error);
  }
}

const toolOf = (tools: readonly Tool[], call: ToolCall): Tool =>
  tools.find(({ name }) => name === call.name)!;

const longer = (trail: string, { call, observation }: Omit<Act, 'turn'>): string =>
  createHash('sha256')
    .update(trail)
    .update(canonicalJson({ call, observation } as unknown as Json))
    .digest('base64');

const keyOf = (environment: string, id: string): string => `${environment}\n${id}`;

function giveUp(name: string, id: string): void {
  const held = live.get(keyOf(name, id));
  live.delete(keyOf(name, id));
  if (held) void closeQuietly(held.session);
}

/** Of a session that nobody will ask again: what its close() throws changes nothing any more. */
async function closeQuietly(session: Live['session']): Promise<void> {
  try {
    await (session as Session).close?.();
  } catch (error) {
    console.warn(`a session's close() threw: ${errorText(error)}`);
  }
}

/**
 * Ends on its server what was opened for an episode's first call, which has failed: nobody else knows its handle. One that
 * has taken calls is there for the next attempt.
 */
async function endUnkept(
  sessions: Living,
  task: Task,
  { id, acts }: SessionAsk,
  session: Live['session'],
): Promise<void> {
  const { handle = null } = session as Attached;
  if (sessions.resume !== 'reattach' || acts.length > 0 || handle === null) return;
  try {
    await sessions.close(ownTask(task), { id, signal: timeoutSignal(LIMIT_MS) }, handle);
  } catch (error) {
    console.warn(`a session that nobody asks for could not be closed: ${errorText(error)}`);
  }
}

/** Those that nobody has asked for in long are let go of, and where there are many, those that can come back. */
function sweep(): void {
  const idle = [...live.entries()]
    .filter(([, { busy }]) => !busy)
    .toSorted(([, a], [, b]) => a.usedAt - b.usedAt);
  let over = live.size - MOST;
  for (const [key, { session, usedAt, comesBack, idleMs }] of idle) {
    if (!(comesBack && over > 0) && Date.now() - usedAt < idleMs) continue;
    over--;
    live.delete(key);
    void closeQuietly(session);
  }
}

const copyOf = <T>(value: T): T => structuredClone(value);

const lost = (name: string, id: string, why: string, retryable = false): GradusError =>
  new GradusError('environment', 'session-lost', `the session ${id} of ${name} is lost: ${why}`, {
    retryable,
  });

function promised<T>(name: string, read: Read<T>): T {
  if ('value' in read) return read.value;
  throw new GradusError('environment', 'session', `a session of ${name} ${read.fault}: fix it`);
}
