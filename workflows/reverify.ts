import { condition, setHandler, workflowInfo } from '@temporalio/workflow';
import { reverifyActivities, verdictActivities } from './activities.ts';
import { verdictArrived } from './messages.ts';

export interface ReverifyInput {
  run: string;
  verifier: string;
  version: string;
  /** Computations in flight at once; 4 where it is absent. */
  concurrency?: number;
}

/** Judges the stored episodes of a run by another verifier, or another version, without rolling out again. */
export async function reverify({
  concurrency = 4,
  ...input
}: ReverifyInput): Promise<{ computed: number; scores: string }> {
  const request = { ...input, writer: `reverify-${workflowInfo().runId}` };
  const heard = new Set<string>();
  setHandler(verdictArrived, ({ digest }) => void heard.add(digest));
  const { asks, count } = await reverifyActivities.planReverify(request);
  let asked = 0;
  while (asked < count) {
    const to = Math.min(count, heard.size + concurrency);
    await verdictActivities.requestVerdicts({
      asks: asks!,
      from: asked,
      to,
      requester: workflowInfo().workflowId,
    });
    asked = to;
    await condition(() => asked - heard.size < concurrency);
  }
  await condition(() => heard.size >= count);
  return { computed: count, scores: await reverifyActivities.keepReverified(request) };
}
