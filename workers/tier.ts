import { Worker } from '@temporalio/worker';
import { createTier } from '../activities/verification/tier.ts';
import type { Role } from '../core/names.ts';
import type { HostedEnvironment } from '../environments/host/hosted-environment.ts';
import { commonOptions } from './runtime.ts';
import type { RoleWorker, WorkerRuntime } from './runtime.ts';
import { SERVED_TIERS } from './settings.ts';
import type { ServedTier } from './settings.ts';

/**
 * Of the roles those whose queues have work in these environments: no spec can ask a tier whose verifiers are all pools
 * and people, or of which there are none. A process that is for tiers alone serves them all the same.
 */
export function neededRoles(
  roles: readonly Role[],
  environments: Iterable<Pick<HostedEnvironment, 'verifiers'>>,
): readonly Role[] {
  const asked = new Set<string>();
  for (const { verifiers } of environments)
    for (const { tier, served } of verifiers) if (served?.by === 'function') asked.add(tier);
  const needed = roles.filter((role) => !SERVED_TIERS.includes(role as ServedTier) || asked.has(role));
  return needed.length === 0 ? roles : needed;
}

/** Serves the TypeScript verifiers of one tier; other languages have pools of their own (core/names.ts, `tierQueue`). */
export const createTierWorker =
  (tier: ServedTier) =>
  async (runtime: WorkerRuntime): Promise<RoleWorker> => {
    const concurrency = runtime.settings.tierConcurrency[tier];
    const rate = runtime.settings.tierRate[tier];
    const worker = await Worker.create({
      ...commonOptions(runtime, tier),
      activities: createTier(runtime),
      maxConcurrentActivityTaskExecutions: concurrency,
      // Held by the server, so that it is the tier's however many workers there are.
      ...(rate === undefined ? {} : { maxTaskQueueActivitiesPerSecond: rate }),
    });
    return {
      run: () => worker.run(),
      shutdown: () => worker.shutdown(),
      close: async () => undefined,
      description: `${tier}: TypeScript verifiers, ${concurrency} at once${rate === undefined ? '' : `, ${rate} a second`}`,
    };
  };
