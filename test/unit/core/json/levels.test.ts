import { expect, test } from 'vitest';
import { isDeeperThan } from '../../../../core/json/levels.ts';

test('levels are of objects and arrays, and brackets in strings are none', () => {
  expect(isDeeperThan(2, '[{"a": "[[[{{{\\"[[\\\\"}, [1]]')).toBe(false);
  expect(isDeeperThan(1, '[{"a": 1}]')).toBe(true);
  expect(isDeeperThan(0, '"[\\\\"')).toBe(false);
  expect(isDeeperThan(1, `[${'[],{},'.repeat(1000)}1]`)).toBe(true);
  expect(isDeeperThan(2, `[${'[],{},'.repeat(1000)}1]`)).toBe(false);
});

test('a string of some ten megabytes is looked through', () => {
  const text = JSON.stringify([['"[\\'.repeat(10_000_000)]]);
  expect(isDeeperThan(2, text)).toBe(false);
  expect(isDeeperThan(1, text)).toBe(true);
});
