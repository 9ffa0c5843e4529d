import {
  ActivityFailure,
  ApplicationFailure,
  continueAsNew,
  isCancellation,
  TimeoutFailure,
  workflowInfo,
} from '@temporalio/workflow';
import { addIncidents } from '../../core/episode/incidents.ts';
import type { Incident } from '../../core/episode/incidents.ts';
import type { BlobRef } from '../../core/refs.ts';
import { WORKER_DIED } from '../../core/retrying.ts';
import type {
  LongCallResult,
  OpenGroup,
  ResumeResult,
  ReturnedEpisode,
  WaitingEpisode,
} from '../../core/requests/rollout.ts';
import type { Span } from '../../core/requests/span.ts';
import { addSpans } from '../../core/time/spans.ts';
import { pinnedActivities, rolloutActivities, toolActivities } from '../activities.ts';
import { parentOf } from '../control/refuse.ts';
import { damageOf } from '../control/retry-after-repair.ts';

export interface FollowRequest {
  group: OpenGroup;
  /** Episodes of the group that wait. */
  page: BlobRef;
  /** The page's number in the group. */
  number: number;
}

export interface FollowResult {
  /** The episodes as they ended. */
  part: BlobRef;
  spans: Span[];
  incidents: Incident[];
}

/** Everything that is carried over continue-as-new. */
interface FollowState {
  waiting: WaitingEpisode[];
  ended: BlobRef[];
  spans: Span[];
  incidents: Incident[];
}

/**
 * Follows a page of episodes from long call to long call until all have ended: each call is an activity of its own, and
 * then the episode goes on. What finished is never lost, and an episode waits for nobody's tool but its own. Continues
 * as new, when the server suggests it, as soon as nobody is under way.
 */
export async function followEpisodes(
  request: FollowRequest,
  from: FollowState | null = null,
): Promise<FollowResult> {
  parentOf(from);
  const { group, page, number } = request;
  const waiting = from?.waiting ?? (await waitingIn(group, page));
  const ended = from?.ended ?? [];
  let { spans, incidents } = from ?? { spans: [] as Span[], incidents: [] as Incident[] };
  /** Go on in the next execution. */
  const left: WaitingEpisode[] = [];
  let returned: ReturnedEpisode[] = [];
  let resumed: Promise<ResumeResult>;

  await Promise.all(waiting.map(follow));
  if (left.length > 0) {
    return continueAsNew<typeof followEpisodes>(request, { waiting: left, ended, spans, incidents });
  }
  const part = await rolloutActivities.gather({ group, page: number, parts: ended });
  return { part, spans, incidents };

  async function follow(first: WaitingEpisode): Promise<void> {
    for (let episode = first; ;) {
      const result = await runLongCall(episode);
      const { part, call } = await resume({ ...episode, result });
      if (call === null) return void ended.push(part);
      episode = { part, call };
      if (workflowInfo().continueAsNewSuggested) return void left.push(episode);
    }
  }

  function resume(episode: ReturnedEpisode): Promise<ResumeResult['episodes'][number]> {
    const { queue } = episode.call;
    if (queue === undefined || 'failed' in episode.result) return resumeAnywhere(episode);
    return resumeThere(episode, queue);
  }

  /** On the one worker that has the episode's session. */
  async function resumeThere(
    episode: ReturnedEpisode,
    queue: string,
  ): Promise<ResumeResult['episodes'][number]> {
    try {
      const result = await pinnedActivities(queue).resume({ group, returned: [episode] });
      note(result);
      return result.episodes[0]!;
    } catch (error) {
      if (!(error instanceof ActivityFailure && error.cause instanceof TimeoutFailure)) throw error;
      const failed = `the session of ${episode.call.id} was pinned to a worker that is gone`;
      return resumeAnywhere({ ...episode, result: { failed, boundary: 'infra' } });
    }
  }

  /** Episodes whose calls came back in one workflow task go on in one activity. */
  async function resumeAnywhere(episode: ReturnedEpisode): Promise<ResumeResult['episodes'][number]> {
    const place = returned.push(episode) - 1;
    if (place === 0) resumed = resumeTogether();
    return (await resumed).episodes[place]!;
  }

  async function resumeTogether(): Promise<ResumeResult> {
    // The others' turns are queued already: all results of a workflow task are there before any is looked at.
    await Promise.resolve();
    const together = returned;
    returned = [];
    const result = await rolloutActivities.resume({ group, returned: together });
    note(result);
    return result;
  }

  async function runLongCall({ part, call }: WaitingEpisode): Promise<LongCallResult> {
    try {
      const done = await toolActivities(call).callTool({ run: group.run, call, part });
      note(done);
      return { observation: done.observation };
    } catch (error) {
      if (isCancellation(error) || !(error instanceof ActivityFailure)) throw error;
      // Of the store and not of the tool: a person was asked, and the run ends.
      if (damageOf(error) !== null) throw error;
      const cause = error.cause?.message ?? error.message;
      incidents = addIncidents(incidents, [
        {
          environment: call.environment,
          file: call.file,
          function: `tool ${call.tool}`,
          kind: isLost(error.cause) ? 'crashed' : 'threw',
          count: 1,
          message: cause,
        },
      ]);
      const failed =
        call.once && isLost(error.cause)
          ? `${call.tool} was begun, its fate is unknown, and it must not be repeated: ${cause}`
          : `${call.tool} gave no result in up to ${call.maxAttempts} attempt(s): ${cause}`;
      return { failed, boundary: isOfInfrastructure(error.cause) ? 'infra' : 'tool' };
    }
  }

  function note(done: { spans: Span[]; incidents: Incident[] }): void {
    spans = addSpans(spans, done.spans);
    incidents = addIncidents(incidents, done.incidents);
  }
}

async function waitingIn(group: OpenGroup, page: BlobRef): Promise<WaitingEpisode[]> {
  const calls = await rolloutActivities.dueCalls({ group, page });
  return calls.map((call) => ({ part: page, call }));
}

/** Whether the worker was lost, or the tool says that what it needs is away: then the call is not to blame. */
const isOfInfrastructure = (cause: Error | undefined): boolean =>
  cause instanceof TimeoutFailure ||
  (cause instanceof ApplicationFailure && (cause.type ?? '').startsWith('gradus.infra.'));

/** Whether a call was begun and nobody can say what became of it. */
const isLost = (cause: Error | undefined): boolean =>
  cause instanceof TimeoutFailure ||
  (cause instanceof ApplicationFailure &&
    (cause.type === 'gradus.tool.host-died' || cause.type === WORKER_DIED));
