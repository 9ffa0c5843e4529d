import { z } from 'zod';
import { GradusError } from '../core/errors.ts';
import type { Extension } from '../core/extensions/extension.ts';
import { register } from '../core/extensions/registry.ts';
import { IN_CHECKOUT } from '../core/installation.ts';
import { importDefault } from '../environments/host/import-default.ts';

const CONTRACT = `what defineMethod, defineRewardRule, defineDialect or defineAgentLoop of "gradus/extend" gives`;

const isFunction = z.custom<unknown>((value) => typeof value === 'function', 'expected a function');
const common = {
  name: z.string().min(1).max(200),
  options: z.custom<unknown>(
    (value) => typeof (value as { safeParse?: unknown } | null)?.safeParse === 'function',
    'expected a zod schema, z.strictObject({}) for none',
  ),
};
const shape = z.discriminatedUnion('extends', [
  z.object({
    extends: z.literal('method'),
    ...common,
    perGroup: z.boolean(),
    offPolicy: z.boolean(),
    readsTurns: z.boolean(),
    plan: isFunction,
    advantages: isFunction,
  }),
  z.object({ extends: z.literal('reward-rule'), ...common, scores: isFunction }),
  z.object({
    extends: z.literal('dialect'),
    ...common,
    turnEnds: isFunction,
    prompt: isFunction,
    between: isFunction,
    parse: isFunction,
    write: isFunction,
    isOver: isFunction.optional(),
  }),
  z.object({ extends: z.literal('agent-loop'), ...common, episode: isFunction }),
]);

/**
 * What modules of a project bring beside environments: methods, rules of the reward, dialects and agent loops. Their code runs in this process,
 * as Gradus's own does. Each module exports one by default, or a list of them.
 * Throws GradusError('spec', 'module' | 'shape' | 'extension').
 */
export async function loadExtensions(files: readonly string[]): Promise<void> {
  if (files.length === 0) return;
  // The modules of users are TypeScript. In a checkout this process was started with it.
  if (!IN_CHECKOUT) await import('../typescript.ts');
  for (const file of files) {
    const exported = await importDefault(file, {
      boundary: 'spec',
      what: 'an extension',
      contract: CONTRACT,
    });
    for (const one of Array.isArray(exported) ? (exported as unknown[]) : [exported])
      register(checked(one, file));
  }
}

function checked(value: unknown, file: string): Extension {
  const { error } = shape.safeParse(value);
  if (!error) return value as Extension;
  const { path, message } = error.issues[0]!;
  throw new GradusError(
    'spec',
    'shape',
    `The default export of ${file} is no extension: ${path.join('.') || 'it'}: ${message} (${CONTRACT}).`,
  );
}
