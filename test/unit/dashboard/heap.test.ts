import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { OWN_LOADER } from '../../../engine/own-module.ts';

/** Holds some forty megabytes, and lets go of many times as much that has lived for a while: the most that its heap had. */
const WORK = `
const alive = Array.from({ length: 1_000_000 }, (_, i) => ({ i }));
const read = [];
let most = 0;
for (let i = 0; i < 3000; i++) {
  read[i % 100] = Array.from({ length: 3000 }, (_, j) => ({ j }));
  most = Math.max(most, process.memoryUsage().heapUsed);
}
console.log(most / 2 ** 20, alive.length + read.length);
`;

const heap = new URL('../../../dashboard/heap.ts', import.meta.url).href;

async function mostOf(before: string): Promise<number> {
  const args = [...OWN_LOADER, '--input-type=module', '--eval', `${before}${WORK}`];
  const { stdout, stderr } = await promisify(execFile)(process.execPath, args);
  expect(stderr).toBe('');
  return Number(stdout.split(' ')[0]);
}

test('a process that keeps little garbage holds not much more than what is alive', async () => {
  const little = `import { keepLittleGarbage } from ${JSON.stringify(heap)}; keepLittleGarbage();`;
  expect(await mostOf(little)).toBeLessThan(0.75 * (await mostOf('')));
});
