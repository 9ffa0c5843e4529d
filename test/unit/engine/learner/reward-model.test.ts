import { describe, expect, test } from 'vitest';
import { normal, randomKey } from '../../../../core/random.ts';
import type { CriticSettings } from '../../../../engine/learner/contract.ts';
import { rewardModelLoss } from '../../../../engine/learner/losses/reward-model.ts';
import {
  bytes,
  freshState,
  GRPO,
  inUpdates,
  randomBatch,
  settings,
  withStreams,
} from '../../../support/engine/tiny.ts';
import { learnerOfFile } from './learner-of-file.ts';

const learner = await learnerOfFile();
const { optimizer } = settings(GRPO);
const drawn = randomBatch(6);
const key = randomKey('reward model');
const sequences = drawn.offsets.length - 1;
/** The last token of each sequence alone: the state before it is what is judged. */
const atEnds = new Float32Array(drawn.tokens.length);
for (let i = 0; i < sequences; i++) atEnds[drawn.offsets[i + 1]! - 1] = 1;
const returns = atEnds.map((bit, at) => bit * (drawn.tokens[Math.max(0, at - 1)]! % 2));
const labelled = withStreams({ ...drawn, mask: atEnds }, { returns });
const paired = {
  ...labelled,
  sequences: {
    pair: Float32Array.from({ length: sequences }, (_, i) => Math.floor(i / 2)),
    label: Float32Array.from({ length: sequences }, (_, i) => (i % 2 === 0 ? 1 : -1)),
  },
};
const values = atEnds.map((bit, at) => bit * 2 * normal(key, at));
const all = Array.from({ length: sequences }, (_, i) => i);

/** Σ of a formula that is written down once more, in the form in which papers have it. */
const naive = {
  'cross-entropy': (given: Float32Array): number => {
    const ends = [...atEnds.keys()].filter((at) => atEnds[at] === 1);
    const terms = ends.map((at) => {
      const p = 1 / (1 + Math.exp(-given[at]!));
      return -(returns[at]! * Math.log(p) + (1 - returns[at]!) * Math.log(1 - p));
    });
    return terms.reduce((a, b) => a + b) / terms.length;
  },
  'bradley-terry': (given: Float32Array): number => {
    const end = (i: number): number => given[drawn.offsets[i + 1]! - 1]!;
    const terms = Array.from({ length: sequences / 2 }, (_, p) => {
      const [a, b] = [Math.exp(end(2 * p)), Math.exp(end(2 * p + 1))];
      return -Math.log(a / (a + b));
    });
    return terms.reduce((a, b) => a + b) / terms.length;
  },
};

describe.each(['cross-entropy', 'bradley-terry'] as const)('the loss of a reward model: %s', (loss) => {
  const batch = loss === 'bradley-terry' ? paired : labelled;
  const critic: CriticSettings = { clip: 0, optimizer, loss };

  test('is what the papers write, and its slopes are those of finite differences', () => {
    const said = rewardModelLoss(loss, batch, all, values);
    expect(said.loss).toBeCloseTo(naive[loss](values), 6);
    for (const at of atEnds.keys()) {
      if (atEnds[at] === 0) {
        expect(said.slopes[at]).toBe(0);
        continue;
      }
      const moved = (by: number): number => {
        const other = Float64Array.from(values) as unknown as Float32Array;
        other[at]! += by;
        return rewardModelLoss(loss, batch, all, other).loss;
      };
      expect(said.slopes[at]).toBeCloseTo((moved(1e-4) - moved(-1e-4)) / 2e-4, 5);
    }
  });

  test('is finite for logits that a probability cannot show', () => {
    const huge = atEnds.map((bit, at) => bit * (at % 2 === 0 ? 500 : -500));
    const { loss: at, slopes } = rewardModelLoss(loss, batch, all, huge);
    expect(Number.isFinite(at)).toBe(true);
    expect(slopes.every((slope) => Number.isFinite(slope))).toBe(true);
  });

  test('is learnt, to the bit the same each time, and leaves the policy alone', async () => {
    const cut = { ...batch, updates: [Int32Array.from(all)] };
    const train = async () => {
      let state = freshState();
      const losses: number[] = [];
      let accuracy: number | undefined;
      for (let step = 0; step < 40; step++) {
        const done = await learner.step(state, cut, settings(null, { critic }));
        state = done.state;
        losses.push(done.metrics.critic!.loss);
        accuracy = done.metrics.critic!.accuracy;
      }
      return { state, losses, accuracy };
    };
    const [one, other] = [await train(), await train()];
    // A head of zeros knows nothing.
    expect(one.losses[0]).toBeCloseTo(Math.LN2, 5);
    expect(one.losses.at(-1)).toBeLessThan(0.2);
    expect(one.accuracy).toBe(1);
    expect(bytes(one.state.weights).equals(bytes(freshState().weights))).toBe(true);
    expect(bytes(one.state.critic!.weights).equals(bytes(other.state.critic!.weights))).toBe(true);
  });
});

test('the last update of several is that of its own sequences', async () => {
  const cut = inUpdates(labelled, { minibatch: 3, epochs: 1 });
  const { state } = await learner.step(
    freshState(),
    cut,
    settings(null, { critic: { clip: 0, optimizer, loss: 'cross-entropy' } }),
  );
  expect(state.critic!.updates).toBe(2);
});

test('labels that mean nothing are refused', async () => {
  const step = (batch: typeof labelled, critic: CriticSettings) =>
    learner.step(freshState(), batch, settings(null, { critic }));
  const outside = withStreams(labelled, { returns: returns.map((label) => label * 2) });
  await expect(step(outside, { clip: 0, optimizer, loss: 'cross-entropy' })).rejects.toThrow(
    'labels in [0, 1]',
  );
  await expect(step(labelled, { clip: 0, optimizer, loss: 'bradley-terry' })).rejects.toThrow(
    'it lacks pair or label',
  );
  const alone = { ...paired, updates: [Int32Array.from([0, 1, 2])] };
  await expect(step(alone, { clip: 0, optimizer, loss: 'bradley-terry' })).rejects.toThrow('give 1 and −1');
  await expect(step(labelled, { clip: 0.2, optimizer, loss: 'cross-entropy' })).rejects.toThrow(
    'has no clip',
  );
});
