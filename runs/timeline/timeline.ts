import { GradusError, isA } from '../../core/errors.ts';
import { ids } from '../../core/names.ts';
import type { BlobRef } from '../../core/refs.ts';
import { activityAttempts } from './attempts.ts';
import type { AttemptedActivity } from './attempts.ts';
import { readHistory } from '../temporal/history.ts';
import type { ExecutionHistory } from '../temporal/history.ts';
import { ANSWERS_WITHIN_MS, fromTemporal } from '../temporal/from-temporal.ts';
import type { Place } from '../episodes/place.ts';
import type { Sources } from '../sources.ts';
import { episodeIn, firstSampleIn, sameEpisode as same, sampledIn } from './sampled-in-parts.ts';
import type { EpisodeName } from './sampled-in-parts.ts';
import { fieldOf, firstValue, millisOf } from '../temporal/temporal-values.ts';

/** An activity of a rollout group or of a page of its episodes that waited for long calls. */
export interface TimelineActivity extends Omit<AttemptedActivity, 'input' | 'result'> {
  workflowId: string;
  runId: string;
  /** Whose it is; null: of all of the group. */
  episodes: EpisodeName[] | null;
  /** Of a long call: its tool, and its idempotency key. */
  tool: string | null;
  call: string | null;
  /** What it went on from, as it is kept. */
  from: BlobRef[];
  /** What the loss of its attempts left alone; null where none was lost. */
  kept: NotRepeated | null;
}

/** What had been finished, and was not done again when attempts at a later activity were lost. */
interface NotRepeated {
  /** Long calls of the same episodes, or of the one that was asked for, and what they had taken, seconds. */
  calls: number;
  callSeconds: number;
  /** Tokens that these episodes had sampled and that lie in the store; null where the store does not tell. */
  tokens: number | null;
}

/** How the episodes of a group came to be: a workflow, and those that followed its waiting episodes. */
export interface Timeline {
  workflowId: string;
  runId: string;
  /** One of its episodes, where one was asked for. */
  episode: EpisodeName | null;
  /** Episodes of the group. */
  episodes: number;
  from: number;
  /** null while it goes on. */
  to: number | null;
  /** When it was read, epoch milliseconds. */
  asOf: number;
  activities: TimelineActivity[];
  /**
   * Attempts that were lost, and the seconds in which nothing else was done for them. At least is known of one episode
   * only: of a group others may have gone on meanwhile.
   */
  lost: { attempts: number; atLeast: number | null; atMost: number };
  /** What was left out because there is too much of it, in words. */
  leftOut: string[];
}

/** Events that are read of one workflow, and of all; pages of episodes that are read. */
const MOST_EVENTS = 20_000;
const MOST_IN_ALL = 100_000;
const PAGES_AT_ONCE = 8;
/** Executions that a page of episodes has continued as. */
const MOST_EXECUTIONS = 32;
/** Hundreds of pages are read in seconds. */
const PATIENCE_MS = 15_000;

/**
 * The timeline of a group, or of one of its episodes, by its index in the group.
 * Throws GradusError('infra', 'no-history') where Temporal has none, GradusError('infra', 'temporal-unreachable'), and
 * GradusError('spec', 'no-episode').
 */
export async function readTimeline(
  sources: Sources,
  { run, stage, step, group }: Omit<Place, 'episode'>,
  episode: number | null = null,
): Promise<Timeline> {
  const { temporal } = sources;
  return fromTemporal(
    temporal,
    PATIENCE_MS,
    () => read(sources, ids.group(run, stage, step, group), episode),
    { answersWithinMs: ANSWERS_WITHIN_MS },
  );
}

async function read(
  { temporal, store }: Sources,
  workflowId: string,
  episode: number | null,
): Promise<Timeline> {
  const group = await readHistory(temporal, { workflowId }, MOST_EVENTS);
  if (group === null) {
    throw new GradusError(
      'infra',
      'no-history',
      `Temporal has no history of ${workflowId}: it forgets workflows some time after their end (the namespace's retention), and has none of groups that were put together of others'. The episodes themselves are in the store.`,
    );
  }
  const [leftOut, histories] = [[] as string[], [group]];
  if (!group.whole) leftOut.push(`events of ${workflowId} after the first ${MOST_EVENTS}`);
  const wanted = episode === null ? null : await nameOf({ store }, group, episode);
  const pages = pagesOf(group);
  let read = group.events.length;
  let at = 0;
  for (; at < pages.length && read < MOST_IN_ALL; at += PAGES_AT_ONCE) {
    const some = await Promise.all(
      pages.slice(at, at + PAGES_AT_ONCE).map((page) => chainOf(temporal, page, leftOut)),
    );
    // Each waiting episode is in one page.
    const found = wanted && some.find((chain) => chain.some((one) => has(one, wanted)));
    const taken = found ? [found] : wanted ? [] : some;
    histories.push(...taken.flat());
    read += some.flat().reduce((sum, { events }) => sum + events.length, 0);
    if (found) break;
  }
  if (at < pages.length && read >= MOST_IN_ALL) {
    leftOut.push(`${pages.length - Math.min(pages.length, at)} of ${pages.length} pages of episodes`);
  }
  const timeline = timelineOf(histories, { episode: wanted, leftOut, now: Date.now() });
  const losses = timeline.activities.filter(({ kept }) => kept !== null);
  await Promise.all(
    losses.map(async ({ from, episodes, kept }) => {
      kept!.tokens = await sampledIn(store, from, wanted ? [wanted] : episodes).catch(untold);
    }),
  );
  return timeline;
}

/** The store is away, or has the parts no longer: the rest of the timeline stands. */
function untold(error: unknown): null {
  if (isA(error, GradusError)) return null;
  throw error;
}

/**
 * What histories say of the workflow of a group, which comes first, and of the pages of its episodes. `episode`: only
 * what concerns this one.
 */
export function timelineOf(
  histories: readonly ExecutionHistory[],
  { episode, leftOut, now }: { episode: EpisodeName | null; leftOut: string[]; now: number },
): Timeline {
  const [group] = histories;
  const all = histories.flatMap((history) =>
    activityAttempts(history.events, history.pending, now).map((activity) => described(history, activity)),
  );
  const concerns = ({ episodes }: TimelineActivity): boolean =>
    episode === null || episodes === null || episodes.some((one) => same(one, episode));
  const activities = all.filter(concerns).toSorted((a, b) => a.scheduled - b.scheduled);
  for (const activity of activities) {
    if (activity.lost) activity.kept = notRepeatedBefore(activity, all, episode);
  }
  const events = group!.events;
  return {
    workflowId: group!.workflowId,
    runId: group!.runId,
    episode,
    episodes: episodesIn(requestOf(group!)),
    from: millisOf(events[0]?.eventTime) ?? now,
    to: group!.running ? null : (millisOf(events.at(-1)?.eventTime) ?? null),
    asOf: now,
    activities,
    lost: { ...lostTime(activities), ...(episode === null && { atLeast: null }) },
    leftOut,
  };
}

/** Losses that overlap have cost the time but once. */
function lostTime(activities: readonly TimelineActivity[]): Timeline['lost'] & { atLeast: number } {
  const losses = activities.flatMap(({ lost }) => lost ?? []).toSorted((a, b) => a.from - b.from);
  let [attempts, atLeast, atMost, end] = [0, 0, 0, -Infinity];
  let longest = 0;
  for (const { from, seconds, attempts: of } of losses) {
    attempts += of;
    const until = from + seconds.atMost * 1000;
    if (from > end) {
      atLeast += longest;
      longest = 0;
    }
    longest = Math.max(longest, seconds.atLeast);
    atMost += Math.max(0, until - Math.max(from, end)) / 1000;
    end = Math.max(end, until);
  }
  return { attempts, atLeast: atLeast + longest, atMost };
}

/** Long calls of the activity's episodes, or of this one of them, that were done when it was asked for. */
function notRepeatedBefore(
  activity: TimelineActivity,
  all: readonly TimelineActivity[],
  episode: EpisodeName | null,
): NotRepeated {
  const episodes = episode ? [episode] : activity.episodes;
  const calls = all.filter(
    (one) =>
      one.tool !== null &&
      one.state === 'done' &&
      one.ended! <= activity.scheduled &&
      (episodes === null || one.episodes!.some((other) => episodes.some((mine) => same(mine, other)))),
  );
  const seconds = calls.reduce((sum, { started, ended }) => sum + (ended! - started!) / 1000, 0);
  return { calls: calls.length, callSeconds: seconds, tokens: null };
}

function described(
  { workflowId, runId }: ExecutionHistory,
  { input, result, ...activity }: AttemptedActivity,
): TimelineActivity {
  const call = fieldOf(input, 'call');
  const returned = listOf(fieldOf(input, 'returned'));
  const common = { ...activity, workflowId, runId, tool: null, call: null, kept: null };
  switch (activity.name) {
    case 'callTool':
      return {
        ...common,
        episodes: [episodeIn(call)].filter((one) => one !== null),
        tool: stringOf(fieldOf(call, 'tool')) ?? 'a tool',
        call: stringOf(fieldOf(call, 'id')),
        from: refsOf([fieldOf(input, 'part')]),
      };
    case 'resume':
      return {
        ...common,
        episodes: returned.flatMap((one) => episodeIn(fieldOf(one, 'call')) ?? []),
        from: refsOf(returned.map((one) => fieldOf(one, 'part'))),
      };
    case 'dueCalls':
      return {
        ...common,
        episodes: activity.state === 'done' ? listOf(result).flatMap((one) => episodeIn(one) ?? []) : null,
        from: refsOf([fieldOf(input, 'page')]),
      };
    case 'gather':
      return { ...common, episodes: null, from: refsOf(listOf(fieldOf(input, 'parts'))) };
    default:
      return {
        ...common,
        episodes: null,
        from: refsOf([fieldOf(input, 'part'), ...listOf(fieldOf(input, 'followed'))]),
      };
  }
}

const listOf = (value: unknown): unknown[] => (Array.isArray(value) ? (value as unknown[]) : []);
const stringOf = (value: unknown): string | null => (typeof value === 'string' ? value : null);

/** Each once. */
function refsOf(values: readonly unknown[]): BlobRef[] {
  const refs = values.flatMap((value): BlobRef[] => {
    const [key, sha256, bytes] = ['key', 'sha256', 'bytes'].map((name) => fieldOf(value, name));
    const isRef = typeof key === 'string' && typeof sha256 === 'string' && typeof bytes === 'number';
    return isRef ? [{ key, sha256, bytes }] : [];
  });
  return [...new Map(refs.map((ref) => [ref.key, ref])).values()];
}

/** What the group's workflow was asked. */
const requestOf = ({ events }: ExecutionHistory): unknown =>
  firstValue(events[0]?.workflowExecutionStartedEventAttributes?.input);

function episodesIn(request: unknown): number {
  const samples = fieldOf(request, 'samples');
  return listOf(fieldOf(request, 'tasks')).length * (typeof samples === 'number' ? samples : 0);
}

/** The pages of episodes that a group has waited for, in the order in which they were begun. */
const pagesOf = ({ events }: ExecutionHistory): { workflowId: string; runId: string }[] =>
  events.flatMap((event) => {
    const { workflowId, runId } = event.childWorkflowExecutionStartedEventAttributes?.workflowExecution ?? {};
    return workflowId && runId ? [{ workflowId, runId }] : [];
  });

/** A page with all that it has continued as. */
async function chainOf(
  temporal: Sources['temporal'],
  page: { workflowId: string; runId: string },
  leftOut: string[],
): Promise<ExecutionHistory[]> {
  const chain: ExecutionHistory[] = [];
  for (let runId: string | null | undefined = page.runId; runId;) {
    if (chain.length === MOST_EXECUTIONS) {
      leftOut.push(`what ${page.workflowId} did after its first ${MOST_EXECUTIONS} executions`);
      break;
    }
    const history: ExecutionHistory | null = await readHistory(
      temporal,
      { workflowId: page.workflowId, runId },
      MOST_EVENTS,
    );
    if (history === null) {
      leftOut.push(`an execution of ${page.workflowId}, which Temporal has forgotten`);
      break;
    }
    if (!history.whole) leftOut.push(`events of ${page.workflowId} after the first ${MOST_EVENTS}`);
    chain.push(history);
    runId = history.events.at(-1)?.workflowExecutionContinuedAsNewEventAttributes?.newExecutionRunId;
  }
  return chain;
}

const has = (history: ExecutionHistory, wanted: EpisodeName): boolean =>
  activityAttempts(history.events, history.pending, 0).some((activity) =>
    (described(history, activity).episodes ?? []).some((one) => same(one, wanted)),
  );

/** Which task and sample the episode of this index is. */
async function nameOf(
  { store }: Pick<Sources, 'store'>,
  group: ExecutionHistory,
  index: number,
): Promise<EpisodeName> {
  const request = requestOf(group);
  const count = episodesIn(request);
  if (!Number.isSafeInteger(index) || index < 0 || index >= count) {
    throw new GradusError(
      'spec',
      'no-episode',
      `${group.workflowId} has ${count} episodes: give a number from 0 to ${count - 1}`,
    );
  }
  const samples = fieldOf(request, 'samples') as number;
  const grown = fieldOf(request, 'grows') === undefined ? undefined : startOf(group);
  const first = grown ? await firstSampleIn(store, grown) : 0;
  return { task: Math.floor(index / samples), sample: first + (index % samples) };
}

/** All episodes of the group, as its first activity left them. */
function startOf({ events, pending }: ExecutionHistory): BlobRef | undefined {
  const advance = activityAttempts(events, pending, 0).find(({ name }) => name === 'advance');
  return refsOf([fieldOf(advance?.result, 'part')])[0];
}
