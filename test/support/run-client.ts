import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection, WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { QUEUES } from '../../core/names.ts';
import type { WorkerSettings } from '../../workers/settings.ts';
import type { curriculum } from '../../workflows/curriculum/curriculum.ts';
import type { Progress } from '../../workflows/control/messages.ts';

/** Decoded it is a number, in JSON a name. */
const hasStarted = ({ state }: { state?: unknown }): boolean =>
  ['2', 'PENDING_ACTIVITY_STATE_STARTED'].includes(String(state));

/** Starts and watches runs, as a user's client would. */
export class RunClient {
  readonly client: Client;
  private readonly connection: Connection;

  private constructor(connection: Connection, namespace: string) {
    this.connection = connection;
    this.client = new Client({ connection, namespace });
  }

  static async connect(settings: WorkerSettings): Promise<RunClient> {
    const connection = await Connection.connect({ address: settings.temporalAddress });
    return new RunClient(connection, settings.namespace);
  }

  start(workflowId: string, spec: unknown): Promise<WorkflowHandle<typeof curriculum>> {
    return this.client.workflow.start<typeof curriculum>('curriculum', {
      args: [spec],
      workflowId,
      taskQueue: QUEUES.orchestrator,
    });
  }

  /** Polls until the progress of a run is as wanted. Queries that find no worker are asked again. */
  async progress(
    handle: WorkflowHandle,
    wanted: (progress: Progress) => boolean,
    timeoutMs = 240_000,
  ): Promise<Progress> {
    let last: unknown;
    return until(
      async () => {
        try {
          const progress = await handle.query<Progress>('progress');
          last = progress;
          return wanted(progress) ? progress : undefined;
        } catch (error) {
          last = error;
          return undefined;
        }
      },
      timeoutMs,
      () =>
        `the run did not get there; last seen: ${last instanceof Error ? last.message : JSON.stringify(last)}`,
    );
  }

  /** Activities of these types that are running now, in workflows whose id starts with `prefix`. */
  async running(
    prefix: string,
    ...activityTypes: readonly string[]
  ): Promise<{ workflowId: string; attempt: number }[]> {
    const found: { workflowId: string; attempt: number }[] = [];
    const query = `WorkflowId STARTS_WITH '${prefix}' AND ExecutionStatus = 'Running'`;
    for await (const { workflowId, runId } of this.client.workflow.list({ query })) {
      const { raw } = await this.client.workflow.getHandle(workflowId, runId).describe();
      for (const activity of raw.pendingActivities ?? []) {
        if (hasStarted(activity) && activityTypes.includes(activity.activityType?.name ?? '')) {
          found.push({ workflowId, attempt: activity.attempt ?? 1 });
        }
      }
    }
    return found;
  }

  /**
   * An activity of a workflow that is not done yet, by its type; or that there is none, or no such running workflow. Of several
   * it is the one with this id, or without an id one that has started.
   */
  async pending(
    workflowId: string,
    activityType: string,
    id?: string,
  ): Promise<{ id: string; started: boolean; attempt: number } | 'none' | 'closed' | 'absent'> {
    const handle = this.client.workflow.getHandle(workflowId);
    const description = await handle.describe().catch((error: unknown) => {
      if (error instanceof WorkflowNotFoundError) return undefined;
      throw error;
    });
    if (!description) return 'absent';
    if (description.status.name !== 'RUNNING') return 'closed';
    const found = (description.raw.pendingActivities ?? [])
      .filter((one) => one.activityType?.name === activityType && (id === undefined || one.activityId === id))
      .map(({ activityId, state, attempt }) => ({
        id: activityId!,
        started: hasStarted({ state }),
        attempt: attempt ?? 1,
      }));
    return found.find(({ started }) => started) ?? found[0] ?? 'none';
  }

  /** The attempt by which an activity ended, as the workflow's history has it; 0 where it has none. */
  async lastAttempt(workflowId: string, id: string): Promise<number> {
    const { events } = await this.client.workflow.getHandle(workflowId).fetchHistory();
    const scheduled = events?.find((one) => one.activityTaskScheduledEventAttributes?.activityId === id);
    const started = events?.find(
      ({ activityTaskStartedEventAttributes: attributes }) =>
        attributes && String(attributes.scheduledEventId) === String(scheduled?.eventId),
    );
    return started?.activityTaskStartedEventAttributes?.attempt ?? 0;
  }

  /** Events of a workflow's history, once neither it nor anything that it started runs. */
  settled(workflowId: string, timeoutMs = 120_000): Promise<number> {
    return until(
      async () => {
        const handle = this.client.workflow.getHandle(workflowId);
        const { raw, historyLength } = await handle.describe();
        const busy = [raw.pendingActivities, raw.pendingChildren, raw.pendingWorkflowTask].flat();
        if (busy.some((one) => one !== null && one !== undefined)) return undefined;
        // A signal on its way to another workflow is told by the history alone.
        const { events } = await handle.fetchHistory();
        const sent = events?.filter((one) => one.signalExternalWorkflowExecutionInitiatedEventAttributes);
        const arrived = events?.filter(
          (one) =>
            one.externalWorkflowExecutionSignaledEventAttributes ??
            one.signalExternalWorkflowExecutionFailedEventAttributes,
        );
        return sent?.length === arrived?.length && events?.length === historyLength
          ? historyLength
          : undefined;
      },
      timeoutMs,
      () => `${workflowId} does not come to rest`,
    );
  }

  async close(): Promise<void> {
    await this.connection.close();
  }
}

/** Polls a condition; throws with `why` when it does not come true in time. */
export async function until<T>(
  condition: () => Promise<T | undefined>,
  timeoutMs: number,
  why: () => string,
): Promise<T> {
  const deadline = Date.now() + timeoutMs;
  for (;;) {
    const value = await condition();
    if (value !== undefined) return value;
    if (Date.now() > deadline) throw new Error(why());
    await delay(20);
  }
}

/** Until a workflow has been sent a signal of that name. */
export const untilSignalled = ({ client }: RunClient, workflowId: string, signal: string): Promise<true> =>
  until(
    async () => {
      const { events } = await client.workflow.getHandle(workflowId).fetchHistory();
      const got = events!.map((event) => event.workflowExecutionSignaledEventAttributes?.signalName);
      return got.includes(signal) || undefined;
    },
    300_000,
    () => `${workflowId} is not told ${signal}`,
  );

/** Until there is a workflow of that id. */
export const untilBegun = ({ client }: RunClient, workflowId: string): Promise<true> =>
  until(
    () =>
      client.workflow
        .getHandle(workflowId)
        .describe()
        .then(
          () => true as const,
          () => undefined,
        ),
    300_000,
    () => `${workflowId} does not begin`,
  );
