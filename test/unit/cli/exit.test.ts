import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';

/** A command that prints a megabyte and ends as commands do. */
const PRINTS_MUCH = `
  import { exit, exitWithReader } from './cli/exit.ts';
  import { print } from './cli/printable.ts';
  exitWithReader();
  for (let line = 0; line < 1000; line++) print('x'.repeat(1023));
  void exit(3);
`;
const start = () =>
  spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', PRINTS_MUCH], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });

test('a command ends with its code when all that it printed is read, however slow its reader is', async () => {
  const child = start();
  const ended = once(child, 'close');
  let read = 0;
  for await (const chunk of child.stdout) {
    read += (chunk as Buffer).length;
    // Takes its time over each chunk: the command is long at its end, and the pipe is full.
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  expect([read, ...(await ended)]).toEqual([1000 * 1024, 3, null]);
});

test('a reader that has seen enough ends a command without a stack trace', async () => {
  const child = start();
  let said = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(child, 'close');
  child.stdout.once('data', () => child.stdout.destroy());
  expect([...(await ended), said]).toEqual([141, null, '']);
});
