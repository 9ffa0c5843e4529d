import { expect, test } from 'vitest';
import { readTextUpTo, readUpTo } from '../../../core/byte-parts.ts';

/** Gives parts one after the other, and keeps how many were asked for and whether it was closed. */
function streamOf(...parts: string[]) {
  const seen = { asked: 0, closed: false };
  async function* given(): AsyncGenerator<Uint8Array> {
    try {
      for (const part of parts) {
        seen.asked++;
        yield await Promise.resolve(new TextEncoder().encode(part));
      }
    } finally {
      seen.closed = true;
    }
  }
  return { stream: given(), seen };
}

test('a stream is read in one piece, up to and with the last byte of its bound', async () => {
  expect(await readUpTo(streamOf('ab', '', 'c').stream, 3)).toEqual(new Uint8Array([97, 98, 99]));
  expect(await readUpTo(streamOf().stream, 0)).toEqual(new Uint8Array(0));
  expect(await readUpTo(null, 0)).toEqual(new Uint8Array(0));
});

test('of a longer one the rest is not read, and it is closed', async () => {
  const { stream, seen } = streamOf('ab', 'cd', 'ef');
  expect(await readUpTo(stream, 3)).toBeUndefined();
  expect(seen).toEqual({ asked: 2, closed: true });
});

test('a letter that two parts share is one letter', async () => {
  const bytes = new TextEncoder().encode('ä');
  async function* halves(): AsyncGenerator<Uint8Array> {
    yield await Promise.resolve(bytes.subarray(0, 1));
    yield await Promise.resolve(bytes.subarray(1));
  }
  expect(await readTextUpTo(halves(), 2)).toBe('ä');
  expect(await readTextUpTo(halves(), 1)).toBeUndefined();
});
