/**
 * An activity that has been tried several times and has not come to its end. It stands for all of its name in the same
 * part of a run.
 */
export interface Retrying {
  activity: string;
  /** The id of the workflow that waits for it. */
  workflow: string;
  /** When it was last reported: 3, 6, 12, and so on. */
  attempts: number;
  /** Why the last attempt failed, as far as Temporal knows. */
  lastFailure: string;
}

/** What a worker tells a run of one of its activities: that it is tried again, or with null that it no longer is. */
export interface RetryReport {
  /** Names the activity, and the part of the run that it belongs to. */
  id: string;
  retrying: Retrying | null;
}

/** The failure type of an attempt whose worker process died, as its supervisor reports it. */
export const WORKER_DIED = 'gradus.infra.worker-died';
