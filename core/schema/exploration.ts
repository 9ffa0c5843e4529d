import { z } from 'zod';
import { count, fraction } from '../fields.ts';
import { temperature } from './sampling.ts';

/** How a stage samples otherwise than `sampling` says. */
export const explorationSchema = z
  .strictObject({
    temperature: z
      .strictObject({
        from: temperature.describe('Of the first step.'),
        to: temperature.describe('Of the last step of the line, and of all after it.'),
        steps: count(1e6, 'no stage has more steps').describe('Steps after which it is `to`.'),
      })
      .optional()
      .describe(
        "In place of sampling.temperature: a straight line over the stage's steps, in 20 levels. The loss has the temperature of the step.",
      ),
    toolChoice: fraction
      .optional()
      .describe(
        'Probability that the first turn of an episode begins with a call of a tool drawn at random, each as likely. The policy writes the arguments; tokens that it did not sample are not trained.',
      ),
  })
  .optional()
  .describe('How the stage samples differently from `sampling`.');
