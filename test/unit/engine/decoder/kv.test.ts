import { describe, expect, it } from 'vitest';
import { KvBlock, type KvRows } from '../../../../engine/decoder/kv-block.ts';
import { KvCache } from '../../../../engine/decoder/kv-cache.ts';

const shape = { layers: 2, heads: 3, headSize: 4 };
const rowsOf = (seed: number, length: number): KvRows => ({
  length,
  data: Float32Array.from({ length: 4 * 3 * length * 4 }, (_, i) => seed * 10_000 + i),
});

describe('a block of caches', () => {
  it('gives back what was put in, after others have left and the last has moved', () => {
    const block = new KvBlock(shape, 4, 8);
    const all = [rowsOf(1, 5), rowsOf(2, 8), rowsOf(3, 1)];
    for (const rows of all) block.insert(rows, rows.length);
    expect(all.map((_, slot) => block.extract(slot))).toEqual(all);
    block.remove(0);
    expect(block.count).toBe(2);
    expect(block.extract(0)).toEqual(all[2]);
    expect(block.extract(1)).toEqual(all[1]);
  });

  it('takes over a slot of a block of another capacity', () => {
    const small = new KvBlock(shape, 4, 8);
    for (const rows of [rowsOf(1, 5), rowsOf(2, 7)]) small.insert(rows, rows.length);
    const large = new KvBlock(shape, 2, 16);
    large.insert(rowsOf(3, 16), 16);
    const slot = large.adopt(small, 1);
    expect([large.extract(slot), small.extract(1)]).toEqual([rowsOf(2, 7), rowsOf(2, 7)]);
    expect(large.extract(0)).toEqual(rowsOf(3, 16));
  });

  it('takes the beginning of a longer cache', () => {
    const block = new KvBlock(shape, 1, 8);
    block.insert(rowsOf(1, 7), 2);
    const { data } = block.extract(0);
    expect([...data.subarray(8, 16)]).toEqual([...rowsOf(1, 7).data.subarray(28, 36)]);
  });
});

describe('the cache of idle sequences', () => {
  const entry = (length: number) => ({ rows: rowsOf(0, length), prefix: [], tokens: [], pieces: [] });
  const bytes = 4 * 3 * 4 * 4;

  it('forgets what was used longest ago when the budget is passed', () => {
    const cache = new KvCache(10 * bytes);
    cache.set('a', entry(4));
    cache.set('b', entry(4));
    cache.get('a');
    cache.set('c', entry(4));
    expect(['a', 'b', 'c'].map((key) => cache.get(key) !== undefined)).toEqual([true, false, true]);
  });

  it('counts a replaced entry once and does not keep what is larger than the budget', () => {
    const cache = new KvCache(10 * bytes);
    for (let i = 0; i < 5; i++) cache.set('a', entry(5));
    cache.set('b', entry(5));
    expect(cache.get('a')).toBeDefined();
    cache.set('large', entry(11));
    expect(['a', 'b', 'large'].map((key) => cache.get(key))).toEqual([undefined, undefined, undefined]);
  });
});
