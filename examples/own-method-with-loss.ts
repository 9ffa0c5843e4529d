import { defineMethod, ofSamples, passes, perSample, planOf, z } from '../extend.ts';

/** A method whose loss is one's own, too: own_loss.py, which the learner in PyTorch computes. */
export default defineMethod({
  name: 'scaled-reinforce',
  options: z.strictObject({ strength: z.number().positive().default(1), ...passes }),
  perGroup: true,
  offPolicy: false,
  readsTurns: false,
  plan: (options, sampling) => {
    const { maxCompletionTokens, ...from } = ofSamples(sampling);
    const { strength } = options;
    return planOf(options, {
      kind: 'own',
      name: 'scaled-reinforce',
      options: { strength, maxCompletionTokens },
      ...from,
    });
  },
  advantages: (groups) => perSample(groups, (reward, { mean }) => reward - mean),
});
