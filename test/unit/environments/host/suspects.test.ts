import { expect, test } from 'vitest';
import { Suspects } from '../../../../environments/host/suspects.ts';

function suspects() {
  let now = 0;
  return { them: new Suspects(() => now), wait: (ms: number) => (now += ms) };
}

test('a function over which a host died is suspected until it has gone well often', () => {
  const { them } = suspects();
  expect(them.has('library', 'tool search')).toBe(false);
  them.blame('library', 'tool search', 'hung');
  for (let i = 0; i < 31; i++) them.acquit('library', 'tool search');
  expect(them.has('library', 'tool search')).toBe(true);
  expect(them.has('library', 'tool lookup')).toBe(false);
  expect(them.has('archive', 'tool search')).toBe(false);
  them.acquit('library', 'tool search');
  expect(them.has('library', 'tool search')).toBe(false);
});

test('one that dies time and again is left alone for a while, and says so', () => {
  const { them, wait } = suspects();
  for (let i = 0; i < 5; i++) them.blame('library', 'tool search', 'hung');
  expect(them.barred('library', 'tool search')).toBeNull();
  them.blame('library', 'tool search', 'hung');
  expect(them.barred('library', 'tool search')).toMatch(/^hung.*6 times in a row.*left alone/u);
  wait(5 * 60_000);
  expect(them.barred('library', 'tool search')).toBeNull();
  them.blame('library', 'tool search', 'hung');
  expect(them.barred('library', 'tool search')).not.toBeNull();
});

test('one that works now and then is never left alone', () => {
  const { them } = suspects();
  for (let i = 0; i < 20; i++) {
    them.blame('library', 'tool search', 'hung');
    if (i % 4 === 0) them.acquit('library', 'tool search');
    expect(them.barred('library', 'tool search')).toBeNull();
  }
});

test('one that is left alone is called again as soon as what was under way goes well', () => {
  const { them } = suspects();
  for (let i = 0; i < 6; i++) them.blame('library', 'tool search', 'hung');
  them.acquit('library', 'tool search');
  expect(them.barred('library', 'tool search')).toBeNull();
});
