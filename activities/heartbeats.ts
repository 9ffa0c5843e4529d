import type { Context } from '@temporalio/activity';

/** Gives heartbeats of attempts from outside of the event loop that does the work (docs/adr/0026). */
export interface Heartbeats {
  /** From now until the attempt has ended, with these details. Absent details are none. */
  give(token: Uint8Array, details: object | undefined): void;
}

const HEARTBEAT_MS = 1000;

/**
 * Heartbeats of an activity, with its details as they stand when each is sent. The event loop gives one every second, which
 * is how a cancellation comes; `heartbeats` give theirs beside it. Call what it returns when the activity has ended.
 */
export function startHeartbeats(
  context: Context,
  heartbeats: Heartbeats | undefined,
  details: () => object | undefined,
): () => void {
  const beat = (): void => {
    context.heartbeat(details());
    heartbeats?.give(context.info.taskToken, details());
  };
  heartbeats?.give(context.info.taskToken, details());
  const timer = setInterval(beat, HEARTBEAT_MS);
  return () => clearInterval(timer);
}
