import { setMaxListeners } from 'node:events';
import { Context } from '@temporalio/activity';
import { startHeartbeats } from './heartbeats.ts';
import type { Heartbeats } from './heartbeats.ts';

/** What an activity does, told apart from how it is kept alive: a function of a request that honours a signal. */
type Operation<Request = never, Result = unknown> = (
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

/** Makes activities of operations: heartbeats, and the signal of the activity's cancellation. */
export function durable<Operations extends object>(
  operations: Operations,
  heartbeats?: Heartbeats,
): Durable<Operations> {
  const activities = Object.entries(operations as Record<string, Operation>).map(([name, operation]) => [
    name,
    (request: never) => withHeartbeats(heartbeats, (signal, tell) => operation(request, signal, tell)),
  ]);
  return Object.fromEntries(activities) as Durable<Operations>;
}

async function withHeartbeats<T>(
  heartbeats: Heartbeats | undefined,
  body: (signal: AbortSignal, tell: (progress: object) => void) => Promise<T>,
): Promise<T> {
  const context = Context.current();
  // Every episode of a group listens to the one signal.
  setMaxListeners(0, context.cancellationSignal);
  let progress: object | undefined;
  const stop = startHeartbeats(context, heartbeats, () => progress);
  try {
    return await body(context.cancellationSignal, (answer) => void (progress = answer));
  } finally {
    stop();
  }
}
