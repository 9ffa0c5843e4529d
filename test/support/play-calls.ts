import type { EpisodeSession, Observation, ToolCall } from '../../core/episode/episode.ts';
import { GradusError } from '../../core/errors.ts';
import type { TaskRef } from '../../core/refs.ts';
import type { Environment } from '../../environments/contract/environment.ts';
import { toolFacts } from '../../environments/host/facts.ts';
import { hostedHere } from '../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../environments/host/played-session.ts';
import type { SessionEnd } from '../../environments/contract/session.ts';

let episodes = 0;

export interface Played {
  observations: Observation[];
  kept: EpisodeSession | undefined;
  ended: SessionEnd;
}

export interface PlayOptions {
  task?: Partial<TaskRef>;
  /** Before these calls the process that plays is another one, which holds no session. */
  moves?: readonly number[];
  /** What happens to the server before a call. */
  before?: Record<number, () => Promise<void>>;
  answer?: string;
  signal?: AbortSignal;
  /** Attempts at a call, as its tool's limits have them. */
  attempts?: number;
  heartbeat?: () => void;
}

/** Plays calls as a rollout does: kept state and acts go along, and what can be tried again is. */
export async function playCalls(
  environment: Environment,
  calls: readonly ToolCall[],
  {
    task,
    moves = [],
    before = {},
    answer,
    attempts = 3,
    signal = new AbortController().signal,
    heartbeat,
  }: PlayOptions = {},
): Promise<Played> {
  const id = `play/${process.pid}/${++episodes}`;
  const ref: TaskRef = { environment: environment.name, split: 'train', level: 1, index: 0, ...task };
  const { tools } = await environment.task(ref);
  const session = new PlayedSession(hostedHere(environment), ref, id, tools?.map(toolFacts));
  try {
    for (const [n, call] of calls.entries()) {
      await before[n]?.();
      // Sessions of one process are told apart by the names of their environments, too.
      if (moves.includes(n)) session.moveTo(hostedHere({ ...environment, name: `${environment.name} ${n}` }));
      const { done } = await tried(attempts, (attempt) =>
        session.call(call, { attempt, signal, ...(heartbeat && { heartbeat }) }),
      );
      if (done) break;
    }
    await before[calls.length]?.();
    const by = answer === undefined ? ('environment' as const) : ('answer' as const);
    const ended = await tried(attempts, () => session.end({ answer: answer ?? null, by }, { signal }));
    const { turns, kept } = session;
    const observations = turns.map(({ observation }) => {
      const { seconds: _, ...said } = observation!;
      return said;
    });
    return { observations, kept, ended };
  } catch (error) {
    await session.close({ signal: new AbortController().signal });
    throw error;
  }
}

async function tried<T>(attempts: number, work: (attempt: number) => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work(attempt);
    } catch (error) {
      if (attempt >= attempts || !(error instanceof GradusError) || !error.retryable) throw error;
    }
  }
}
