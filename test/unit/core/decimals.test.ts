import { expect, test } from 'vitest';
import { decimals } from '../../../core/decimals.ts';

test.each([
  [-0.0004, 3, '0.000'],
  [-0.0006, 3, '-0.001'],
  [-0, 0, '0'],
  [-10, 0, '-10'],
  [0.25, 2, '0.25'],
])('%d with %i decimals has no sign of nothing', (value, digits, text) =>
  expect(decimals(value, digits)).toBe(text),
);
