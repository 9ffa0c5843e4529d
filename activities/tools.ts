import { Context } from '@temporalio/activity';
import { GradusError } from '../core/errors.ts';
import type { CallToolRequest, CallToolResult } from '../core/requests.ts';
import { environmentOf } from './environment-of.ts';
import type { Environments } from './environment-of.ts';
import { observationKey } from './store/keys.ts';
import type { ObjectStore } from './store/object-store.ts';
import { attemptCall } from './tool-call.ts';
import { episodeOf, readPart } from './trajectory-parts.ts';

export interface ToolDependencies {
  store: ObjectStore;
  environments: Environments;
}

export type ToolActivities = ReturnType<typeof createTools>;

export function createTools(deps: ToolDependencies) {
  return {
    /**
     * One attempt of a long tool call. Temporal repeats it as the tool's effect allows, times it out, and cancels
     * it; while it runs heartbeats are its own, so a tool that hangs is found out.
     */
    async callTool({ run, call, part }: CallToolRequest): Promise<CallToolResult> {
      const start = Date.now();
      const context = Context.current();
      const group = await patiently(context, () => readPart(deps.store, part));
      const { status } = episodeOf(group, call);
      if (status.kind !== 'calling') throw new GradusError('tool', 'no-call', `nothing waits for ${call.id}`);
      const tool = environmentOf(deps.environments, call.environment).tools.find(
        ({ name }) => name === call.tool,
      );
      if (!tool) throw new GradusError('tool', 'unknown', `${call.environment} has no tool ${call.tool}`);
      const observation = await attemptCall(tool, status.call, {
        idempotencyKey: call.id,
        attempt: context.info.attempt,
        signal: context.cancellationSignal,
        heartbeat: (details) => context.heartbeat(details),
      });
      const key = observationKey(run, call.id);
      const ref = await patiently(context, () => deps.store.putJson(key, observation));
      return { observation: ref, spans: [{ part: 'tool', start, end: Date.now() }] };
    },
  };
}

const BEAT_MS = 500;

/**
 * Waits for an object store that is away, alive. Attempts are counted for what the tool does: an outage must neither
 * use them up, nor lose what a tool that may not run again has said.
 */
async function patiently<T>(context: Context, operation: () => Promise<T>): Promise<T> {
  const since = Date.now();
  let reason = '';
  const beat = (): void =>
    context.heartbeat({ waitsForStoreSeconds: Math.floor((Date.now() - since) / 1000), reason });
  const timer = setInterval(beat, BEAT_MS);
  try {
    for (;;) {
      try {
        return await operation();
      } catch (error) {
        if (!(error instanceof GradusError && error.retryable)) throw error;
        reason = error.message;
        await context.sleep(BEAT_MS);
      }
    }
  } finally {
    clearInterval(timer);
  }
}
