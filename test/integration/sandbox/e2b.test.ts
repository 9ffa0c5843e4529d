import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { cachedBubblewrap } from '../../../environments/sandbox/bubblewrap/find.ts';
import { E2B } from '../../../environments/sandbox/e2b/e2b.ts';
import { findE2B } from '../../../environments/sandbox/e2b/find.ts';
import { executable, onPath } from '../../../environments/sandbox/linux/host.ts';
import { setprivArguments } from '../../../environments/sandbox/linux/user.ts';
import { serveE2B, type E2BServer } from '../../support/e2b/server.ts';

const bwrap = executable([...onPath('bwrap', process.env), cachedBubblewrap()]);
// The server's machines need root's rights, as E2B's have them.
const missing =
  process.getuid?.() !== 0 ? 'who is not root' : bwrap === undefined ? 'want of bubblewrap' : undefined;
const leftOut = missing === undefined ? '' : ` — NOT SHOWN HERE, for ${missing}`;
if (missing !== undefined) console.warn(`SKIPPED: tests of E2B's protocol${leftOut}`);

describe.skipIf(missing !== undefined)(`a command by E2B's protocol${leftOut}`, { timeout: 300_000 }, () => {
  let server: E2BServer;
  const sandbox = new E2B('base');
  const shell = (program: string) => ['sh', '-c', program];

  beforeAll(async () => {
    server = await serveE2B({ bwrap: bwrap! });
    vi.stubEnv('E2B_API_KEY', 'e2b_test');
    vi.stubEnv('E2B_API_URL', server.url);
    vi.stubEnv('E2B_SANDBOX_URL', server.url);
    vi.stubEnv('A_SECRET', 'of ours');
  });

  afterAll(async () => {
    vi.unstubAllEnvs();
    await server.close();
  });

  test('gets files, input and variables, and gives output and files, in a machine of its own that is gone then', async () => {
    const ran = await sandbox.run({
      argv: ['sh', '-c', 'cat; echo "$1 $GREETING" >&2; cat in/given > made; ./run; exit 7', 'sh', "it's"],
      stdin: 'typed in\n',
      env: { GREETING: 'hello' },
      files: [
        { path: 'in/given', content: 'brought' },
        { path: 'run', content: '#!/bin/sh\npwd', executable: true },
      ],
      collect: ['made', 'absent'],
    });
    expect(ran).toMatchObject({ exit: 7, signal: null, ended: 'exit', cut: false });
    expect(ran.stdout).toBe('typed in\n/work\n');
    expect(ran.stderr).toBe("it's hello\n");
    expect([...ran.files].map(([path, data]) => [path, Buffer.from(data).toString()])).toEqual([
      ['made', 'brought'],
    ]);
    expect(server.machines.size).toBe(0);
  });

  test('asks for machines without network that end by themselves', async () => {
    await sandbox.run({ argv: ['true'], limits: { wallSeconds: 20 } });
    expect(server.asked.at(-1)).toMatchObject({
      templateID: 'base',
      allow_internet_access: false,
      timeout: 80,
    });
    expect(JSON.stringify(server.asked)).not.toContain('of ours');
  });

  test('runs as nobody who can become somebody, with no variable of the machine', async () => {
    const { stdout } = await sandbox.run({
      argv: shell('env | sort; id -u; grep -E "^(CapEff|CapBnd|NoNewPrivs)" /proc/self/status'),
    });
    expect(stdout.split('\n')).toEqual([
      'HOME=/tmp',
      'LANG=C.UTF-8',
      'PATH=/usr/local/bin:/usr/bin:/bin',
      'PWD=/work',
      'TMPDIR=/tmp',
      '64002',
      'CapEff:\t0000000000000000',
      'CapBnd:\t0000000000000000',
      'NoNewPrivs:\t1',
      '',
    ]);
  });

  test('is ended by its limits, those of the kernel there and ours', async () => {
    const late = await sandbox.run({ argv: ['sleep', '60'], limits: { wallSeconds: 0.5 } });
    expect(late).toMatchObject({ ended: 'wall-time', exit: null });
    const busy = await sandbox.run({
      argv: shell('while :; do :; done'),
      limits: { cpuSeconds: 1, wallSeconds: 50 },
    });
    expect(busy).toMatchObject({ ended: 'cpu-time', exit: null });
    const loud = await sandbox.run({ argv: ['yes'], limits: { outputBytes: 1000 } });
    expect(loud).toMatchObject({ ended: 'output', cut: true });
    expect(loud.stdout).toHaveLength(1000);
    const large = await sandbox.run({
      argv: ['python3', '-c', 'held = bytearray(1 << 28)'],
      limits: { memoryBytes: 2 ** 26 },
    });
    expect(large.stderr).toContain('MemoryError');
    const written = await sandbox.run({
      argv: shell('head -c 100000 /dev/zero > big'),
      limits: { fileBytes: 4096 },
    });
    expect(written.signal ?? written.stderr).toMatch(/SIGXFSZ|File too large/);
    const many = await sandbox.run({
      argv: shell('for i in 1 2 3 4 5 6 7 8 9; do sleep 5 & done'),
      limits: { processes: 4 },
    });
    expect(many.stderr).toContain('fork');
    expect(server.machines.size).toBe(0);
  });

  test('is not bounded by what runs in sandboxes of this machine', async () => {
    const many = 'for n in $(seq 200); do sleep 60 & done; echo up; wait';
    const neighbour = spawn('setpriv', [...setprivArguments(), 'sh', '-c', many], {
      detached: true,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    try {
      await once(neighbour.stdout, 'data');
      expect(await sandbox.run({ argv: shell('true & wait') })).toMatchObject({ exit: 0, ended: 'exit' });
    } finally {
      process.kill(-neighbour.pid!, 'SIGKILL');
    }
  });

  test('does not wait for what a command has left running, and collects no file through a link', async () => {
    const { ended, stdout, files } = await sandbox.run({
      argv: shell('sleep 3600 & ln -s /etc/passwd out; echo said'),
      collect: ['out'],
      limits: { wallSeconds: 40 },
    });
    expect(stdout).toBe('said\n');
    expect(files.size).toBe(0);
    expect(ended).toBe('exit');
  });

  test('tells a signal from an exit, and is called off', async () => {
    expect(await sandbox.run({ argv: shell('kill -SEGV $$') })).toMatchObject({
      exit: 139,
      signal: 'SIGSEGV',
      stderr: '',
    });
    const controller = new AbortController();
    const before = server.commands;
    const running = sandbox.run({ argv: ['sleep', '50'], signal: controller.signal });
    await vi.waitUntil(() => server.commands > before, { timeout: 120_000 });
    controller.abort(new Error('called off'));
    await expect(running).rejects.toThrow('called off');
    expect(server.machines.size).toBe(0);
  });

  test('refuses what it has not, and fails, to be tried again, where a machine dies', async () => {
    const refused = { boundary: 'environment', type: 'sandbox-command' };
    const mounts = [{ at: '/opt/x', from: '/usr' }];
    await expect(sandbox.run({ argv: ['true'], mounts })).rejects.toMatchObject(refused);
    await expect(sandbox.start()).rejects.toMatchObject(refused);
    const before = server.commands;
    const running = sandbox.run({ argv: ['sleep', '50'], limits: { wallSeconds: 40 } });
    await vi.waitUntil(() => server.commands > before, { timeout: 120_000 });
    const [machine] = server.machines.values();
    machine!.kill('SIGKILL');
    await expect(running).rejects.toMatchObject({ type: 'sandbox-failed', retryable: true });
  });

  test('is found where a server answers with a key and confirms that there is no network', async () => {
    expect(await findE2B()).toHaveProperty('sandbox');
    expect(await findE2B({})).toMatchObject({ missing: expect.stringContaining('E2B_API_KEY') });
    const silent = await serveE2B({ bwrap: bwrap!, confirmsNetwork: false });
    vi.stubEnv('E2B_API_URL', silent.url);
    vi.stubEnv('E2B_SANDBOX_URL', silent.url);
    expect(await findE2B()).toMatchObject({ missing: expect.stringContaining('without network') });
    await silent.close();
  });
});
