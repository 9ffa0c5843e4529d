import { messageOf } from '../core/errors.ts';
import { WORKER_DIED } from '../core/retrying.ts';
import type { WorkerSettings } from './settings.ts';

/** An attempt at an activity that a process had taken when it died. */
export interface LostAttempt {
  name: string;
  /** Its task token in base64. */
  token: string;
}

/** How long the server has to take it, milliseconds. */
const PATIENCE_MS = 10_000;

/**
 * Tells Temporal that attempts have failed with their process, so that they are tried again at once. One that nobody can
 * tell of is found out by its heartbeats, which have ended. Throws the first error of the server.
 */
export async function failLostAttempts(
  { temporalAddress: address, namespace }: Pick<WorkerSettings, 'temporalAddress' | 'namespace'>,
  attempts: readonly LostAttempt[],
  why: string,
): Promise<void> {
  const { ActivityNotFoundError, ApplicationFailure, AsyncCompletionClient, Connection } =
    await import('@temporalio/client');
  const connection = Connection.lazy({ address });
  try {
    const client = new AsyncCompletionClient({ connection, namespace });
    const failure = ApplicationFailure.retryable(why, WORKER_DIED);
    const fail = ({ token }: LostAttempt): Promise<void> =>
      client.fail(Buffer.from(token, 'base64'), failure).catch((error: unknown) => {
        // The server has its result, or has given it up, or its workflow is over.
        if (!(error instanceof ActivityNotFoundError)) throw error;
      });
    await client.withDeadline(Date.now() + PATIENCE_MS, () => Promise.all(attempts.map(fail)));
  } finally {
    await connection.close();
  }
}

/** The same as a process's supervisor needs it, which goes on either way: `say` gets what went wrong. */
export const lostAttemptsReporter =
  (settings: Pick<WorkerSettings, 'temporalAddress' | 'namespace'>, say: (text: string) => void) =>
  (attempts: readonly LostAttempt[], why: string): Promise<void> =>
    failLostAttempts(settings, attempts, why).catch((error: unknown) => {
      const names = attempts.map(({ name }) => name).join(', ');
      say(
        `the loss of ${names} could not be reported to Temporal (${messageOf(error)}): it notices by the missing heartbeats`,
      );
    });
