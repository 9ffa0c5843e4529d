import { sessionTool } from '../../contract/environment.ts';
import type { Tool } from '../../contract/environment.ts';

/** What a server says of a tool. */
export interface ServedTool {
  name: string;
  description: string;
  arguments: Tool['arguments'];
}

/** What the author knows of a server's tools, by name. The protocols do not say it, and Gradus does not guess. */
export interface ToolChoices {
  /** Where it is not `once`: whether a call may be made again when nobody knows what became of it. */
  effects?: Readonly<Record<string, Tool['effect']>>;
  /** Calls that take more than moments: Temporal activities of their own, kept alive by the server's signs of life. */
  long?: readonly string[];
  limits?: Tool['limits'];
}

/** Servers send a sign of life every ten seconds or so: two may get lost. */
const HEARTBEAT_SECONDS = 30;

/**
 * A server's tool as one of Gradus. `repeats`: the session comes back by its calls alone, so whatever becomes of one it can
 * be made again; else it is `once`, and therefore long, unless the author knows better.
 */
export function servedToolOf(served: ServedTool, repeats: boolean, choices: ToolChoices): Tool {
  const { name, description } = served;
  const effect = choices.effects?.[name] ?? (repeats ? 'idempotent' : 'once');
  const isLong = effect === 'once' || (choices.long ?? []).includes(name);
  return sessionTool({
    name,
    description,
    arguments: served.arguments,
    effect,
    placement: isLong ? 'long' : 'inline',
    limits: { ...(isLong && { heartbeatSeconds: HEARTBEAT_SECONDS }), ...choices.limits },
  });
}
