import { z } from 'zod';
import { defineTool, ToolRefusal } from '../environments/contract/environment.ts';

/** Longest text that the tool takes, characters. */
const LONGEST = 12;

export const backwards = (word: string): string => word.split('').toReversed().join('');

export const reverse = defineTool({
  name: 'reverse',
  description: 'Spells a word of lower-case letters backwards.',
  // What the policy may write as arguments. A call that does not fit is answered with the reason; `run` never sees it.
  arguments: z.strictObject({ text: z.string().max(LONGEST).describe('The word, like lemon') }),
  // Milliseconds, so it runs inside the rollout. A `long` tool is a Temporal activity of its own.
  placement: 'inline',
  // May be repeated. `idempotent` tools may be repeated with the same `context.idempotencyKey`, `once` tools never.
  effect: 'pure',
  cost: { seconds: 0, usd: 0 },
  limits: { timeoutSeconds: 1 },
  run: ({ text }) => {
    // The policy's mistake: it reads the message and can learn from it. Any other error is the tool's own failure.
    if (!/^[a-z]+$/.test(text)) throw new ToolRefusal('write one word of lower-case letters, like lemon');
    return backwards(text);
  },
});
