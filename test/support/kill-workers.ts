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

/** How long a worker stands still for an activity that is to be handed to it. */
const HANDED_MS = 10_000;

interface Installed {
  workers: Workers;
  runs: RunClient;
}

interface Killed {
  role: Role;
  pid: number;
  workflowId: string;
  id: string;
  attempt: number;
}

export interface KillOptions {
  /**
   * The worker stands still from when a workflow runs until the server has handed it the activity, however short that is: for
   * an activity that waits for nothing else of this worker.
   */
  held?: boolean;
}

/** An activity that has started in one of the workflows; else whether one of these runs, is yet to come, or all are over. */
async function lookFor({ runs }: Installed, activity: string, workflows: readonly string[]) {
  const states = await Promise.all(
    workflows.map(async (workflowId) => ({ workflowId, seen: await runs.pending(workflowId, activity) })),
  );
  for (const { workflowId, seen } of states)
    if (typeof seen === 'object' && seen.started) return { workflowId, id: seen.id, attempt: seen.attempt };
  if (states.every(({ seen }) => seen === 'closed')) return 'over';
  return states.some(({ seen }) => seen === 'none' || typeof seen === 'object') ? 'open' : 'absent';
}

/**
 * Kills the worker of a role where an activity of one of the workflows runs on it, and gives its process, and which one it was. It
 * stands still while that is looked up, so that nothing ends between the look and the kill, however slow the machine; what the
 * server gives it meanwhile has started, too.
 */
export async function killWhileRunning(
  installed: Installed,
  role: Role,
  workflows: string | readonly string[],
  activity: string,
  { held = false }: KillOptions = {},
): Promise<Killed | undefined> {
  const look = () => lookFor(installed, activity, [workflows].flat());
  const before = await look();
  if (before === 'absent' || before === 'over') return undefined;
  const pid = pidOf(installed.workers, role);
  process.kill(pid, 'SIGSTOP');
  let running: Awaited<ReturnType<typeof look>> = 'open';
  try {
    const handed = Date.now() + (held ? HANDED_MS : 0);
    do running = await look();
    while (running === 'open' && Date.now() < handed);
  } finally {
    process.kill(pid, typeof running === 'object' ? 'SIGKILL' : 'SIGCONT');
  }
  return typeof running === 'object' ? { role, pid, ...running } : undefined;
}

/**
 * The same, with another worker brought up in its place, and proven by the next attempt: a result that was on its way
 * to the server makes the kill a miss. Gives whether it was none.
 */
export async function killHits(
  installed: Installed,
  role: Role,
  workflows: string | readonly string[],
  activity: string,
  options: KillOptions = {},
): Promise<boolean> {
  const { workers, runs } = installed;
  const killed = await killWhileRunning(installed, role, workflows, activity, options);
  if (!killed) return false;
  const { workflowId, id, attempt } = killed;
  await untilReplaced(workers, [killed]);
  const after = await until(
    async () => {
      const now = await runs.pending(workflowId, activity, id);
      // It may have been tried again, and be done.
      if (typeof now === 'string')
        return (await runs.lastAttempt(workflowId, id)) > attempt ? 'hit' : 'missed';
      return now.attempt > attempt ? 'hit' : undefined;
    },
    300_000,
    () => `${activity} of ${workflowId} was not tried again`,
  );
  return after === 'hit';
}

/** Kills the worker of a role while an activity runs on it, at the first step at which the kill hits. `at` names the workflows. */
export async function killInActivity(
  installed: Installed,
  at: (step: number) => string | readonly string[],
  activity: string,
  role: Role,
  { timeoutMs = 240_000, ...options }: KillOptions & { timeoutMs?: number } = {},
): Promise<void> {
  let step = 2;
  await until(
    async () => {
      if ((await lookFor(installed, activity, [at(step)].flat())) === 'over') step++;
      return (await killHits(installed, role, at(step), activity, options)) || undefined;
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
