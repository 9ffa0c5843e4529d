import type { z } from 'zod';
import type { Json } from '../json/json.ts';

/** A message, as OpenAI's Chat Completions has it. */
export interface LoopMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string | null;
  tool_calls?: { id: string; type: 'function'; function: { name: string; arguments: string } }[];
  tool_call_id?: string;
}

/** A tool, as a prompt describes it; `parameters` is a JSON Schema. */
export interface LoopTool {
  name: string;
  description: string;
  parameters: { [key: string]: Json };
}

export interface LoopContext<Options> {
  /** What the environment asks for. */
  task: string;
  options: Options;
  /**
   * A turn of the policy behind these messages. A loop that goes on sends back all of them, with the turn as it was given.
   * Throws where a limit of the spec is reached: let it through, and the episode is `truncated`.
   */
  readonly turn: (messages: readonly LoopMessage[], tools?: readonly LoopTool[]) => Promise<LoopMessage>;
  /** Those of the environment that it may call, where the spec has `agent.environmentTools`; else none. */
  readonly tools: readonly LoopTool[];
  /**
   * Calls one of them, once however often the episode is started over; gives what the policy would read. Throws where no call is
   * made, as after the episode's last one.
   */
  readonly call: (name: string, given: { [key: string]: Json }) => Promise<string>;
  /** Aborted when the episode's time is over. */
  signal: AbortSignal;
}

/**
 * A way of a project to make an episode out of turns, in the process of rollout workers. A spec names it in `agent`: `{"own":
 * {"name": …, "options": {…}}}`. Where it asks the same in the same order, a kill costs none of its turns.
 */
export interface OwnAgentLoop<Options extends z.ZodObject = z.ZodObject> {
  readonly extends: 'agent-loop';
  readonly name: string;
  readonly options: Options;
  /** The answer; null where there is none. What it throws fails the episode, which is never a reward of 0. */
  episode(context: LoopContext<z.output<Options>>): Promise<string | null>;
}

/** The default export of a module that brings an agent loop. */
export const defineAgentLoop = <Options extends z.ZodObject>(
  loop: Omit<OwnAgentLoop<Options>, 'extends'>,
): OwnAgentLoop<Options> => ({ ...loop, extends: 'agent-loop' });
