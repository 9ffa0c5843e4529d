import type { Role } from '../../core/names.ts';
import type { Workers } from '../../workers/all-in-one.ts';
import { until } from './run-client.ts';
import type { RunClient } from './run-client.ts';

/** SIGKILL; resolves when the supervisor has brought up others in their place. */
export async function killAndReplace(workers: Workers, ...roles: Role[]): Promise<void> {
  const killed = roles.map((role) => {
    const pid = pidOf(workers, role);
    process.kill(pid, 'SIGKILL');
    return { role, pid };
  });
  await untilReplaced(workers, killed);
}

/**
 * Kills the worker of a role where an activity of a workflow runs on it, and gives its process, and which one it was. It stands
 * still while that is looked up, so that nothing ends between the look and the kill, however slow the machine; what the server
 * gives it meanwhile has started, too.
 */
export async function killWhileRunning(
  { workers, runs }: { workers: Workers; runs: RunClient },
  role: Role,
  workflowId: string,
  activity: string,
): Promise<{ role: Role; pid: number; id: string; attempt: number } | undefined> {
  const before = await runs.pending(workflowId, activity);
  if (before === 'absent' || before === 'closed') return undefined;
  const pid = pidOf(workers, role);
  process.kill(pid, 'SIGSTOP');
  let running: { id: string; attempt: number } | undefined;
  try {
    const seen = await runs.pending(workflowId, activity);
    if (typeof seen !== 'string' && seen.started) running = seen;
  } finally {
    process.kill(pid, running ? 'SIGKILL' : 'SIGCONT');
  }
  return running && { role, pid, id: running.id, attempt: running.attempt };
}

/**
 * The same, with another worker brought up in its place, and proven by the next attempt: a result that was on its way
 * to the server makes the kill a miss. Gives whether it was none.
 */
export async function killHits(
  { workers, runs }: { workers: Workers; runs: RunClient },
  role: Role,
  workflowId: string,
  activity: string,
): Promise<boolean> {
  const killed = await killWhileRunning({ workers, runs }, role, workflowId, activity);
  if (!killed) return false;
  await untilReplaced(workers, [killed]);
  const after = await until(
    async () => {
      const now = await runs.pending(workflowId, activity, killed.id);
      // It may have been tried again, and be done.
      if (typeof now === 'string')
        return (await runs.lastAttempt(workflowId, killed.id)) > killed.attempt ? 'hit' : 'missed';
      return now.attempt > killed.attempt ? 'hit' : undefined;
    },
    300_000,
    () => `${activity} of ${workflowId} was not tried again`,
  );
  return after === 'hit';
}

/** Kills the worker of a role while an activity runs on it, at the first step at which the kill hits. `at` names the workflow. */
export async function killInActivity(
  { workers, runs }: { workers: Workers; runs: RunClient },
  at: (step: number) => string,
  activity: string,
  role: Role,
  timeoutMs = 240_000,
): Promise<void> {
  let step = 2;
  await until(
    async () => {
      if ((await runs.pending(at(step), activity)) === 'closed') step++;
      return (await killHits({ workers, runs }, role, at(step), activity)) || undefined;
    },
    timeoutMs,
    () => `no ${activity} could be hit; the last try was at step ${step}`,
  );
}

function pidOf(workers: Workers, role: Role): number {
  const pid = workers.pid(role);
  if (pid === undefined) throw new Error(`no ${role} worker is running`);
  return pid;
}

async function untilReplaced(
  workers: Workers,
  killed: readonly { role: Role; pid: number }[],
): Promise<void> {
  await until(
    async () => {
      const replaced = killed.every(({ role, pid }) => ![undefined, pid].includes(workers.pid(role)));
      return replaced ? true : undefined;
    },
    300_000,
    () => `${killed.map(({ role }) => role).join(', ')} did not come back`,
  );
  await workers.ready();
}
