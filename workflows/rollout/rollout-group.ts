import { CancellationScope, executeChild, log } from '@temporalio/workflow';
import { addIncidents } from '../../core/episode/incidents.ts';
import { messageOf } from '../../core/errors.ts';
import { ids } from '../../core/names.ts';
import type { BlobRef } from '../../core/refs.ts';
import type { GroupRequest, OpenGroup } from '../../core/requests/rollout.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { addSpans } from '../../core/time/spans.ts';
import {
  agentActivities,
  closingActivities,
  learnerActivities,
  rolloutActivities,
  verifierActivities,
} from '../activities.ts';
import type { followEpisodes, FollowResult } from './follow-episodes.ts';
import { TAKING_OVER } from '../ports.ts';
import { parentOf } from '../control/refuse.ts';
import { searchAttributes } from '../search-attributes.ts';

/**
 * Rolls out and verifies one group. All episodes start together in one activity; those that wait for long tool calls
 * are followed by child workflows, a page of a few each, so that no history and no request grows with the group.
 */
export async function rolloutGroup(group: GroupRequest): Promise<GroupResult> {
  parentOf();
  try {
    return await rollOut(group);
  } catch (error) {
    // Whoever was to close the sessions of its episodes may be gone, or called off.
    await CancellationScope.nonCancellable(() => closingActivities.closeSessions({ group })).catch(
      (closing: unknown) => log.warn(`sessions of ${group.stage} may be left open: ${messageOf(closing)}`),
    );
    throw error;
  }
}

async function rollOut(group: GroupRequest): Promise<GroupResult> {
  const { tasks: _, retries: __, failed: ___, grows: ____, reward, rewardModel, judge, ...open } = group;
  const { advance } = group.agent ? agentActivities(group, group.agent) : rolloutActivities;
  const first = await advance({ group });
  const followed = await Promise.all(first.pages.map((page, number) => followChild(open, page, number)));
  const ended = { part: first.part, followed: followed.map(({ part }) => part) };
  const judging = rewardModel
    ? await learnerActivities.judgeEpisodes({ group: open, ...ended, rewardModel })
    : judge &&
      (await rolloutActivities.judgeOwn({
        group: open,
        ...ended,
        judge: { ...reward.judge!, ...judge },
      }));
  const result = await verifierActivities.verifyGroup({
    group: { ...open, reward },
    ...ended,
    ...(judging && { judged: judging.judged }),
  });
  const all = [first, ...followed];
  return {
    ...result,
    spans: addSpans(
      result.spans,
      [...all, ...(judging ? [judging] : [])].flatMap(({ spans }) => spans),
    ),
    incidents: addIncidents(
      result.incidents ?? [],
      all.flatMap(({ incidents }) => incidents),
    ),
  };
}

function followChild(group: OpenGroup, page: BlobRef, number: number): Promise<FollowResult> {
  const { run, stage, step } = group;
  return executeChild<typeof followEpisodes>('followEpisodes', {
    ...TAKING_OVER,
    args: [{ group, page, number }],
    workflowId: ids.page(run, stage, step, group.group, number),
    typedSearchAttributes: searchAttributes({ run, stage, step }),
  });
}
