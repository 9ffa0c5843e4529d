import { expect, test } from 'vitest';
import { linesOf } from '../../../../core/json/lines.ts';
import type { Line } from '../../../../core/json/lines.ts';

async function* bytes(...parts: (string | Uint8Array)[]): AsyncGenerator<Uint8Array> {
  for (const part of parts) yield typeof part === 'string' ? new TextEncoder().encode(part) : part;
}
const read = async (longest: number, ...parts: (string | Uint8Array)[]): Promise<Line[]> => {
  const lines: Line[] = [];
  for await (const line of linesOf(bytes(...parts), 'data.jsonl', longest)) lines.push(line);
  return lines;
};

test('lines come whole, however the bytes are cut, and blank ones are left out', async () => {
  const whole = new TextEncoder().encode('eins\n\nzwölf\r\n  \nend');
  for (let cut = 0; cut <= whole.length; cut++) {
    expect(await read(100, whole.subarray(0, cut), whole.subarray(cut))).toEqual([
      { number: 1, text: 'eins' },
      { number: 3, text: 'zwölf\r' },
      { number: 5, text: 'end' },
    ]);
  }
  expect(await read(100)).toEqual([]);
});

test('a line that does not end is refused without being held', async () => {
  let given = 0;
  async function* endless(): AsyncGenerator<Uint8Array> {
    yield new TextEncoder().encode('first\n');
    for (;;) {
      given++;
      yield new Uint8Array(1000).fill(97);
    }
  }
  const reading = async (): Promise<void> => {
    for await (const _ of linesOf(endless(), 'data.jsonl', 10_000)) continue;
  };
  await expect(reading()).rejects.toThrow('data.jsonl, line 2 has more than 10000 bytes');
  expect(given).toBe(11);
});

test('what is not UTF-8 is refused with its line', async () => {
  await expect(read(100, 'good\n', new Uint8Array([0xff, 0xfe, 0x00]))).rejects.toThrow(
    'data.jsonl, line 2 is not UTF-8',
  );
});
