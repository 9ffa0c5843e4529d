import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Room } from '../../../../../environments/sandbox/browser/room.ts';

describe('a room for two', () => {
  const evicted: string[] = [];
  let room: Room<string>;
  beforeEach(() => {
    vi.useFakeTimers();
    evicted.length = 0;
    room = new Room({ most: 2, restMs: 1000, evict: (item) => void evicted.push(item) });
  });
  afterEach(() => void vi.useRealTimers());

  /** Whoever is let in by now. */
  async function inside(...entering: Promise<string>[]): Promise<string[]> {
    const found: string[] = [];
    for (const one of entering) void one.then((item) => found.push(item));
    await vi.advanceTimersByTimeAsync(0);
    return found;
  }
  const enter = (item: string) => room.enter(() => Promise.resolve(item));

  test('lets a third in when one has left', async () => {
    await Promise.all([enter('a'), enter('b')]);
    const third = enter('c');
    expect(await inside(third)).toEqual([]);
    room.leave('b');
    expect(await inside(third)).toEqual(['c']);
    expect(evicted).toEqual([]);
  });

  test('asks the one to leave that has rested longest, and nobody before its time', async () => {
    await Promise.all([enter('a'), enter('b')]);
    room.rest('b');
    await vi.advanceTimersByTimeAsync(500);
    room.rest('a');
    const [third, fourth] = [enter('c'), enter('d')];
    await vi.advanceTimersByTimeAsync(499);
    expect(await inside(third)).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(await inside(third, fourth)).toEqual(['c']);
    expect(evicted).toEqual(['b']);
    expect(() => room.use('b')).toThrow('had to go');
    // Used again, it has not rested.
    room.use('a');
    await vi.advanceTimersByTimeAsync(5000);
    expect(await inside(fourth)).toEqual([]);
    room.rest('a');
    await vi.advanceTimersByTimeAsync(1000);
    expect(await inside(fourth)).toEqual(['d']);
  });

  test('has room again where one could not be made', async () => {
    await enter('a');
    await expect(room.enter(() => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
    expect(await inside(enter('b'))).toEqual(['b']);
  });

  test('never holds more than two, whoever comes at once', async () => {
    let most = 0;
    let now = 0;
    const visits = Array.from({ length: 20 }, async (_, i) => {
      const item = await room.enter(() => {
        most = Math.max(most, ++now);
        return Promise.resolve(String(i));
      });
      await vi.advanceTimersByTimeAsync(10);
      now--;
      room.leave(item);
    });
    await Promise.all(visits);
    expect(most).toBe(2);
  });
});
