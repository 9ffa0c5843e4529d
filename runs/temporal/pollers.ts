import type { Client } from '@temporalio/client';
import { millisOf } from './temporal-values.ts';

/** `temporal.api.enums.v1.TaskQueueType`. */
const TYPE = { workflows: 1, activities: 2 } as const;
type Served = keyof typeof TYPE;

export interface Poller {
  /** Process and machine, as the worker names itself. */
  identity: string;
  /** When it last asked for work, epoch milliseconds. */
  at: number;
}

/** Who has asked a queue for work lately, the latest first; Temporal remembers it for some minutes. */
export async function pollersOf(temporal: Client, queue: string, served: Served): Promise<Poller[]> {
  const { pollers } = await temporal.workflowService.describeTaskQueue({
    namespace: temporal.options.namespace,
    taskQueue: { name: queue },
    taskQueueType: TYPE[served],
  });
  return (pollers ?? [])
    .map(({ identity, lastAccessTime }) => ({ identity: identity ?? '', at: millisOf(lastAccessTime) ?? 0 }))
    .toSorted((a, b) => b.at - a.at);
}

/** A question for work is answered within a minute, with none at the latest, and asked anew. */
const LONGEST_POLL_MS = 70_000;
/** Work that waits for so long was offered to nobody. */
const OFFERED_WITHIN_MS = 3000;

/**
 * Whether somebody serves a queue: `there`; `busy`: something is being done for it, and nobody asks for more; `silent`:
 * nobody has asked since work has been waiting, so whoever did is gone or hangs; `missing`: nobody asks.
 */
export function serverOf(
  pollers: readonly Poller[],
  { waitingSince, inHand }: { waitingSince: number | null; inHand: boolean },
  now: number,
): 'there' | 'busy' | 'silent' | 'missing' {
  const last = pollers[0]?.at ?? null;
  const gone = last === null || now - last > LONGEST_POLL_MS;
  const passedOver =
    waitingSince !== null && now - waitingSince > OFFERED_WITHIN_MS && (last === null || last < waitingSince);
  if (!gone && !passedOver) return 'there';
  if (inHand) return 'busy';
  return gone ? 'missing' : 'silent';
}

/** Whether anybody can take up what is put into a queue, as far as Temporal knows. */
export async function isServed(temporal: Client, queue: string, served: Served): Promise<boolean> {
  const pollers = await pollersOf(temporal, queue, served);
  return serverOf(pollers, { waitingSince: null, inHand: false }, Date.now()) === 'there';
}
