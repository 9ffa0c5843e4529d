import type { Presenter } from '../runs/ladder/presenter.ts';
import type { ReplayJobs } from '../runs/replay/jobs.ts';
import type { Sources } from '../runs/sources.ts';
import type { Hono } from 'hono';
import type { WorkerMetrics } from '../runs/metrics/scrape.ts';

/** What every page is made from. */
export interface Context {
  sources: Sources;
  /** `http://127.0.0.1:8233`, say; null where Temporal's own pages are not known. */
  temporalUi: string | null;
  namespace: string;
  /** Whether pages may change something. */
  actions: boolean;
  /** Made anew at each start; what changes something has it, so that no other page can send it. */
  formToken: string;
  /** Shows what only an environment can: what its verifiers are asked about. */
  presenter: Presenter;
  /** Episodes that are sampled again, in processes beside this one. */
  replays: ReplayJobs;
  /** Never shown, whatever an error says. */
  secrets: readonly string[];
  /** Where workers of this machine show what Temporal's SDK measures in them. */
  workerMetrics?: readonly WorkerMetrics[];
}

export type App = Hono;
