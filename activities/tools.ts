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
     * it; heartbeats are the tool's own, so a tool that hangs is found out.
     */
    async callTool({ run, call, part }: CallToolRequest): Promise<CallToolResult> {
      const start = Date.now();
      const context = Context.current();
      const group = await readPart(deps.store, part);
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
      const ref = await deps.store.putJson(observationKey(run, call.id), observation);
      return { observation: ref, spans: [{ part: 'tool', start, end: Date.now() }] };
    },
  };
}
