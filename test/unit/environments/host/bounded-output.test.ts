import { expect, test } from 'vitest';
import { BoundedOutput } from '../../../../environments/host/bounded-output.ts';

/** What comes through, with a clock that stands until it is moved. */
function output() {
  let [now, text] = [0, ''];
  const bounded = new BoundedOutput({
    whose: 'the code of x.ts',
    write: (more) => (text += Buffer.from(more).toString()),
    atOnce: 1600,
    eachSecond: 100,
    now: () => now,
  });
  return {
    print: (bytes: number) => bounded.write(Buffer.alloc(bytes, '.')),
    flush: () => bounded.flush(),
    wait: (seconds: number) => (now += 1000 * seconds),
    get text() {
      return text;
    },
    get dots() {
      return text.replaceAll(/\[[^\]]*\]/gu, '').replaceAll(/[^.]/gu, '').length;
    },
  };
}

test('what is little passes as it is', () => {
  const to = output();
  for (let i = 0; i < 100; i++) {
    to.print(100);
    to.wait(1);
  }
  expect(to.text).toBe('.'.repeat(10_000));
});

test('a flood is cut, and how much was left out is said', () => {
  const to = output();
  for (let i = 0; i < 1000; i++) to.print(64_000);
  expect(to.dots).toBe(1600);
  expect(to.text).toContain(
    '[the code of x.ts prints more than 1600 bytes at once and 100 a second: the rest is left out]',
  );
  to.flush();
  expect(to.text).toContain('[63998400 bytes of the code of x.ts were left out]');
});

test('a flood that goes on for an hour leaves what an hour may leave', () => {
  const to = output();
  for (let second = 0; second < 3600; second++) {
    to.print(1_000_000);
    to.wait(1);
  }
  expect(to.dots).toBeLessThanOrEqual(1600 + 100 * 3600);
  expect(to.text.length).toBeLessThan(3 * (1600 + 100 * 3600));
  to.wait(60);
  to.print(100);
  expect(to.text.endsWith(`were left out]\n${'.'.repeat(100)}`)).toBe(true);
});
