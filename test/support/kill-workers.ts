import type { Role } from '../../core/names.ts';
import type { Workers } from '../../workers/all-in-one.ts';
import { until } from './run-client.ts';
import type { RunClient } from './run-client.ts';

/** SIGKILL; resolves when the supervisor has brought up others in their place. */
export async function killAndReplace(workers: Workers, ...roles: Role[]): Promise<void> {
  const killed = roles.map((role) => {
    const pid = workers.pid(role);
    if (pid === undefined) throw new Error(`no ${role} worker is running`);
    process.kill(pid, 'SIGKILL');
    return { role, pid };
  });
  await until(
    async () => {
      const replaced = killed.every(({ role, pid }) => ![undefined, pid].includes(workers.pid(role)));
      return replaced ? true : undefined;
    },
    30_000,
    () => `${roles.join(', ')} did not come back`,
  );
  await workers.ready();
}

/**
 * Kills the worker of a role while an activity runs on it, and proves by its next attempt that the kill hit it. A kill
 * in the very moment in which the activity ended hits nothing: then the next one is tried. `at` names the workflow.
 */
export async function killInActivity(
  { workers, runs }: { workers: Workers; runs: RunClient },
  at: (step: number) => string,
  activity: string,
  role: Role,
  timeoutMs = 90_000,
): Promise<void> {
  let step = 2;
  await until(
    async () => {
      const seen = await runs.pending(at(step), activity);
      if (seen === 'closed') step++;
      if (typeof seen === 'string' || !seen.started) return undefined;
      await killAndReplace(workers, role);
      const after = await until(
        async () => {
          const now = await runs.pending(at(step), activity);
          if (typeof now === 'string') return 'missed';
          return now.attempt > seen.attempt ? 'hit' : undefined;
        },
        30_000,
        () => `${activity} was not tried again`,
      );
      return after === 'hit' ? true : undefined;
    },
    timeoutMs,
    () => `no ${activity} could be hit; the last try was at step ${step}`,
  );
}
