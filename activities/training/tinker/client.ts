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

/** Where a computation stands that the server has taken on. */
interface Waiting {
  request_id: string;
  model_id?: string | undefined;
}

const waiting = z.object({ request_id: z.coerce.string(), model_id: z.string().optional() });
const failed = z.object({ error: z.string(), category: z.string().optional() });
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
   * Begins a computation and waits for it. With `repeatable` a POST whose answer was lost is made again, for the server knows
   * it by its `seq_id`; otherwise nobody knows whether it was taken on, and the step begins anew from its saved state.
   */
  async compute<T>(
    path: string,
    body: Json,
    schema: z.ZodType<T>,
    signal: AbortSignal,
    { repeatable = false } = {},
  ): Promise<{ result: T; model: string | undefined }> {
    const begin = () => this.ask(path, body, waiting, signal);
    const begun = await (repeatable ? patiently(begin, signal) : begin());
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
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      signal.throwIfAborted();
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

/** Makes it again while the server is away. */
async function patiently<T>(ask: () => Promise<T>, signal: AbortSignal): Promise<T> {
  const deadline = performance.now() + PATIENCE;
  for (;;) {
    try {
      return await ask();
    } catch (error) {
      const passes = error instanceof GradusError && error.type === 'server-away';
      if (!passes || performance.now() > deadline) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE));
      signal.throwIfAborted();
    }
  }
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
