import { expect, test } from 'vitest';
import { gapByStaleness, logprobGap, ownGap } from '../../../../engine/learner/step/logprob-gap.ts';

/** Sequences that begin with a prompt of two tokens; of the others every third was inserted by a tool. */
function batchOf(...lengths: readonly number[]) {
  const offsets = [0];
  const mask: number[] = [];
  for (const length of lengths) {
    mask.push(0, 0, ...Array.from({ length }, (_, i) => (i % 3 === 2 ? 0 : 1)));
    offsets.push(mask.length);
  }
  const streams = { samplerLogprobs: new Float32Array(mask.length).fill(-1) };
  return { offsets: Int32Array.from(offsets), mask: Float32Array.from(mask), streams };
}

test('the gap is told by position and by length, over the tokens that count', () => {
  const batch = batchOf(64, 200, 3);
  // The engines are apart by 0.25 nats from position 128 on, and by 100 where nothing counts.
  const logprobs = batch.streams.samplerLogprobs.map((value, i) => {
    const second = i - batch.offsets[1]! - 2;
    const late = second >= 128 && i < batch.offsets[2]!;
    return batch.mask[i] === 0 ? 99 : late ? value + 0.25 : value;
  });
  const found = logprobGap(batch, [0, 1, 2], logprobs);
  // Of 72 positions from 128 to 199, those that are 2 more than a multiple of 3 do not count: 128, 131, … 197.
  expect(found).toEqual({
    logprobGapMax: 0.25,
    logprobGapMean: (48 * 0.25) / 179,
    logprobGapByPosition: [
      { from: 0, tokens: 43 + 43 + 2, mean: 0 },
      { from: 64, tokens: 43, mean: 0 },
      { from: 128, tokens: 48, mean: 0.25 },
    ],
    // The last token of each sequence that counts ends it: 64, 200 and 2 positions.
    logprobGapByLength: [
      { from: 0, tokens: 2, mean: 0 },
      { from: 64, tokens: 43, mean: 0 },
      { from: 128, tokens: 134, mean: (48 * 0.25) / 134 },
    ],
  });
  // What was left out is in none of the figures.
  expect(logprobGap(batch, [0, 2], logprobs)).toMatchObject({ logprobGapMax: 0, logprobGapMean: 0 });
});

test('by staleness it is told of late sequences, too, and of none whose staleness is not known', () => {
  const lengths = [64, 200, 3, 6, 6];
  const batch = batchOf(...lengths);
  // Sequence i is apart by i / 8 nats, and by 100 where nothing counts.
  const logprobs = Float32Array.from(batch.mask, (counts, i) =>
    counts === 0 ? 99 : -1 + batch.offsets.subarray(1).filter((end) => end <= i).length / 8,
  );
  const staleness = Float32Array.of(0, 2, 2, -1, 0);
  const late = Float32Array.of(0, 1, 1, 1, 0);
  const marked = { ...batch, sequences: { late, staleness } };
  // Of 64 tokens 43 count, of 200 134, of 3 two and of 6 four.
  expect(gapByStaleness(marked, [0, 1, 2, 3, 4], logprobs)).toEqual({
    logprobGapByStaleness: [
      { staleness: 0, tokens: 43 + 4, mean: (4 * 0.5) / 47 },
      { staleness: 2, tokens: 134 + 2, mean: (134 * 0.125 + 2 * 0.25) / 136 },
    ],
  });
  // What was left out is in none of the figures.
  expect(gapByStaleness(marked, [2, 3], logprobs)).toEqual({
    logprobGapByStaleness: [{ staleness: 2, tokens: 2, mean: 0.25 }],
  });
  expect(gapByStaleness(marked, [3], logprobs)).toEqual({});
  expect(gapByStaleness({ ...batch, sequences: { late } }, [0, 1], logprobs)).toEqual({});
  expect(gapByStaleness({ ...marked, streams: {} }, [0, 1], logprobs)).toEqual({});
});

test('where several weights have sampled a sequence, each of its tokens has an age, and counts for that', () => {
  const batch = batchOf(6, 3, 6);
  // What is two steps old is apart by 0.5 nats, what is one step old by 0.25, and by 100 where nothing counts.
  const ages = Float32Array.of(0, 0, 2, 2, 2, 1, 1, 1, ...Array(5).fill(0), 0, 0, 2, 2, 2, 0, 0, -1);
  const logprobs = batch.mask.map((counts, i) => (counts === 0 ? 99 : -1 + Math.max(0, ages[i]!) / 4));
  const marked = {
    ...batch,
    streams: { ...batch.streams, staleness: ages },
    sequences: { late: Float32Array.of(1, 0, 1), staleness: Float32Array.of(2, 0, 2) },
  };
  expect(gapByStaleness(marked, [0, 1, 2], logprobs)).toEqual({
    logprobGapByStaleness: [
      { staleness: 0, tokens: 2 + 2, mean: 0 },
      { staleness: 1, tokens: 2, mean: 0.25 },
      { staleness: 2, tokens: 2 + 2, mean: 0.5 },
    ],
  });
  expect(gapByStaleness(marked, [1], logprobs)).toEqual({
    logprobGapByStaleness: [{ staleness: 0, tokens: 2, mean: 0 }],
  });
  // The gap between the engines is that of age 0: also in a sequence that older weights have begun.
  const { logprobGapByPosition, ...own } = ownGap(marked, [0, 1, 2], logprobs);
  expect(own).toMatchObject({ logprobGapMax: 0, logprobGapMean: 0 });
  expect(logprobGapByPosition).toEqual([{ from: 0, tokens: 4, mean: 0 }]);
  const old = { ...marked, streams: { ...marked.streams, staleness: ages.map(() => 2) } };
  expect(ownGap(old, [0, 1, 2], logprobs)).toEqual({ logprobGapMax: null, logprobGapMean: null });
});

test('without anything sampled, or without what the sampler gave it, nothing is known', () => {
  const batch = batchOf(3);
  const nothing = { logprobGapMax: null, logprobGapMean: null };
  expect(logprobGap(batch, [], new Float32Array(5))).toEqual(nothing);
  expect(logprobGap({ ...batch, streams: {} }, [0], new Float32Array(5))).toEqual(nothing);
  expect(logprobGap({ ...batch, mask: new Float32Array(5) }, [0], new Float32Array(5))).toEqual(nothing);
});
