import { expect, test, vi } from 'vitest';
import type * as Threads from 'node:worker_threads';
import type { WorkerOptions } from 'node:worker_threads';
import { LinuxSandbox } from '../../../../environments/sandbox/linux/linux-sandbox.ts';

/** What the next thread runs in place of its file. */
const runs = vi.hoisted(() => ({ instead: undefined as string | undefined }));
vi.mock('node:worker_threads', async (original) => {
  const threads = await original<typeof Threads>();
  class Worker extends threads.Worker {
    constructor(file: URL, options: WorkerOptions) {
      super(runs.instead ?? file, { ...options, eval: runs.instead !== undefined });
    }
  }
  return { ...threads, Worker };
});

const launched = new Error('it was launched');
class Launching extends LinuxSandbox {
  readonly name = 'bubblewrap';
  protected launch(): Promise<never> {
    return Promise.reject(launched);
  }
}

test.each([
  ['throws', 'throw new Error("no room for it")', 'no room for it'],
  ['ends', 'process.exit(3)', 'exit 3'],
])('where the thread that looks at sandboxes %s, nothing is launched', async (_, instead, why) => {
  runs.instead = instead;
  const sandbox = new Launching();
  for (const begin of [() => sandbox.run({ argv: ['true'] }), () => sandbox.start({ argv: ['true'] })]) {
    await expect(begin()).rejects.toMatchObject({
      boundary: 'infra',
      type: 'sandbox-failed',
      retryable: true,
      message: expect.stringContaining(why) as string,
    });
  }
});

test('the next sandbox has another thread', async () => {
  runs.instead = undefined;
  await expect(new Launching().run({ argv: ['true'] })).rejects.toBe(launched);
});
