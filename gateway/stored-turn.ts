import { z } from 'zod';
import type { ChatMessage, ToolDescription } from '../engine/dialect/contract.ts';
import type { ServedBy } from '../engine/policy.ts';
import { jsonCodec } from '../store/codec.ts';

/** A turn of an agent's episode, as it is stored before it is answered. */
export interface StoredTurn {
  /** Follows from all that led to it: its parent, what was asked, and how often that had been asked before. */
  id: string;
  parent: string | null;
  /** Digest of what was asked, and how many equal requests came before this one. */
  asked: string;
  ordinal: number;
  tools: ToolDescription[];
  /** What the request has after the parent's turn; of a turn without a parent, everything. */
  messages: ChatMessage[];
  /** Tokens of `messages` in their frame, up to where the turn begins. */
  observed: number[];
  /** As they were sampled; log-probabilities in nats, as in `SampleResult`. */
  tokens: number[];
  samplerLogprobs: number[];
  kept?: number[][];
  finish: 'stop' | 'length';
  text: string;
  /** What the agent is told that the policy said. */
  answer: ChatMessage;
  /** Who sampled it, where a server did: of a turn in pieces, the last one. */
  served?: ServedBy;
  /** SHA-256 of the weights that sampled it, where they are not those that its episode began with. */
  weights?: string;
  /** When it was sampled, epoch seconds: APIs ask for it. */
  created: number;
}

const message = z.looseObject({ role: z.string(), content: z.string() });
const ids = z.array(z.int());

export const turns = jsonCodec<StoredTurn>(
  'a turn of an agent',
  z.looseObject({
    id: z.string(),
    parent: z.string().nullable(),
    asked: z.string(),
    ordinal: z.int(),
    tools: z.array(z.looseObject({ name: z.string() })),
    messages: z.array(message),
    observed: ids,
    tokens: ids,
    samplerLogprobs: z.array(z.number()),
    kept: z.array(ids).optional(),
    finish: z.enum(['stop', 'length']),
    text: z.string(),
    answer: message,
    served: z.looseObject({ server: z.string(), weights: z.string() }).optional(),
    weights: z.string().optional(),
    created: z.int(),
  }),
);

/** What an idempotency key was first used for. */
export interface KeyClaim {
  /** SHA-256 of the request's body. */
  body: string;
  asked: string;
  ordinal: number;
}

export const claims = jsonCodec<KeyClaim>(
  "an idempotency key's claim",
  z.looseObject({ body: z.string(), asked: z.string(), ordinal: z.int() }),
);

export const rewards = jsonCodec<{ reward: number }>(
  "an agent's reward",
  z.looseObject({ reward: z.number() }),
);
