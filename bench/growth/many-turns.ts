import { z } from 'zod';
import { defineEnvironment, defineTool } from '../../environments/contract/environment.ts';
import { formatVerifier } from '../../environments/verifiers/format.ts';

/**
 * The same call, turn for turn, and never an answer: an episode is as long as the spec lets it be. A level is so many turns of
 * a demonstration; a policy that is shown a few learns to go on.
 */
export default defineEnvironment({
  name: 'many-turns',
  levels: [1, 4],
  tools: [
    defineTool({
      name: 'next',
      description: 'Goes on.',
      arguments: z.strictObject({}),
      placement: 'inline',
      effect: 'pure',
      cost: { seconds: 0, usd: 0 },
      run: () => 'on',
    }),
  ],
  verifiers: [formatVerifier()],
  task: (ref) => ({ ref, prompt: 'Go on.' }),
  demonstrate: ({ ref }) => ({
    turns: Array.from({ length: ref.level }, () => ({ call: { name: 'next', arguments: {} } })),
    weight: 1,
  }),
  taskCount: () => Infinity,
});
