import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';

/** What an activity does, told apart from how it is kept alive: a function of a request that honours a signal. */
export type Operation<Request = never, Result = unknown> = (
  request: Request,
  signal: AbortSignal,
) => Promise<Result>;

/** Operations as workflows see them. */
export type Durable<Operations> = {
  [Name in keyof Operations]: Operations[Name] extends Operation<infer Request, infer Result>
    ? (request: Request) => Promise<Result>
    : never;
};

const HEARTBEAT_MS = 1000;

/** Makes activities of operations: a sign of life every second, and the signal of the activity's cancellation. */
export function durable<Operations extends object>(operations: Operations): Durable<Operations> {
  const activities = Object.entries(operations as Record<string, Operation>).map(([name, operation]) => [
    name,
    (request: never) => withHeartbeat((signal) => operation(request, signal)),
  ]);
  return Object.fromEntries(activities) as Durable<Operations>;
}

async function withHeartbeat<T>(body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current();
  // Every episode of a group listens to the one signal.
  setMaxListeners(0, context.cancellationSignal);
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await body(context.cancellationSignal);
  } finally {
    clearInterval(timer);
  }
}
