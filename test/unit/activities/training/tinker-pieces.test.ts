import { expect, test } from 'vitest';
import { piecesOf, TOKENS } from '../../../../activities/training/tinker/trained-model.ts';

// Requests to a server of Tinker's API are bounded by sequences and by tokens, whichever is reached first.

/** Sequences of these lengths, one after the other. */
function cut(lengths: number[], most = TOKENS): number[][] {
  const offsets = [0];
  for (const length of lengths) offsets.push(offsets.at(-1)! + length);
  const sequences = [...lengths.keys()];
  const pieces = piecesOf(sequences, offsets, most);
  return pieces.map(({ from, to }) => sequences.slice(from, to));
}

test.each([
  ['nothing', [], 10, []],
  ['what fits', [5, 5], 10, [[0, 1]]],
  ['what does not', [5, 6], 10, [[0], [1]]],
  ['a sequence that is longer than a request, alone', [3, 12, 3, 4], 10, [[0], [1], [2, 3]]],
])('%s', (_, lengths, most, pieces) => {
  expect(cut(lengths, most)).toEqual(pieces);
});

test('short sequences are cut by their number, long ones by their tokens', () => {
  expect(cut(Array.from({ length: 130 }, () => 8)).map((one) => one.length)).toEqual([64, 64, 2]);
  expect(cut(Array.from({ length: 64 }, () => 32_768)).map((one) => one.length)).toEqual(
    Array.from({ length: 32 }, () => 2),
  );
});

test('a body in JSON stays within what the client of Tinker itself sends', () => {
  // The longest that a token is: an id of a vocabulary of 200,000, twice, and two float32 of 20 letters, with commas.
  const token = '199999,199999,'.length + 2 * `${Math.fround(-0.000123456789)},`.length;
  expect(TOKENS * token).toBeLessThanOrEqual(5_000_000);
});
