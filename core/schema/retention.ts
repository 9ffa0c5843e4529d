import { z } from 'zod';
import { count } from '../fields.ts';

export const retentionSchema = z
  .strictObject({
    keepLast: count(1e6, 'that keeps all').default(3).describe('Newest checkpoints that are kept.'),
    keepBest: z.int().min(0).max(1).default(1).describe("1 keeps each stage's best."),
    keepEvery: count(1e6, '0 keeps none for its number', 0)
      .default(0)
      .describe('Keep every n-th step; 0 keeps none for its number.'),
  })
  .prefault({})
  .describe('Which checkpoints outlive the run.');

export type RetentionSpec = z.output<typeof retentionSchema>;
