import { defineRewardRule, z } from '../extend.ts';

/** A rule of the reward of one's own: an episode of `best` turns or fewer has the full score, and each other turn halves it. */
export default defineRewardRule({
  name: 'few-turns',
  options: z.strictObject({
    best: z.int().min(1).describe('Turns that cost nothing.'),
  }),
  scores: (samples, { best }) =>
    samples.map(({ episode: { turns } }) => ({
      score: 0.5 ** Math.max(0, turns.length - best),
      evidence: `${turns.length} turns`,
    })),
});
