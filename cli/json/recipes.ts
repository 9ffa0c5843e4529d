import { z } from 'zod';
import { FIGURE_NAMES } from '../../recipes/figure.ts';
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
      figure: z
        .strictObject({
          name: z.enum(FIGURE_NAMES),
          direction: z
            .enum(['lower', 'higher'])
            .describe('the side of its control on which the treatment should be'),
        })
        .nullable()
        .describe('what is compared; null: success, which should be higher'),
    }),
  ),
});
