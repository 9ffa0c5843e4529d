import { describe, expect, test, vi } from 'vitest';
import { runFunction, type Data } from '../../../../../environments/sandbox/webassembly/function-run.ts';

const { signal } = new AbortController();
const run = (source: string, ...given: Data[]) =>
  runFunction({ source, name: 'f', calls: given.map((one) => [one]) }, signal);
const results = async (source: string, ...given: Data[]) => {
  const ran = await run(source, ...given);
  return ran.kind === 'ran' ? ran.results : expect.fail(ran.message);
};
const value = (value: Data) => ({ kind: 'value', value });

describe('a function', () => {
  test.each([
    'x => [x, "é", [true]]',
    'function f(x) { return [x, "é", [true]]; }',
    'const f = (x) => [x, "é", [true]]',
  ])('is found and called: %s', async (source) => {
    expect(await results(source, 3, 'a', [1, [2]])).toEqual([
      value([3, 'é', [true]]),
      value(['a', 'é', [true]]),
      value([[1, [2]], 'é', [true]]),
    ]);
  });

  test('that does not parse, or that is not there, is none', async () => {
    expect(await run('x => x *;', 1)).toMatchObject({
      kind: 'compile-error',
      message: expect.stringMatching(/^SyntaxError/),
    });
    expect(await run('42', 1)).toEqual({ kind: 'compile-error', message: 'there is no function f' });
    // It parses, and says otherwise when it runs.
    expect(await results('throw new SyntaxError("a")', 1)).toEqual([
      { kind: 'error', message: 'SyntaxError: a' },
    ]);
  });

  test('gives data or none, and each call has an end of its own', async () => {
    const source = `x => {
      if (x === 0) return undefined;
      if (x === 1) return { length: 1, 0: 1 };
      if (x === 2) throw new TypeError('two');
      if (x === 3) return 'x'.repeat(20_000);
      return x;
    }`;
    expect(await results(source, 0, 1, 2, 3, 4)).toEqual([
      { kind: 'no-data' },
      { kind: 'no-data' },
      { kind: 'error', message: 'TypeError: two' },
      { kind: 'no-data' },
      value(4),
    ]);
  });

  test('is not to blame for how long its thread takes to begin', async () => {
    vi.resetModules();
    const anew = await import('../../../../../environments/sandbox/webassembly/function-run.ts');
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    try {
      const ran = anew.runFunction({ source: 'x => x + 1', name: 'f', calls: [[1]] }, signal);
      vi.advanceTimersByTime(60_000);
      expect(await ran).toEqual({ kind: 'ran', results: [value(2)] });
    } finally {
      vi.useRealTimers();
    }
  });

  test('gives no other text than its own: what stands behind a NUL counts, and half a character is none', async () => {
    const source =
      'x => [x + "\\0b", "\\0", "\\ud800", x + "é🙂"][["nul", "empty", "half", "whole"].indexOf(x)]';
    expect(await results(source, 'nul', 'empty', 'half', 'whole')).toEqual([
      { kind: 'no-data' },
      { kind: 'no-data' },
      { kind: 'no-data' },
      value('wholeé🙂'),
    ]);
  });

  test('sees neither the clock nor chance, nor anything of ours', async () => {
    const seen = `[${['Date', 'process', 'require', 'fetch', 'std', 'os', 'WebAssembly', 'postMessage']
      .map((name) => `typeof ${name}`)
      .join()}].join()`;
    const source = `() => [${seen}, Math.random()]`;
    expect(await results(source, 1)).toEqual([value([Array(8).fill('undefined').join(), 0.5])]);
  });

  test('has the steps that all of its calls share, whatever the machine is doing', async () => {
    const source = 'x => { for (let i = 0; i < x; i++); return x }';
    const expected = [
      value(10_000),
      { kind: 'error', message: 'InternalError: interrupted' },
      { kind: 'error', message: 'InternalError: interrupted' },
    ];
    expect(await results(source, 10_000, 1e9, 1_000_000)).toEqual(expected);
    expect(
      await Promise.all(Array.from({ length: 6 }, () => results(source, 10_000, 1e9, 1_000_000))),
    ).toEqual(Array.from({ length: 6 }, () => expected));
  });

  test('that is stuck in one step is ended, and leaves nothing to the next one', async () => {
    const stuck = '() => Array.prototype.indexOf.call({ length: 2 ** 53 - 1 }, 1)';
    expect(await results(stuck, 1)).toEqual([{ kind: 'error', message: 'took too long' }]);
    expect(await results('x => x', 1)).toEqual([value(1)]);
  });

  test('finds nothing of the one before, and memory has a bound', async () => {
    const before = process.memoryUsage().rss;
    await results('globalThis.left = 1; Object.prototype.left = 1; x => x', 1);
    expect(await results('() => [typeof left, typeof ({}).left]', 1)).toEqual([
      value(['undefined', 'undefined']),
    ]);
    for (let i = 0; i < 10; i++) {
      const bomb = 'const held = []; x => { for (;;) held.push(new Array(1e5).fill(x)) }';
      expect(await results(bomb, 1)).toEqual([{ kind: 'error', message: 'InternalError: out of memory' }]);
    }
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * 2 ** 20);
  });
});

test('nothing is run for whoever has given up', async () => {
  const given = AbortSignal.abort(new Error('given up'));
  await expect(runFunction({ source: 'x => x', name: 'f', calls: [[1]] }, given)).rejects.toThrow('given up');
});
