import { z } from 'zod';
import { BOUNDARIES } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import type { Answer, Ask, ErrorOfHost } from './asks.ts';
import type { EnvironmentFacts } from './facts.ts';

// What a worker and its host say to each other, several messages at a time.

export type ToHost =
  | { is: 'load'; modules: readonly string[] }
  /** Values of environment variables, for lanes that may have them. */
  | { is: 'variables'; values: Record<string, string> }
  | { is: 'ask'; id: number; ask: Ask }
  | { is: 'cancel'; id: number };

export type FromHost =
  /** A module is about to be loaded: said before, so that one that hangs is known. */
  | { is: 'loading'; module: string }
  | { is: 'ready'; environments: EnvironmentFacts[] }
  | { is: 'refused'; error: ErrorOfHost }
  | { is: 'answer'; id: number; answers: Answer[] }
  | { is: 'heartbeat'; id: number; details?: Json }
  /** Something that nobody caught, by the ask that began it where that is known. */
  | { is: 'late-error'; id: number | null; message: string }
  /** The event loop turns. */
  | { is: 'alive' };

const error = z.object({
  boundary: z.enum(BOUNDARIES),
  type: z.string(),
  message: z.string(),
  retryable: z.boolean(),
});
const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null;

const fromHostShape = z.array(
  z.discriminatedUnion('is', [
    z.object({ is: z.literal('loading'), module: z.string() }),
    z.object({ is: z.literal('ready'), environments: z.array(z.looseObject({ name: z.string() })) }),
    z.object({ is: z.literal('refused'), error }),
    z.object({
      is: z.literal('answer'),
      id: z.int(),
      answers: z.array(
        z.custom<Answer>(
          (said) => isRecord(said) && ('ok' in said || error.safeParse(said['error']).success),
          'expected an answer',
        ),
      ),
    }),
    z.object({ is: z.literal('heartbeat'), id: z.int(), details: z.unknown().optional() }),
    z.object({ is: z.literal('late-error'), id: z.int().nullable(), message: z.string() }),
    z.object({ is: z.literal('alive') }),
  ]),
);

/**
 * What a host has said, or null for what is none of its messages: users' code shares its process, and may have changed
 * what everything there stands on.
 */
export function readFromHost(said: unknown): FromHost[] | null {
  const read = fromHostShape.safeParse(said);
  return read.success ? (read.data as unknown as FromHost[]) : null;
}

/** What a host says at the descriptor that its watching thread has, before the thread ends it. */
export const TOO_MUCH_MEMORY = 'memory';
