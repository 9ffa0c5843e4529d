import type { Split, TaskRef } from '../core/refs.ts';
import { defineEnvironment } from '../environments/contract/environment.ts';
import { exactMatch } from '../environments/verifiers/exact-match.ts';
import { formatVerifier } from '../environments/verifiers/format.ts';
import { backwards, reverse } from './tool.ts';
import { lettersInPlace } from './verifier.ts';

const ALPHABET = 'abcdefghijklmnopqrstuvwxyz';
/** Of every five words the first three are for training, one is held out, one is for the final report. */
const PARTS: Record<Split, readonly number[]> = { train: [0, 1, 2], heldout: [3], test: [4] };

const wordsOf = (level: number): number => ALPHABET.length ** level;

/** Level n has words of n letters. Other coordinates are other words, so no word is in two splits. */
function wordAt({ split, level, index }: TaskRef): string {
  const parts = PARTS[split];
  const number = 5 * Math.floor(index / parts.length) + parts[index % parts.length]!;
  // A step that shares no factor with 26 goes through all words once, and neighbours look unlike each other.
  let left = (number * 7919) % wordsOf(level);
  let word = '';
  for (let i = 0; i < level; i++) {
    word += ALPHABET[left % ALPHABET.length]!;
    left = Math.floor(left / ALPHABET.length);
  }
  return word;
}

/** Words to be spelled backwards, with a tool that can do it. */
export default defineEnvironment({
  name: 'backwards',
  levels: [3, 4, 5],
  tools: [reverse],
  verifiers: [exactMatch(), formatVerifier(), lettersInPlace],
  task: (ref) => {
    const word = wordAt(ref);
    return {
      ref,
      prompt: `Spell ${word} backwards.`,
      answer: backwards(word),
      info: { word },
    };
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
