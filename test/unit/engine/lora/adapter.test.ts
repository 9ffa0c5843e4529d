import { describe, expect, it } from 'vitest';
import { adaptedModules, adapterName, loraScale } from '../../../../engine/lora/adapter-shapes.ts';
import { initialAdapter } from '../../../../engine/lora/initial-adapter.ts';
import { mergeAdapter } from '../../../../engine/lora/merge-adapter.ts';
import { bytes, lively, TINY } from '../../../support/engine/tiny.ts';

const lora = { rank: 4, alpha: 8, rsLora: false, targetModules: ['q_proj', 'down_proj'] };

describe('a fresh adapter', () => {
  it('is uniform in A within 1/√in, zero in B, and a function of the seed', () => {
    const adapter = initialAdapter(TINY, lora, 1);
    const modules = adaptedModules(TINY, lora);
    expect(modules.length).toBe(4);
    for (const { module, in: inputs } of modules) {
      const a = adapter.get(adapterName(module, 'A'))!.data;
      const bound = 1 / Math.sqrt(inputs);
      expect(Math.max(...a.map(Math.abs))).toBeLessThanOrEqual(bound);
      expect(Math.max(...a)).toBeGreaterThan(0.8 * bound);
      expect(Math.min(...a)).toBeLessThan(-0.8 * bound);
      expect(adapter.get(adapterName(module, 'B'))!.data.every((value) => value === 0)).toBe(true);
    }
    expect(bytes(initialAdapter(TINY, lora, 1)).equals(bytes(adapter))).toBe(true);
    expect(bytes(initialAdapter(TINY, lora, 2)).equals(bytes(adapter))).toBe(false);
  });

  it('leaves its base as it is, to the bit', () => {
    const base = lively(TINY, 1);
    const merged = mergeAdapter(TINY, base, { lora, weights: initialAdapter(TINY, lora, 1) });
    expect(bytes(merged).equals(bytes(base))).toBe(true);
  });
});

it('counts for α / rank, or α / √rank when rank-stabilized', () => {
  expect(loraScale(lora)).toBe(2);
  expect(loraScale({ ...lora, rsLora: true })).toBe(4);
});

it('is merged by the sums of one row of A after the other, to the bit, whatever the rank', () => {
  for (const rank of [3, 4, 6, 9]) {
    const spec = { ...lora, rank };
    const base = lively(TINY, 1);
    const weights = initialAdapter(TINY, spec, 2);
    let at = 0;
    for (const { data } of weights.values()) data.forEach((value, i) => (data[i] = value || Math.sin(++at)));
    const expected = new Map(base);
    for (const { module, out, in: inputs } of adaptedModules(TINY, spec)) {
      const { shape, data } = base.get(`${module}.weight`)!;
      const a = weights.get(adapterName(module, 'A'))!.data;
      const b = weights.get(adapterName(module, 'B'))!.data;
      const sums = data.map((one, at) => {
        const [o, i] = [Math.floor(at / inputs), at % inputs];
        let sum = 0;
        for (let r = 0; r < rank; r++) sum += b[o * rank + r]! * a[r * inputs + i]!;
        return one + loraScale(spec) * sum;
      });
      expect(sums.length).toBe(out * inputs);
      expected.set(`${module}.weight`, { shape, data: sums });
    }
    const merged = mergeAdapter(TINY, base, { lora: spec, weights });
    expect(bytes(merged).equals(bytes(expected))).toBe(true);
  }
});
