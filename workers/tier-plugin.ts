import type { Tier } from '../core/episode/outcome.ts';
import type { WorkerSettings } from './settings.ts';
import type { ProcessKind } from './supervised-process.ts';

/**
 * Verification tiers of an environment that a process of another kind serves, such as one in Python. Those there are, are
 * listed in plugins/index.ts; nothing else names one.
 */
export interface TierPlugin {
  /** What `gradus setup NAME` and `gradus dev --no-NAME` call it. */
  name: string;
  /** The environment whose verifiers it serves. */
  environment: string;
  tiers: readonly Tier[];
  /** What has to be set up for it, in words. */
  needs: string;
  /** What `gradus setup NAME` brings and costs, in words. */
  setUp: string;
  /** Loads the program that sets it up. */
  loadSetUp: () => Promise<unknown>;
  /** What it runs with; undefined where it is not set up. */
  find: () => Promise<string | undefined>;
  /** Variables for all workers, by what `find` gave. */
  env: (found: string) => Record<string, string>;
  process: (found: string, settings: WorkerSettings, env: Record<string, string>) => ProcessKind;
}
