import { defineEnvironment } from '../../environments/contract/environment.ts';
import type { FastVerifier } from '../../environments/contract/environment.ts';

// An environment for policies of random weights, which answer nothing: what they write has a score all the same, and
// samples of one task differ in it, so that there is something to learn.

/** The part of what was written that is plain ASCII, of which a random vocabulary writes some. */
const plainText: FastVerifier = {
  name: 'plain-text',
  version: '1',
  tier: 'fast',
  cost: { seconds: 0, usd: 0 },
  verify: ({ episode }) => {
    const text = episode.turns.map((turn) => turn.text).join('');
    const plain = text.replace(/[^\0-\x7f]/g, '').length;
    return { kind: 'score', score: text === '' ? 0 : plain / text.length };
  },
};

export default defineEnvironment({
  name: 'babble',
  levels: [1],
  tools: [],
  verifiers: [plainText],
  task: (ref) => ({
    ref,
    prompt: `Write about the number ${2 * ref.index + (ref.split === 'train' ? 1 : 0)}.`,
  }),
  demonstrate: () => ({ turns: [{ answer: 'a number' }], weight: 1 }),
  taskCount: () => 100_000,
});
