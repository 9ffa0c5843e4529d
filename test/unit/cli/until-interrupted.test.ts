import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as delay } from 'node:timers/promises';
import { pathToFileURL } from 'node:url';
import path from 'node:path';
import { expect, test } from 'vitest';
import { ROOT } from '../../support/markdown.ts';

const MODULE = pathToFileURL(path.join(ROOT, 'cli/until-interrupted.ts')).href;
const PROGRAM = `import { untilInterrupted } from '${MODULE}';
setInterval(() => undefined, 1000);
const interrupted = untilInterrupted();
console.log('waits');
await interrupted;
console.log('stops');`;

test('a press of Ctrl-C that comes twice is one, and the next press ends the process at once', async () => {
  const args = ['--import', 'tsx', '--input-type=module', '-e', PROGRAM];
  const child = spawn(process.execPath, args, { cwd: ROOT, stdio: ['ignore', 'pipe', 'inherit'] });
  const exited = once(child, 'exit') as Promise<[number | null, string | null]>;
  const lines: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    lines.push(...text.trim().split('\n'));
    if (text.includes('waits')) {
      child.kill('SIGINT');
      child.kill('SIGTERM');
    }
    // Later than what counts as the same press.
    if (text.includes('stops')) void delay(1000).then(() => child.kill('SIGINT'));
  });
  expect(await exited).toEqual([130, null]);
  expect(lines).toEqual(['waits', 'stops']);
});
