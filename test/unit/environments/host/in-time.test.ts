import { availableParallelism } from 'node:os';
import { setTimeout as wait } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { calculatorEnvironment } from '../../../../environments/families/calculator/environment.ts';
import { hostedHere } from '../../../../environments/host/hosted-environment.ts';
import { inTime } from '../../../../environments/host/in-time.ts';
import { inTurn } from '../../../../environments/sandbox/in-turn.ts';

const { signal } = new AbortController();

test('work that does not wait gives what it gives or throws, and leaves no timer behind', async () => {
  const timers = vi.spyOn(globalThis, 'setInterval');
  expect(await inTime(signal, 1000, () => 5)).toBe(5);
  const thrown = inTime(signal, 1000, () => {
    throw new Error('no dictionary');
  });
  await expect(thrown).rejects.toThrow('no dictionary');
  expect(timers).not.toHaveBeenCalled();
  timers.mockRestore();
});

test('work that waits too long is out of time, whatever it makes of its signal, and sees it also afterwards', async () => {
  let limited!: { readonly signal: AbortSignal };
  const deaf = inTime(signal, 20, (given) => {
    limited = given;
    return new Promise<never>(() => undefined);
  });
  await expect(deaf).rejects.toThrow('gave no verdict in 0.02 s');
  expect(limited.signal.aborted).toBe(true);
  const work = (given: typeof limited) => wait(60_000, undefined, { signal: given.signal });
  const late = new Error('too late');
  await expect(inTime(signal, 20, work, () => late)).rejects.toBe(late);
});

test('while the process is kept from running no time goes by', async () => {
  const work = async (): Promise<string> => {
    await wait(20);
    const blockedUntil = performance.now() + 600;
    while (performance.now() < blockedUntil);
    await wait(50);
    return 'in time';
  };
  expect(await inTime(signal, 400, work)).toBe('in time');
});

test('while work waits for its turn no time goes by, and from then on it does', async () => {
  let free!: () => void;
  const freed = new Promise<void>((resolve) => (free = resolve));
  const busy = Array.from({ length: availableParallelism() }, () => inTurn(signal, () => freed));
  const inItsTurn = inTime(signal, 50, (given) => inTurn(given.signal, () => Promise.resolve('in time')));
  const hangs = inTime(signal, 50, (given) =>
    inTurn(given.signal, () => wait(60_000, undefined, { signal: given.signal })),
  );
  const early = await Promise.race([inItsTurn, hangs, wait(600, 'neither')]);
  expect(early).toBe('neither');
  free();
  await Promise.all(busy);
  expect(await inItsTurn).toBe('in time');
  await expect(hangs).rejects.toThrow('gave no verdict in 0.05 s');
});

test('work is called off with the reason, and not begun when that has been given', async () => {
  const controller = new AbortController();
  const reason = new Error('the run was cancelled');
  const working = inTime(controller.signal, null, (given) =>
    wait(60_000, undefined, { signal: given.signal }),
  );
  controller.abort(reason);
  await expect(working).rejects.toBe(reason);
  const begun = vi.fn<() => number>();
  await expect(inTime(controller.signal, null, begun)).rejects.toBe(reason);
  expect(begun).not.toHaveBeenCalled();
});

test('between candidates that a slow verifier judges without waiting others have their turn', async () => {
  const environment = hostedHere({
    ...calculatorEnvironment(),
    verifiers: [
      {
        name: 'slow',
        version: '1',
        tier: 'fast',
        cost: { seconds: 0, usd: 0 },
        verify: () => {
          const end = performance.now() + 60;
          while (performance.now() < end);
          return { kind: 'score', score: 1 };
        },
      },
    ],
  });
  const ref = { environment: 'calculator', split: 'train', level: 1, index: 0 } as const;
  const episode = { turns: [], status: { kind: 'answered', answer: '5' } as const };
  let [turns, judging] = [0, true];
  const count = (): void => {
    turns++;
    if (judging) setImmediate(count);
  };
  setImmediate(count);
  const candidates = Array.from({ length: 12 }, () => ({ ref, episode }));
  await environment.verdicts(['slow'], candidates, { signal });
  judging = false;
  expect(turns).toBeGreaterThanOrEqual(4);
});

test('work that nobody calls off may be many pieces at a time, with a limit, and without a word of Node', async () => {
  const warnings: Error[] = [];
  const warned = (warning: Error): void => void warnings.push(warning);
  process.on('warning', warned);
  const environment = calculatorEnvironment('slow');
  const slow = hostedHere({
    ...environment,
    task: async (ref) => {
      await wait(20);
      return environment.task(ref);
    },
  });
  const refs = Array.from({ length: 40 }, (_, index) => ({
    environment: 'slow',
    split: 'train' as const,
    level: 1,
    index,
  }));
  const prompts = await slow.tasks(refs, { signal });
  expect(prompts).toHaveLength(40);
  await wait(0);
  process.off('warning', warned);
  expect(warnings).toEqual([]);
  await expect(inTime(null, 20, () => new Promise<never>(() => undefined))).rejects.toThrow('no verdict');
});
