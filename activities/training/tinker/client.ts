import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { answerOf } from '../../rollout/served/connection.ts';
import type { ServerConnection } from '../../rollout/served/connection.ts';

/** One look at a future, seconds; a server may keep it open for five minutes. */
const LOOK_SECONDS = 330;
/** Between two looks at one that is not done yet, milliseconds. */
const PAUSE = 200;
/** A look that fails is made again for so long, milliseconds: looking changes nothing. */
const PATIENCE = 20_000;
/** So long at most, however often a server asks for time, milliseconds: then Temporal tries again, and says so. */
const MOST_PATIENCE = 600_000;

/** Where a computation stands that the server has taken on. */
interface Waiting {
  request_id: string;
  model_id?: string | undefined;
}

const waiting = z.object({ request_id: z.coerce.string(), model_id: z.string().optional() });
const failed = z.object({
  error: z
    .union([z.string(), z.looseObject({})])
    .transform((said) => (typeof said === 'string' ? said : JSON.stringify(said))),
  category: z.string().nullish(),
});
const unfinished = z.object({ type: z.literal('try_again') });

/**
 * Tinker's API by its JSON wire (`/api/v1`): a POST begins a computation, whose answer is asked for until it is there.
 * Throws GradusError('learner', …): `server-away`, retryable, for what passes; `server-forgot`, retryable, where the server
 * does not know a session, model, future or checkpoint any more; `server-refused` for what it refuses from anyone, or calls
 * the user's fault; `server-answer`, retryable, for an answer that is none.
 */
export class TinkerClient {
  readonly url: string;
  private readonly connection: ServerConnection;
  private readonly seconds: number;

  /** `seconds`: how long one computation may take, queue included. */
  constructor(connection: ServerConnection, seconds: number) {
    this.connection = connection;
    this.url = connection.url;
    this.seconds = seconds;
  }

  /** What is answered at once. */
  async ask<T>(path: string, body: Json, schema: z.ZodType<T>, signal: AbortSignal): Promise<T> {
    return ofLearner(async () =>
      answerOf(schema, await this.connection.ask(path, body, signal, 60), `${this.url}${path}`),
    );
  }

  /**
   * Begins a computation and waits for it. What `again` says of a failed POST has it made again: the server knows it by its
   * `seq_id`, say, or has refused it. Otherwise nobody knows whether it was taken on, and the step begins anew from its
   * saved state.
   */
  async compute<T>(
    path: string,
    body: Json,
    schema: z.ZodType<T>,
    signal: AbortSignal,
    again?: (error: unknown) => error is GradusError,
  ): Promise<{ result: T; model: string | undefined }> {
    const begin = () => this.ask(path, body, waiting, signal);
    const begun = await (again ? patiently(begin, signal, again) : begin());
    return { result: await this.result(path, begun, schema, signal), model: begun.model_id };
  }

  private async result<T>(
    path: string,
    { request_id: id }: Waiting,
    schema: z.ZodType<T>,
    signal: AbortSignal,
  ): Promise<T> {
    const deadline = performance.now() + 1000 * this.seconds;
    const what = `${this.url}${path}`;
    for (;;) {
      const answer = await patiently(() => this.look(id, signal), signal);
      const failure = failed.safeParse(answer);
      if (failure.success) throw failureOf(what, failure.data);
      if (answer !== STILL && !unfinished.safeParse(answer).success)
        return ofLearner(async () => answerOf(schema, answer, what));
      if (performance.now() > deadline)
        throw away(`${what} has not ended within ${this.seconds} s: look at the server's queue`);
      await pause(PAUSE, signal);
    }
  }

  private look(id: string, signal: AbortSignal): Promise<unknown> {
    return ofLearner(async () => {
      try {
        return await this.connection.ask('/api/v1/retrieve_future', { request_id: id }, signal, LOOK_SECONDS);
      } catch (error) {
        if (error instanceof GradusError && / answered 408: /.test(error.message)) return STILL;
        throw error;
      }
    });
  }
}

const STILL = Symbol('still waiting');

const away = (message: string): GradusError =>
  new GradusError('learner', 'server-away', message, { retryable: true });

/** A server that has no such model or checkpoint any more says so in words. */
const FORGOT = /not (found|loaded)|unknown model|no such/i;

function failureOf(what: string, { error, category }: z.output<typeof failed>): GradusError {
  const message = `${what}: ${error}`;
  if (FORGOT.test(error)) return new GradusError('learner', 'server-forgot', message, { retryable: true });
  if (category?.toLowerCase() === 'user') return new GradusError('learner', 'server-refused', message);
  return new GradusError('learner', 'server-failed', message, { retryable: true });
}

/** The server is away for now. */
export const passes = (error: unknown): error is GradusError =>
  error instanceof GradusError && error.type === 'server-away';

/** It has too much to do, and has not taken it on. */
export const wasPutOff = (error: unknown): error is GradusError =>
  passes(error) && / answered 429: /.test(error.message);

/**
 * Makes it again while the server is away: for `PATIENCE`, and when the server asks for time, after that time, within
 * `MOST_PATIENCE`.
 */
export async function patiently<T>(
  ask: () => Promise<T>,
  signal: AbortSignal,
  again: (error: unknown) => error is GradusError = passes,
): Promise<T> {
  const start = performance.now();
  let deadline = start + PATIENCE;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      if (!again(error)) throw error;
      const asked = 1000 * (error.retryAfterSeconds ?? 0);
      const next = performance.now() + Math.max(PAUSE, asked);
      if (asked > 0) deadline = Math.min(start + MOST_PATIENCE, Math.max(deadline, next));
      if (next > deadline) throw error;
      await pause(next - performance.now(), signal);
    }
  }
}

async function pause(milliseconds: number, signal: AbortSignal): Promise<void> {
  await setTimeout(milliseconds, undefined, { signal }).catch(() => undefined);
  signal.throwIfAborted();
}

/** What the connection says of a policy's server, of the learner's. */
async function ofLearner<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof GradusError) || error.boundary !== 'policy') throw error;
    const { message, retryAfterSeconds, retryable } = error;
    const forgot =
      error.type === 'unknown-model' || (error.type === 'server-request' && FORGOT.test(message));
    const type = forgot ? 'server-forgot' : error.type === 'server-request' ? 'server-refused' : error.type;
    throw new GradusError('learner', type, message, {
      retryable: forgot || retryable,
      retryAfterSeconds,
      cause: error,
    });
  }
}
