import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, test } from 'vitest';
import { until } from '../../support/run-client.ts';

const RUN_COMMAND = JSON.stringify(new URL('../../../gateway/run-command.ts', import.meta.url).href);

test('a command ends with the process that runs it, however that ends', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
  const file = path.join(folder, 'pid');
  // It tells its number, and would go on for as long as nobody ends it.
  const script = `const { runCommand } = await import(${RUN_COMMAND});
    const argv = ['/bin/sh', '-c', 'echo $$ > "$0"; exec sleep 600', ${JSON.stringify(file)}];
    await runCommand(argv, { env: {}, cwd: '/' }, 600, new AbortController().signal);`;
  const runner = spawn(process.execPath, ['--import', 'tsx', '--input-type=module', '-e', script], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const pid = await until(
    async () => Number(await readFile(file, 'utf8').catch(() => '')) || undefined,
    120_000,
    () => 'the command was not started',
  ).finally(() => runner.kill('SIGKILL'));
  await until(
    () => Promise.resolve(isThere(pid) ? undefined : true),
    120_000,
    () => `${pid} goes on without the process that ran it`,
  );
  await rm(folder, { recursive: true, force: true });
});

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'ESRCH' });
    return false;
  }
}
