import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { timeoutSignal } from '../../../core/timeout-signal.ts';
import { collectGarbage } from '../../support/collect-garbage.ts';

test('a limit among other signals is held until its time is over, whatever is collected', async () => {
  const { signal } = new AbortController();
  const over = new Promise<unknown>((resolve) => {
    const both = AbortSignal.any([signal, timeoutSignal(200)]);
    both.addEventListener('abort', () => resolve((both.reason as Error).name), { once: true });
  });
  await collectGarbage();
  expect(await over).toBe('TimeoutError');
});

test('a limit keeps no process alive', () => {
  const script = "import { timeoutSignal } from './core/timeout-signal.ts'; timeoutSignal(2 ** 31 - 1);";
  execFileSync(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    timeout: 120_000,
  });
});

test('no other limit is made, but by two that hold it themselves', () => {
  const made = execFileSync('git', ['grep', '-l', 'AbortSignal[.]timeout(', '--', '*.ts', ':!test'], {
    encoding: 'utf8',
  });
  const hold = ['connection', 'fleet'].map((name) => `activities/rollout/served/${name}.ts`);
  expect(made.trim().split('\n').toSorted()).toEqual([...hold, 'core/timeout-signal.ts']);
});

test('a limit may be a part of a millisecond, or longer than Node counts', () => {
  for (const ms of [16.1 * 1000, 0.5, 1e12]) {
    const limit = timeoutSignal(ms);
    expect(limit.aborted).toBe(false);
  }
});
