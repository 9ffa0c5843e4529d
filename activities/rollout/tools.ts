import { Context } from '@temporalio/activity';
import { placeOfCall } from '../../core/episode/acts.ts';
import type { ToolCall } from '../../core/episode/episode.ts';
import { GradusError, messageOf } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { CallToolRequest, CallToolResult, LongCall } from '../../core/requests/rollout.ts';
import type { Called, SessionAsk } from '../../environments/host/asks.ts';
import type { HostedEnvironment, KnownTools } from '../../environments/host/hosted-environment.ts';
import { environmentOf } from '../../environments/host/environment-of.ts';
import type { Environments } from '../../environments/host/environment-of.ts';
import { startHeartbeats } from '../heartbeats.ts';
import type { Heartbeats } from '../heartbeats.ts';
import { IncidentList } from '../incident-list.ts';
import { sessionOf } from './advance-episode.ts';
import { observationKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { inAttempts } from '../../environments/host/in-attempts.ts';
import { putImages } from './put-images.ts';
import { episodeOf, observations, pages } from './trajectory-parts.ts';

export interface ToolDependencies {
  store: ObjectStore;
  environments: Environments;
}

/** The activity under way, and who gives its heartbeats besides. */
interface Alive {
  context: Context;
  heartbeats: Heartbeats | undefined;
}

export type ToolActivities = ReturnType<typeof createTools>;

export function createTools(deps: ToolDependencies, heartbeats?: Heartbeats) {
  return {
    /**
     * A long tool call: as many attempts as the tool has. What is counted is what the tool did itself: when this
     * worker is lost Temporal runs the activity again, and it goes on with the attempts that were left.
     */
    async callTool({ run, call, part }: CallToolRequest): Promise<CallToolResult> {
      const start = Date.now();
      const alive: Alive = { context: Context.current(), heartbeats };
      const key = observationKey(run, call.id);
      // A worker that was lost may have kept the answer before it could report it.
      const before = await patiently(alive, () => deps.store.head(key));
      if (before)
        return { observation: before, spans: [{ part: 'tool', start, end: Date.now() }], incidents: [] };
      const page = await patiently(alive, () => deps.store.read(part, pages));
      const { task, episode } = episodeOf(page, call);
      const { status } = episode;
      if (status.kind !== 'calling') throw new GradusError('tool', 'no-call', `nothing waits for ${call.id}`);
      const environment = environmentOf(deps.environments, call.environment);
      const incidents = new IncidentList();
      const { tools = environment.tools } = task;
      const about = {
        ref: task.ref,
        tools,
        environment,
        episodeId: placeOfCall(call.id).episode,
      };
      const asked = { call: status.call, session: sessionOf(about, episode), tools };
      const answer = await attemptCalls(alive, environment, call, asked, incidents);
      const { observation, session } = await patiently(alive, () => putImages(deps.store, run, answer));
      const called = { ...observation, ...(session && { session }) };
      const kept = await patiently(alive, () => deps.store.putIfAbsent(key, observations, called));
      return {
        observation: kept.ref,
        spans: [{ part: 'tool', start, end: Date.now() }],
        incidents: incidents.all,
      };
    },
  };
}

/** What a heartbeat tells the next attempt of the activity, and whoever looks. */
interface Beat {
  /** Attempts at the call that failed. */
  failed: number;
  reason?: string;
  said?: Json;
}

/** Pause before a tool is tried again, milliseconds, doubled each time. */
const PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 15_000;

/**
 * Throws GradusError('tool', …) when the last attempt has failed. The worker gives its sign of life by itself; a tool
 * that is silent is found out by how long it may be, in the environment's host.
 */
async function attemptCalls(
  { context, heartbeats }: Alive,
  environment: HostedEnvironment,
  { id, maxAttempts }: LongCall,
  { call, session, tools }: { call: ToolCall; session: SessionAsk; tools: KnownTools },
  incidents: IncidentList,
): Promise<Called> {
  const before = context.info.heartbeatDetails as Partial<Beat> | undefined;
  const beat: Beat = { failed: before?.failed ?? 0 };
  const asker = incidents.asker(context.cancellationSignal);
  const stop = startHeartbeats(context, heartbeats, () => beat);
  const heartbeat = (reply?: Json): void => {
    if (reply === undefined) delete beat.said;
    else beat.said = reply;
    context.heartbeat(beat);
  };
  const onFailure = (error: unknown): void => {
    beat.failed++;
    beat.reason = messageOf(error).slice(0, 300);
    context.heartbeat(beat);
  };
  try {
    return await inAttempts(
      () => {
        const attempt = context.info.attempt + beat.failed;
        const about = { ...asker, idempotencyKey: id, attempt, session, heartbeat };
        return environment.call(call, about, tools);
      },
      {
        attempts: maxAttempts - beat.failed,
        firstPauseMs: PAUSE_MS * 2 ** beat.failed,
        longestPauseMs: LONGEST_PAUSE_MS,
        signal: asker.signal,
        onFailure,
      },
    );
  } catch (error) {
    asker.signal.throwIfAborted();
    throw lastOne(error);
  } finally {
    stop();
  }
}

/** What the tool's own attempts could not mend, Temporal's cannot either. */
function lastOne(error: unknown): GradusError {
  const { boundary, type } =
    error instanceof GradusError ? error : { boundary: 'tool' as const, type: 'failed' };
  return new GradusError(boundary, type, messageOf(error), { cause: error });
}

/** Between two attempts at an object store that is away. */
const STORE_PAUSE_MS = 500;

/**
 * Waits for an object store that is away, alive. Attempts are counted for what the tool does: an outage must neither
 * use them up, nor lose what a tool that may not run again has said.
 */
async function patiently<T>({ context, heartbeats }: Alive, operation: () => Promise<T>): Promise<T> {
  const since = Date.now();
  let reason = '';
  const stop = startHeartbeats(context, heartbeats, () => ({
    waitsForStoreSeconds: Math.floor((Date.now() - since) / 1000),
    reason,
  }));
  try {
    for (;;) {
      try {
        return await operation();
      } catch (error) {
        if (!(error instanceof GradusError && error.retryable)) throw error;
        reason = error.message;
        await context.sleep(STORE_PAUSE_MS);
      }
    }
  } finally {
    stop();
  }
}
