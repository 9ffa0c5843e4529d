import { z } from 'zod';
import type { Json } from '../../core/json/json.ts';
import type { HostAnswer, HostRequest, ErrorOfHost } from './asks.ts';
import { errorShape, factsShape } from './answer-shapes.ts';
import type { EnvironmentFacts } from './facts.ts';

// What a worker and its host say to each other, several messages at a time.

export type ToHost =
  /** The first message. What the host says begins with the mark, which users' code is not shown. */
  | { is: 'load'; module: HostModule; mark: string }
  /** Values of environment variables, for lanes that may have them. */
  | { is: 'variables'; values: Record<string, string> }
  | { is: 'ask'; id: number; ask: HostRequest }
  | { is: 'cancel'; id: number };

/** Whose environments a host has: those of a module of users, by its path, or Gradus's own. */
export type HostModule = string | null;

export type FromHost =
  /** What is about to be loaded or counted: said before, so that one that hangs is known. */
  | { is: 'loading'; module: string }
  | { is: 'ready'; environments: EnvironmentFacts[] }
  | { is: 'refused'; error: ErrorOfHost }
  | { is: 'answer'; id: number; answers: HostAnswer[] }
  | { is: 'heartbeat'; id: number; details?: Json }
  /** Something that nobody caught, by the ask that began it where that is known. */
  | { is: 'late-error'; id: number | null; message: string }
  /** The event loop turns. */
  | { is: 'alive' };

const fromHostShape = z.array(
  z.discriminatedUnion('is', [
    z.strictObject({ is: z.literal('loading'), module: z.string() }),
    z.strictObject({ is: z.literal('ready'), environments: z.array(factsShape) }),
    z.strictObject({ is: z.literal('refused'), error: errorShape }),
    // What is in an answer is looked at by who knows what was asked.
    z.strictObject({ is: z.literal('answer'), id: z.int(), answers: z.array(z.unknown()) }),
    z.strictObject({ is: z.literal('heartbeat'), id: z.int(), details: z.unknown().optional() }),
    z.strictObject({ is: z.literal('late-error'), id: z.int().nullable(), message: z.string() }),
    z.strictObject({ is: z.literal('alive') }),
  ]),
);

/** A message of a host whose answers nobody has looked at yet. */
export type HeardFromHost =
  Exclude<FromHost, { is: 'answer' }> | { is: 'answer'; id: number; answers: readonly unknown[] };

/**
 * What a host has said, or null for what is none of its messages: users' code shares its process, and may have changed
 * what everything there stands on.
 */
export function readFromHost(answer: unknown): HeardFromHost[] | null {
  const read = fromHostShape.safeParse(answer);
  return read.success ? (read.data as unknown as HeardFromHost[]) : null;
}

/** What a host says at the descriptor that its watching thread has, before the thread ends it. */
export const TOO_MUCH_MEMORY = 'memory';

/** What it says there before it ends itself, when users' code has changed the language: with what was changed. */
export const CHANGED = 'changed ';
