import { z } from 'zod';
import { sessionTool } from '../../environments/contract/environment.ts';
import type { Environment } from '../../environments/contract/environment.ts';

const turn = sessionTool({
  name: 'turn',
  description: 'Turns.',
  arguments: z.strictObject({}),
  limits: { timeoutSeconds: 1 },
});

/** A session whose act() keeps its process for ever. */
export default {
  name: 'never-answers',
  levels: [1],
  tools: [turn],
  verifiers: [],
  task: (ref) => ({ ref, prompt: `Turn ${ref.index}.` }),
  taskCount: () => 50,
  sessions: {
    resume: 'replay',
    open: () => ({
      act: () => {
        for (;;);
      },
    }),
  },
  demonstrate: () => ({ turns: [{ call: { name: 'turn', arguments: {} } }, { answer: '' }], weight: 1 }),
} satisfies Environment as Environment;
