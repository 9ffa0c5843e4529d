import { ActivityFailure, isCancellation, TimeoutFailure } from '@temporalio/workflow';
import type { BlobRef } from '../core/refs.ts';
import type {
  AdvanceResult,
  GroupRequest,
  GroupResult,
  LongCall,
  LongCallResult,
  Span,
} from '../core/requests.ts';
import { rolloutActivities, toolActivities, verifierActivities } from './activities.ts';

/**
 * Rolls out and verifies one group. All episodes start together in one activity; an episode with a long tool call
 * goes on by itself: the call is an activity of its own, and then the episode advances again. What finished is never
 * lost, and an episode waits for nobody's tool but its own.
 */
export async function rolloutGroup(group: GroupRequest): Promise<GroupResult> {
  const parts: BlobRef[] = [];
  const spans: Span[] = [];

  const first = await rolloutActivities.advance({ group });
  parts.push(first.part);
  spans.push(...first.spans);
  await Promise.all(first.calls.map((call) => followEpisode(call, first.part)));
  const result = await verifierActivities.verifyGroup({ group, parts });
  return { ...result, spans: [...spans, ...result.spans] };

  async function followEpisode(firstCall: LongCall, firstPart: BlobRef): Promise<void> {
    let call: LongCall | undefined = firstCall;
    let part = firstPart;
    while (call !== undefined) {
      const result: LongCallResult = await runLongCall(call, part);
      const advanced: AdvanceResult = await rolloutActivities.advance({
        group,
        resume: { part, call, result },
      });
      parts.push(advanced.part);
      spans.push(...advanced.spans);
      part = advanced.part;
      call = advanced.calls[0];
    }
  }

  async function runLongCall(call: LongCall, part: BlobRef): Promise<LongCallResult> {
    try {
      const done = await toolActivities(call).callTool({ run: group.run, call, part });
      spans.push(...done.spans);
      return { observation: done.observation };
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      const cause = error.cause?.message ?? error.message;
      if (call.maxAttempts === 1 && error.cause instanceof TimeoutFailure) {
        return {
          failed: `${call.tool} was begun, its fate is unknown, and it must not be repeated: ${cause}`,
        };
      }
      return { failed: `${call.tool} gave no result in up to ${call.maxAttempts} attempt(s): ${cause}` };
    }
  }
}
