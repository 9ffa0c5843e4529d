import { z } from 'zod';
import { strings } from './parts.ts';

export const recipeOutput = z.strictObject({
  name: z.string(),
  paper: z.string(),
  arxiv: z.string().describe('the number of the paper there'),
  runs: strings.describe('in the order in which they are trained'),
  claims: z.array(
    z.strictObject({
      claim: z.string(),
      treatment: z.string(),
      control: z.string().nullable().describe('null: the treatment before RL'),
    }),
  ),
});
