import { setTimeout } from 'node:timers/promises';
import { z } from 'zod';
import { GradusError, messageOf } from '../../../core/errors.ts';
import type { Json } from '../../../core/json/json.ts';
import { answerOf, PROTOBUF } from '../../rollout/served/connection.ts';
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
 * Tinker's API (`/api/v1`), in JSON and in protobuf: a POST begins a computation, whose answer is asked for until it is there.
 * Throws GradusError('learner', …): `server-away`, retryable, for what passes; `server-forgot`, retryable, where the server
 * does not know a session, model or future any more, of which another attempt has new ones; `server-refused` for what it
 * refuses from anyone, or calls the user's fault, and for a route or a saved state that is not there; `server-answer`,
 * retryable, for an answer that is none.
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
  async ask<T>(
    path: string,
    body: Json,
    schema: z.ZodType<T>,
    signal: AbortSignal,
    bytes?: Uint8Array,
  ): Promise<T> {
    return ofLearner(body, async () =>
      answerOf(schema, await this.connection.ask(path, bytes ?? body, signal, 60), `${this.url}${path}`),
    );
  }

  /**
   * Begins a computation and waits for it. What `again` says of a failed POST has it made again: the server knows it by its
   * `seq_id`, say, or has refused it. Otherwise nobody knows whether it was taken on, and the step begins anew from its
   * saved state. `bytes` are sent in place of `body`, which then says what they name.
   */
  async compute<T>(
    path: string,
    body: Json,
    schema: z.ZodType<T>,
    signal: AbortSignal,
    again?: (error: unknown) => error is GradusError,
    bytes?: Uint8Array,
  ): Promise<{ result: T; model: string | undefined }> {
    const begin = () => this.ask(path, body, waiting, signal, bytes);
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
    const accept = IN_PROTOBUF.has(path) ? `${PROTOBUF}, application/json` : undefined;
    for (;;) {
      const answer = await patiently(() => this.look(id, accept, signal), signal);
      const failure = failed.safeParse(answer);
      if (failure.success) throw failureOf(what, failure.data);
      if (answer !== STILL && !unfinished.safeParse(answer).success)
        return ofLearner({}, async () => answerOf(schema, answer, what));
      if (performance.now() > deadline)
        throw away(`${what} has not ended within ${this.seconds} s: look at the server's queue`);
      await pause(PAUSE, signal);
    }
  }

  private look(id: string, accept: string | undefined, signal: AbortSignal): Promise<unknown> {
    const body = { request_id: id };
    return ofLearner(body, async () => {
      try {
        return await this.connection.ask('/api/v1/retrieve_future', body, signal, LOOK_SECONDS, accept);
      } catch (error) {
        const status = statusOf(error);
        if (status === 408) return STILL;
        // TuFT 0.2.2 answers with these in place of a future's own failure.
        if (status === 409 || (status === 422 && messageOf(error).includes('Future failed')))
          throw new GradusError('learner', 'server-failed', messageOf(error), {
            retryable: true,
            cause: error,
          });
        throw error;
      }
    });
  }
}

/** What servers answer in protobuf to those who accept it. */
const IN_PROTOBUF: ReadonlySet<string> = new Set(
  ['forward', 'forward_backward', 'asample'].map((route) => `/api/v1/${route}`),
);

const STILL = Symbol('still waiting');

const away = (message: string): GradusError =>
  new GradusError('learner', 'server-away', message, { retryable: true });

/** A server that has no such model or checkpoint any more says so in words. */
const FORGOT = /not (found|loaded)|unknown model|no such/i;
/** What a server has given out and keeps for a while. A 404 to a request that names none of these is no loss of one. */
const GIVEN = ['session_id', 'model_id', 'request_id', 'model_path', 'base_model'];

function failureOf(what: string, { error, category }: z.output<typeof failed>): GradusError {
  const message = `${what}: ${error}`;
  if (FORGOT.test(error)) return new GradusError('learner', 'server-forgot', message, { retryable: true });
  if (category?.toLowerCase() === 'user') return new GradusError('learner', 'server-refused', message);
  return new GradusError('learner', 'server-failed', message, { retryable: true });
}

/** The server is away for now. */
export const passes = (error: unknown): error is GradusError =>
  error instanceof GradusError && error.type === 'server-away';

/** The server does not know what it has given out any more. */
export const hasForgot = (error: unknown): error is GradusError =>
  error instanceof GradusError && error.type === 'server-forgot';

/** It has too much to do, and has not taken it on. */
export const wasPutOff = (error: unknown): error is GradusError => passes(error) && statusOf(error) === 429;

/** Of an answer, as the connection says it; what the server says comes after it. */
const statusOf = (error: unknown): number => Number(/ answered (\d{3}): /.exec(messageOf(error))?.[1]);

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

/** What the connection says of a policy's server, of the learner's; `body` is what was asked. */
async function ofLearner<T>(body: Json, ask: () => Promise<T>): Promise<T> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof GradusError) || error.boundary !== 'policy') throw error;
    const { message, retryAfterSeconds, retryable } = error;
    const status = statusOf(error);
    if (forgot(status, message, body))
      throw new GradusError('learner', 'server-forgot', message, { retryable: true, cause: error });
    if (status === 404 || error.type === 'server-request')
      throw new GradusError('learner', 'server-refused', `${message}${adviceOf(status, body)}`, {
        cause: error,
      });
    throw new GradusError('learner', error.type, message, { retryable, retryAfterSeconds, cause: error });
  }
}

/** Whether a server refuses what it has given out, and would give out anew. */
function forgot(status: number, message: string, body: Json): boolean {
  // Tinker's own of a future that is gone (tinker 0.38.0, api_future_impl.py): what it is of is to be asked for again.
  if (status === 410) return true;
  const names = Object.keys((body ?? {}) as object).some((name) => GIVEN.includes(name));
  return names && (status === 404 || ([400, 422].includes(status) && FORGOT.test(message)));
}

export const keyAdvice = (status: number): string =>
  status === 401 || status === 403
    ? '. Give the key that the server takes: GRADUS_TINKER_KEY of a learner, policy.apiKeyVariable of a policy'
    : '';

function adviceOf(status: number, body: Json): string {
  const advice = keyAdvice(status);
  if (advice !== '') return advice;
  if (status === 404 && 'tinker_path' in ((body ?? {}) as object))
    return '. The server no longer has that saved state: put its saved checkpoints back, or have the decoder of rollout workers sample (leave out policy)';
  if (status === 404)
    return '. There is no such route: give the address of a server of Tinker’s API, without its /api/v1';
  return '';
}
