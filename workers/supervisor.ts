import type { WorkerMessage } from './loop-watch.ts';

/** What a worker process says at its start, once: that it serves its queues, or why it does not. */
export type StartMessage = { ready: readonly string[]; descriptions: string[] } | { failed: string };

/**
 * Says something to whoever started this process, if anybody did and is still there. One that has just gone hears nothing,
 * and that is no error: `whenToStop` tells of it. `then` is called either way.
 */
export function notifySupervisor(
  message: WorkerMessage | StartMessage,
  then: () => void = () => undefined,
): void {
  if (process.connected) process.send!(message, () => then());
  else then();
}

/** Calls `stop` when this process is asked to end, or whoever started it is gone. */
export function whenToStop(stop: () => void): void {
  process.once('SIGTERM', stop);
  process.once('SIGINT', stop);
  process.once('disconnect', stop);
}
