import { condition, setHandler, workflowInfo } from '@temporalio/workflow';
import type { Arrived } from '../core/ladder/requests.ts';
import type { BlobRef } from '../core/refs.ts';
import { verdictActivities } from './activities.ts';
import { verdictArrived } from './messages.ts';

/**
 * Asks for `count` verdicts, `concurrency` at a time, and returns those that came until all have, or until the
 * deadline. A workflow asks so once: it listens for what arrives.
 */
export async function askVerdicts(
  asks: BlobRef,
  count: number,
  { concurrency, deadlineSeconds }: { concurrency: number; deadlineSeconds: number },
): Promise<Arrived[]> {
  const arrived = new Map<string, Arrived>();
  setHandler(verdictArrived, (one) => void arrived.set(one.digest, one));
  const end = Date.now() + deadlineSeconds * 1000;
  for (let asked = 0; asked < count && Date.now() < end;) {
    const to = Math.min(count, arrived.size + concurrency);
    await verdictActivities.requestVerdicts({ asks, from: asked, to, requester: workflowInfo().workflowId });
    asked = to;
    await condition(() => asked - arrived.size < concurrency, Math.max(1, end - Date.now()));
  }
  await condition(() => arrived.size === count, Math.max(1, end - Date.now()));
  return [...arrived.values()];
}
