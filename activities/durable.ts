import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';

/** What an activity does, told apart from how it is kept alive: a function of a request that honours a signal. */
export type Operation<Request = never, Result = unknown> = (
  request: Request,
  signal: AbortSignal,
  /** Gives what heartbeats tell from then on, as it stands when each is sent. Absent: nobody looks. */
  tell?: (progress: object) => void,
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
    (request: never) => withHeartbeat((signal, tell) => operation(request, signal, tell)),
  ]);
  return Object.fromEntries(activities) as Durable<Operations>;
}

async function withHeartbeat<T>(
  body: (signal: AbortSignal, tell: (progress: object) => void) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  // Every episode of a group listens to the one signal.
  setMaxListeners(0, context.cancellationSignal);
  let progress: object | undefined;
  const timer = setInterval(() => context.heartbeat(progress), HEARTBEAT_MS);
  try {
    return await body(context.cancellationSignal, (told) => void (progress = told));
  } finally {
    clearInterval(timer);
  }
}
