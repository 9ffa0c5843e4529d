import { z } from 'zod';
import { jsonCodec } from '../codec.ts';

/** What the learner says of one fixed sequence under a checkpoint's weights: by it a server shows that it has them. */
export interface PolicyProbe {
  /** [T] */
  tokens: number[];
  /** [T − 1] log-probs of each token after the first, nats, at temperature 1. */
  logprobs: number[];
}

export const probes = jsonCodec<PolicyProbe>(
  'the probe of a policy',
  z.looseObject({ tokens: z.array(z.int().nonnegative()).min(2), logprobs: z.array(z.number()) }),
);
