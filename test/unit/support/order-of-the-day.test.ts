import { expect, test } from 'vitest';
import { placeOn } from '../../order-of-the-day.ts';

const FILES = Array.from({ length: 100 }, (_, i) => `test/integration/${i}.test.ts`);
const orderOn = (day: string, files = FILES): string[] =>
  files.toSorted((one, other) => (placeOn(day, one) < placeOn(day, other) ? -1 : 1));

test('a day has one order, however the files are listed, and the next day another', () => {
  expect(orderOn('2026-11-28', FILES.toReversed())).toEqual(orderOn('2026-11-28'));
  expect(orderOn('2026-11-29')).not.toEqual(orderOn('2026-11-28'));
});

test('no file is left out for long where a third of them are begun', () => {
  const begun = new Set<string>();
  for (let day = 1; day <= 28; day++)
    for (const file of orderOn(`2026-02-${day}`).slice(0, 33)) begun.add(file);
  expect(begun.size).toBe(FILES.length);
});
