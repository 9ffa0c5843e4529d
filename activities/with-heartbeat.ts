import { Context } from '@temporalio/activity';

const HEARTBEAT_MS = 1000;

/** Runs the body of an activity with a sign of life every second, and the signal of its cancellation. */
export async function withHeartbeat<T>(body: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const context = Context.current();
  const timer = setInterval(() => context.heartbeat(), HEARTBEAT_MS);
  try {
    return await body(context.cancellationSignal);
  } finally {
    clearInterval(timer);
  }
}
