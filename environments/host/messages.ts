import type { Json } from '../../core/json.ts';
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

/** What a host says at the descriptor that its watching thread has, before the thread ends it. */
export const TOO_MUCH_MEMORY = 'memory';
