import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { expect, test, vi } from 'vitest';

const SPAWN_SERVER = pathToFileURL(path.join(import.meta.dirname, '../../support/spawn-server.ts')).href;

test('a server of the tests ends with who started it, also where that is killed', async () => {
  const parent = spawn(
    process.execPath,
    [
      '--import',
      'tsx',
      '--input-type',
      'module',
      '--eval',
      `import { spawnServer } from '${SPAWN_SERVER}';
       const server = spawnServer('--eval', ['setInterval(() => {}, 1000); console.log("up")']);
       server.stdout.once('data', () => console.log(server.pid));`,
    ],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = (await once(createInterface(parent.stdout), 'line')) as [string];
  const server = Number(line);
  expect(() => process.kill(server, 0)).not.toThrow();
  parent.kill('SIGKILL');
  await vi.waitFor(() => expect(() => process.kill(server, 0)).toThrow('ESRCH'), 20_000);
});
