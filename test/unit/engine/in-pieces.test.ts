import { describe, expect, it } from 'vitest';
import { atOnce, inTurns, ownTurn } from '../../../engine/in-pieces.ts';
import type { InPieces } from '../../../engine/in-pieces.ts';
import { LoopMeter } from '../../../workers/loop-meter.ts';

const busy = (ms: number): void => {
  const until = performance.now() + ms;
  while (performance.now() < until);
};

/** `count` pieces of `ms` each. */
function* pieces(count: number, ms: number): InPieces<number> {
  for (let i = 0; i < count; i++) {
    busy(ms);
    yield;
  }
  return count;
}

describe('work in pieces', () => {
  it('has one result, with and without breaks', async () => {
    expect(atOnce(pieces(3, 0))).toBe(3);
    expect(await inTurns(pieces(3, 0))).toBe(3);
  });

  it('keeps the event loop for a slice, also when many do it at once', async () => {
    const meter = new LoopMeter();
    await Promise.all(Array.from({ length: 20 }, () => ownTurn().then(() => inTurns(pieces(40, 1)))));
    meter.stop();
    expect(meter.longest.busyMs).toBeLessThan(60);
  });

  it('ends with the reason of its signal', async () => {
    const calledOff = new AbortController();
    setTimeout(() => calledOff.abort(new Error('nobody wants it')), 20);
    await expect(inTurns(pieces(1000, 1), calledOff.signal)).rejects.toThrow('nobody wants it');
  });

  it('shares no turn with other work', async () => {
    let turn = 0;
    let counting = setImmediate(function count() {
      turn++;
      counting = setImmediate(count);
    });
    const turns = await Promise.all([1, 2, 3].map(() => ownTurn().then(() => turn)));
    clearImmediate(counting);
    expect(new Set(turns).size).toBe(3);
  });
});
