import { defineEnvironment, defineTool, exactMatch, formatVerifier, ToolRefusal, z } from 'gradus';
import type { Split, TaskRef } from 'gradus';

const LETTERS = 'abcdefghijklmnopqrstuvwxyz';
/** Of every five words the first three are for training, one is held out, one is for the final report. */
const PARTS: Record<Split, readonly number[]> = { train: [0, 1, 2], heldout: [3], test: [4] };

const wordsOf = (level: number): number => LETTERS.length ** level;

/** Level n has words of n letters. Other coordinates are other words, so no word is in two splits. */
function wordAt({ split, level, index }: TaskRef): string {
  const parts = PARTS[split];
  const number = 5 * Math.floor(index / parts.length) + parts[index % parts.length]!;
  // A step that shares no factor with 26 goes through all words once, and neighbours look unlike each other.
  let left = (number * 7919) % wordsOf(level);
  let word = '';
  for (let i = 0; i < level; i++) {
    word += LETTERS[left % LETTERS.length]!;
    left = Math.floor(left / LETTERS.length);
  }
  return word;
}

export const backwards = (word: string): string => word.split('').toReversed().join('');

const reverse = defineTool({
  name: 'reverse',
  description: 'Spells a word of lower-case letters backwards.',
  arguments: z.strictObject({ text: z.string().max(12).describe('The word, like lemon') }),
  placement: 'inline',
  effect: 'pure',
  cost: { seconds: 0, usd: 0 },
  run: ({ text }) => {
    // The policy's own mistake: it reads the message and can learn from it.
    if (!/^[a-z]+$/.test(text)) throw new ToolRefusal('write one word of lower-case letters, like lemon');
    return backwards(text);
  },
});

/** Words to be spelled backwards, with a tool that can do it. */
export default defineEnvironment({
  name: 'my-agent',
  levels: [3, 4],
  tools: [reverse],
  verifiers: [exactMatch(), formatVerifier()],
  task: (ref) => {
    const word = wordAt(ref);
    return { ref, prompt: `Spell ${word} backwards.`, answer: backwards(word), info: { word } };
  },
  // What an expert writes, turn by turn; the tool's real answer goes between. The warm start imitates it.
  demonstrate: ({ answer, info }) => {
    const { word } = info as { word: string };
    return {
      turns: [{ call: { name: 'reverse', arguments: { text: word } } }, { answer: answer! }],
      weight: 1,
    };
  },
  taskCount: (split, level) => PARTS[split].length * Math.floor(wordsOf(level) / 5),
});
