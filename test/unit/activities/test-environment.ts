import { z } from 'zod';
import { gradusDialect } from '../../../engine/dialect/gradus/dialect.ts';
import { defineEnvironment, defineTool } from '../../../environments/contract/environment.ts';
import type { Environment, Tool, ToolContext } from '../../../environments/contract/environment.ts';
import { exactMatch } from '../../../environments/verifiers/exact-match.ts';
import { formatVerifier } from '../../../environments/verifiers/format.ts';
import { tokenizer } from '../../support/fixture-tokenizer.ts';

export { tokenizer };

export const dialect = gradusDialect(tokenizer);

/** A tool with one text argument, `query`, which answers what `run` says. */
export function toolThat(
  run: (query: string, context: ToolContext) => unknown,
  over: Partial<Tool> = {},
): Tool {
  return defineTool({
    name: 'search',
    description: 'Looks something up.',
    arguments: z.strictObject({ query: z.string() }),
    placement: 'inline',
    effect: 'pure',
    cost: { seconds: 0, usd: 0 },
    // A tool written in JavaScript returns what it likes.
    run: ({ query }, context) => run(query, context) as string,
    ...over,
  });
}

export function environmentWith(tools: readonly Tool[], over: Partial<Environment> = {}): Environment {
  return defineEnvironment({
    name: 'library',
    levels: [1, 2],
    tools,
    verifiers: [exactMatch(), formatVerifier()],
    task: (ref) => ({ ref, prompt: `Find ${ref.index}`, answer: String(ref.index) }),
    demonstrate: (task) => ({ turns: [{ answer: task.answer ?? '' }], weight: 1 }),
    taskCount: () => 100,
    ...over,
  });
}

export function callContext(over: Partial<ToolContext> = {}): ToolContext {
  return {
    idempotencyKey: 'run/rl/1/0/0/1',
    attempt: 1,
    signal: new AbortController().signal,
    heartbeat: () => undefined,
    task: () => Promise.reject(new Error('no task was made')),
    ...over,
  };
}
