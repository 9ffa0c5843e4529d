import { condition, setHandler, workflowInfo } from '@temporalio/workflow';
import { reverifyActivities, verdictActivities } from './activities.ts';
import { verdictArrived } from './messages.ts';

export interface ReverifyInput {
  run: string;
  verifier: string;
  version: string;
  /** Only the episodes of this stage, or of this evaluation (`before` and `after` are the report's); all otherwise. */
  stage?: string;
  /** Computations in flight at once; 4 where it is absent. */
  concurrency?: number;
}

export interface ReverifyOutcome {
  /** Verdicts that were computed for this, and what they took. */
  computed: number;
  seconds: number;
  usd: number;
  /** Key of the scores of all episodes. */
  scores: string;
}

/** Judges the stored episodes of a run by another verifier, or another version, without rolling out again. */
export async function reverify({ concurrency = 4, ...input }: ReverifyInput): Promise<ReverifyOutcome> {
  const request = { ...input, writer: `reverify-${workflowInfo().runId}` };
  const heard = new Set<string>();
  const spending = { computed: 0, seconds: 0, usd: 0 };
  setHandler(verdictArrived, ({ digest, spent }) => {
    if (heard.has(digest)) return;
    heard.add(digest);
    // What somebody else has caused costs nothing here.
    if (spent === null) return;
    spending.computed++;
    spending.seconds += spent.seconds;
    spending.usd += spent.usd;
  });
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
  return { ...spending, scores: await reverifyActivities.keepReverified(request) };
}
