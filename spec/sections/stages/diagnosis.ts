import { z } from 'zod';
import { ACTIONS } from '../../../core/diagnosis/act.ts';
import { positive } from '../../../core/fields.ts';

const actions = (what: string) =>
  z.array(z.enum(ACTIONS)).max(ACTIONS.length).default(['note']).describe(what);

/** What a stage does about each alarm, in `core/diagnosis/act.ts`'s words. */
export const diagnosisSchema = z.strictObject({
  'missing-mask': actions('Tokens are learnt that the policy did not sample.'),
  'no-contrast': actions('The samples of nearly all tasks earn the same (σ = 0).'),
  'echo-trap': actions('Variance and entropy fall, gradients or repetition rise, before the reward falls.'),
  'entropy-collapse': actions('A tenth of the entropy is left.'),
  'kl-blow-up': actions('The policy runs away from the reference, or its updates are clipped.'),
  'reward-hacking': actions('The reward rises and success falls.'),
  'length-explosion': actions('Episodes grow, and it is no use.'),
  'tool-hallucination': actions('Calls of tools that there are not.'),
  loops: actions('Episodes repeat their calls or their words.'),
  temperatureFactor: z.number().min(1).max(2).default(1.2).describe('Of `explore`, each time.'),
  temperatureAtMost: z
    .number()
    .min(1)
    .max(4)
    .default(1.5)
    .describe("Of `explore`, all times together: so many times the spec's temperature."),
  learningRateFactor: positive(1, 'it slows down').default(0.5).describe('Of `slow-down`, each time.'),
  keepGroups: positive(1, 'that keeps all')
    .default(0.5)
    .describe('Of `filter`: part of the groups that is learnt from, those whose rewards deviate most.'),
});
