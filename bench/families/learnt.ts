import type { Proportion } from '../../core/statistics/intervals.ts';
import { total } from '../../core/training/stage-policy.ts';
import type { BenchOptions } from '../bench.ts';
import { durableRun, withInstallation } from '../durable-run.ts';

/** What a family's demo learnt: success on the report's tasks, before RL and after it. */
export interface Learnt {
  before: Proportion;
  after: Proportion;
  /** Wall seconds of the run. */
  seconds: number;
}

/** A run of a curriculum on an installation of its own. */
export const learnBy =
  (spec: unknown) =>
  (options: BenchOptions): Promise<Learnt> =>
    withInstallation(options, async (client) => {
      const { result, seconds } = await durableRun(client, spec, options);
      if (!result.before || !result.after) throw new Error('the run ended without its last report');
      return { before: total(result.before.arms), after: total(result.after.arms), seconds };
    });
