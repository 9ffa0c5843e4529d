import type { Json } from '../../core/json/json.ts';
import type { Ask } from '../ask.ts';
import type { Problem } from '../problem.ts';
import type { StoredTurn } from '../stored-turn.ts';

/** An event of a stream (server-sent events). */
export interface Frame {
  event?: string;
  data: Json;
}

/** A turn with what an answer says of it. */
export interface Told {
  turn: StoredTurn;
  ask: Ask;
  /** Tokens that the policy had read before. */
  promptTokens: number;
  textOf: (token: number) => string;
}

/** How agents ask and are answered. */
export interface Api {
  /** Throws Problem(400) for what it cannot be asked; `turnOf` finds what the agent names in place of sending it back. */
  read(body: unknown, turnOf: (id: string) => StoredTurn | undefined): Ask;
  answer(told: Told): Json;
  /** The same answer as a stream, made from the finished turn. */
  frames(told: Told): Frame[];
  /** What is sent while a turn is sampled. */
  keepAlive: string;
  problem(problem: Problem): Json;
}
