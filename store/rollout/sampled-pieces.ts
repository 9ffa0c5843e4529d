import { z } from 'zod';
import type { SampleResult } from '../../engine/policy.ts';
import { jsonCodec } from '../codec.ts';

/** What a server has sampled with one request. It cannot be sampled again, so it is stored before anybody uses it. */
export type SampledPiece = Pick<SampleResult, 'tokens' | 'samplerLogprobs' | 'finish' | 'served'>;

export const sampledPieces = jsonCodec<SampledPiece>(
  'a sampled piece of a turn',
  z.looseObject({
    tokens: z.array(z.int().nonnegative()),
    samplerLogprobs: z.array(z.number()),
    finish: z.enum(['stop', 'length']),
    served: z.looseObject({ server: z.string(), weights: z.string() }).optional(),
  }),
);
