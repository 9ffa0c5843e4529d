import { z } from 'zod';
import { GradusError, messageOf } from '../../core/errors.ts';
import { IN_CHECKOUT } from '../../core/installation.ts';
import { isTransientAbstention } from '../../core/ladder/abstentions.ts';
import { TIERS } from '../../core/episode/outcome.ts';
import type { Environment, JsonSchema } from '../contract/environment.ts';
import { assertSchema } from './arguments.ts';
import { LimitReached } from './bounded-check.ts';
import { importDefault } from './import-default.ts';

// A module of environments, as its author wrote it: imported, and checked against the contract.

const isFunction = z.custom<unknown>((value) => typeof value === 'function', 'expected a function');

/** Timers take no more, milliseconds: a longer one would be over at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const seconds = z
  .number()
  .positive()
  .max(Math.floor(LONGEST_TIMER_MS / 1000));
const endSeconds = seconds.nullish();
const attempts = z.int().min(1).max(1000);
/** Longer output would be a message that blocks whoever reads it. */
const characters = z.int().min(1).max(1_000_000);

const isSchema = z.unknown().superRefine((value, context) => {
  if (value instanceof z.ZodType) return;
  try {
    assertSchema(value as JsonSchema);
  } catch (error) {
    if (error instanceof GradusError) throw error;
    const late = error instanceof LimitReached;
    const message = late
      ? error.message
      : `expected a zod schema, or a JSON Schema of an object (${messageOf(error)})`;
    context.addIssue({ code: 'custom', message });
  }
});

const environmentShape = z
  .object({
    name: z.string().min(1),
    levels: z.array(z.int()).min(1),
    tools: z.array(
      z
        .object({
          name: z.string().min(1),
          description: z.string(),
          arguments: isSchema,
          placement: z.enum(['inline', 'long']),
          effect: z.enum(['pure', 'idempotent', 'once']),
          limits: z
            .object({
              timeoutSeconds: seconds.optional(),
              heartbeatSeconds: seconds.optional(),
              maxAttempts: attempts.optional(),
              maxOutputCharacters: characters.optional(),
            })
            .optional(),
          run: isFunction.optional(),
        })
        .refine(({ effect, placement }) => effect !== 'once' || placement === 'long', {
          message: "a tool with effect 'once' needs placement 'long'",
          path: ['placement'],
        }),
    ),
    verifiers: z.array(
      z
        .object({
          name: z.string().min(1),
          version: z.string(),
          tier: z.enum(TIERS),
          verify: isFunction.optional(),
          cost: z.object({ seconds: z.number().min(0), usd: z.number().min(0) }).optional(),
          subject: isFunction.optional(),
          interpret: isFunction.optional(),
          faults: z
            .record(
              z.string().refine((type) => !isTransientAbstention(type), {
                error: ({ input }) =>
                  `${String(input)} says nothing of the subject, which cannot be its fault`,
              }),
              z.number().min(0).max(1),
            )
            .optional(),
          limits: z
            .object({
              timeoutSeconds: seconds.optional(),
              heartbeatSeconds: seconds.optional(),
              maxAttempts: attempts.optional(),
            })
            .optional(),
          served: z
            .discriminatedUnion('by', [
              z.object({ by: z.literal('function'), verify: isFunction }),
              z.object({ by: z.literal('pool'), pool: z.string().min(1) }),
              z.object({ by: z.literal('people') }),
            ])
            .optional(),
        })
        .refine(({ tier, verify }) => tier !== 'fast' || verify !== undefined, {
          message: 'a fast verifier needs a function',
          path: ['verify'],
        })
        .refine(({ tier, subject, served, cost }) => tier === 'fast' || (subject && served && cost), {
          message: "a verifier of a higher tier needs 'subject', 'served' and 'cost'",
          path: ['served'],
        })
        .refine(({ tier, served }) => served?.by !== 'people' || tier === 'world', {
          message: "people are of the tier 'world'",
          path: ['tier'],
        }),
    ),
    version: z.string().min(1).max(200).optional(),
    task: isFunction,
    sessions: z
      .discriminatedUnion('resume', [
        z.object({
          resume: z.literal('fold'),
          open: isFunction,
          act: isFunction,
          end: isFunction.optional(),
          endSeconds,
        }),
        z.object({ resume: z.literal('replay'), open: isFunction, endSeconds }),
        z.object({ resume: z.literal('pin'), open: isFunction, endSeconds, idleSeconds: seconds.optional() }),
        z.object({
          resume: z.literal('snapshot'),
          open: isFunction,
          restore: isFunction,
          every: z.int().min(1).optional(),
          endSeconds,
        }),
        z.object({
          resume: z.literal('reattach'),
          open: isFunction,
          attach: isFunction,
          close: isFunction,
          endSeconds,
        }),
      ])
      .optional(),
    demonstrate: isFunction.optional(),
    present: isFunction.optional(),
    taskCount: isFunction,
    prepare: isFunction.optional(),
    needs: isFunction.optional(),
  })
  .superRefine(({ tools, sessions }, context) => {
    const orphan = tools.findIndex(({ run }) => run === undefined);
    if (sessions || orphan < 0) return;
    const message = 'give it a function run(), or the environment sessions, whose act() has its calls';
    context.addIssue({ code: 'custom', path: ['tools', orphan, 'run'], message });
  });

/** The module of the built-in environments, in words. */
export const BUILT_IN = 'Gradus itself';

/** An environment and the module that it is from, as it was given. */
export interface Loaded {
  environment: Environment;
  file: string;
}

/**
 * The environments of one module. Its default export is an environment or an array of them; its path is relative to the
 * working directory. Throws GradusError('environment', 'module' | 'shape' | 'duplicate').
 */
export async function loadModule(path: string): Promise<Loaded[]> {
  const exported = await importDefault(path, {
    boundary: 'environment',
    what: 'an environment',
    contract: CONTRACT,
  });
  const all = Array.isArray(exported) ? (exported as unknown[]) : [exported];
  const loaded = all.map((one) => ({ environment: checked(one, path), file: path }));
  byName(loaded.map(({ environment, file }) => ({ name: environment.name, file })));
  return loaded;
}

/** What is given, by its name. Throws GradusError('environment', 'duplicate') where two have the same one. */
export function byName<T extends { name: string; file: string }>(all: Iterable<T>): Map<string, T> {
  const found = new Map<string, T>();
  for (const one of all) {
    const other = found.get(one.name);
    if (other !== undefined) {
      throw new GradusError(
        'environment',
        'duplicate',
        `Two environments are called ${JSON.stringify(one.name)}, in ${other.file} and in ${one.file}; rename one.`,
      );
    }
    found.set(one.name, one);
  }
  return found;
}

const CONTRACT = IN_CHECKOUT
  ? 'it is the type Environment of environments/contract/environment.ts'
  : 'it is the type Environment of "gradus"';

/** Where in an environment something is wrong; a tool or a verifier by its name, where it has one. */
function placeIn(value: unknown, at: readonly PropertyKey[]): string {
  const [kind, i, ...rest] = at;
  if ((kind === 'tools' || kind === 'verifiers') && typeof i === 'number') {
    const { name } = Object((value as Pick<Environment, typeof kind>)[kind][i]) as { name?: unknown };
    const what = `the ${kind === 'tools' ? 'tool' : 'verifier'} ${JSON.stringify(name)}`;
    if (typeof name === 'string') return rest.length === 0 ? what : `${what}: ${rest.join('.')}`;
  }
  return at.join('.') || 'it';
}

function checked(value: unknown, path: string): Environment {
  const result = environmentShape.safeParse(value);
  if (!result.success) {
    const { path: at, message } = result.error.issues[0]!;
    throw new GradusError(
      'environment',
      'shape',
      `The default export of ${path} is not an environment: ${placeIn(value, at)}: ${message} (${CONTRACT}).`,
    );
  }
  const environment = value as Environment;
  for (const kind of ['tools', 'verifiers'] as const) {
    const names = environment[kind].map(({ name }) => name);
    const twice = names.find((name, i) => names.indexOf(name) !== i);
    if (twice !== undefined) {
      throw new GradusError(
        'environment',
        'shape',
        `${environment.name} in ${path} has two ${kind} called ${JSON.stringify(twice)}; rename one.`,
      );
    }
  }
  return environment;
}
