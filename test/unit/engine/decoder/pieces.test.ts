import { expect, test } from 'vitest';
import { RandomStream } from '../../../../core/random.ts';
import { piecesOf } from '../../../../engine/decoder/pieces.ts';

const masked = (...runs: [bit: number, count: number][]) =>
  runs.flatMap(([bit, count]) => Array.from({ length: count }, () => bit));
const ones = (count: number) => Array.from({ length: count }, () => 1);

test('without a mask, and where little is observed, every token is a piece', () => {
  expect(piecesOf(40, undefined)).toEqual(ones(40));
  expect(piecesOf(24, masked([1, 10], [0, 14]))).toEqual(ones(24));
});

test('the last token of a turn begins the run of the observation behind it', () => {
  expect(piecesOf(30, masked([1, 10], [0, 15], [1, 5]))).toEqual([...ones(9), 16, ...ones(5)]);
  expect(piecesOf(80, masked([0, 70], [1, 10]))).toEqual([64, ...ones(16)]);
  expect(piecesOf(80, masked([0, 80]))).toEqual([64, 16]);
});

test('what has been fed is a beginning of what will be, when a turn goes on or an observation comes', () => {
  const random = new RandomStream('pieces');
  const mask: number[] = [];
  let before: number[] = [];
  for (let turn = 0; turn < 200; turn++) {
    mask.push(...masked([1, random.int(1, 5)]));
    // The last token of a turn is not fed before it is known what follows.
    const fed = piecesOf(mask.length - 1, mask.slice(0, -1));
    expect(fed.slice(0, before.length)).toEqual(before);
    before = fed;
    mask.push(...masked([0, random.int(0, 90)]));
  }
});
