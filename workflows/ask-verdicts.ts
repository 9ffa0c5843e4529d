import { condition, workflowInfo } from '@temporalio/workflow';
import type { Arrived } from '../core/ladder/requests.ts';
import { ids } from '../core/names.ts';
import type { BlobRef } from '../core/refs.ts';
import { verdictActivities } from './activities.ts';
import { listen } from './listen.ts';
import { arrivedShape } from './message-shapes.ts';
import { verdictArrived } from './messages.ts';

/**
 * Asks for `count` verdicts, `concurrency` at a time, and returns those that came until all have, or until the
 * deadline where there is one. A workflow asks so once: it listens for what arrives.
 */
export async function askVerdicts(
  asks: BlobRef,
  count: number,
  { concurrency, deadlineSeconds }: { concurrency: number; deadlineSeconds?: number },
): Promise<Arrived[]> {
  const arrived = new Map<string, Arrived>();
  listen(verdictArrived, arrivedShape, (one) => void arrived.set(ids.verdict(one), one));
  const end = deadlineSeconds === undefined ? null : Date.now() + deadlineSeconds * 1000;
  const until = (fulfilled: () => boolean): Promise<unknown> =>
    end === null ? condition(fulfilled) : condition(fulfilled, Math.max(1, end - Date.now()));
  const late = (): boolean => end !== null && Date.now() >= end;
  for (let asked = 0; asked < count && !late();) {
    const to = Math.min(count, arrived.size + concurrency);
    await verdictActivities.requestVerdicts({ asks, from: asked, to, requester: workflowInfo().workflowId });
    asked = to;
    await until(() => asked - arrived.size < concurrency);
  }
  await until(() => arrived.size === count);
  return [...arrived.values()];
}
