import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, test, vi } from 'vitest';
import type { Ran } from '../../../environments/sandbox/contract.ts';
import { processesBelow } from '../../support/processes-below.ts';
import { bubblewrap, LEFT_OUT } from './available.ts';

const textOf = (ran: Ran, file: string): string => Buffer.from(ran.files.get(file)!).toString();

describe.skipIf(!bubblewrap)(`a command in bubblewrap${LEFT_OUT}`, () => {
  const sandbox = bubblewrap!;
  const shell = (script: string) => ({ argv: ['sh', '-c', script] });

  test('says what it printed on either stream, and how it ended', async () => {
    const ran = await sandbox.run({ ...shell('cat; echo no >&2; exit 3'), stdin: 'hällo' });
    expect(ran).toMatchObject({
      exit: 3,
      signal: null,
      ended: 'exit',
      stdout: 'hällo',
      stderr: 'no\n',
      cut: false,
    });
    expect(await sandbox.run(shell('kill -SEGV $$'))).toMatchObject({
      exit: 139,
      signal: 'SIGSEGV',
      ended: 'exit',
    });
    expect(await sandbox.run({ argv: ['no-such-program'] })).toMatchObject({ exit: 127, ended: 'exit' });
  });

  test('reads the files that it is given, and what it asks to collect comes back', async () => {
    const ran = await sandbox.run({
      ...shell('./deep/run > out; mkdir folder; cp deep/data folder/copy; rm deep/data'),
      files: [
        { path: 'deep/run', content: '#!/bin/sh\necho ran', executable: true },
        { path: 'deep/data', content: new Uint8Array([0, 255, 10]) },
      ],
      collect: ['out', 'folder', 'deep/data'],
    });
    expect([...ran.files.keys()].toSorted()).toEqual(['folder/copy', 'out']);
    expect(textOf(ran, 'out')).toBe('ran\n');
    expect(ran.files.get('folder/copy')).toEqual(new Uint8Array([0, 255, 10]));
  });

  test('sees a folder of the host to which only its owner has a way, and cannot write to it', async () => {
    const closed = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
    const folder = path.join(closed, 'open');
    try {
      await mkdir(folder, { mode: 0o755 });
      await writeFile(path.join(folder, 'given'), 'from the host');
      const ran = await sandbox.run({
        ...shell('cat /opt/given/given; echo x > /opt/given/new'),
        mounts: [{ at: '/opt/given', from: folder }],
      });
      expect(ran.stdout).toBe('from the host');
      expect(ran.stderr).toMatch(/Read-only file system/);
    } finally {
      await rm(closed, { recursive: true });
    }
  });

  test('starts in the folder and with the variables that it is given', async () => {
    const ran = await sandbox.run({ ...shell('pwd; echo $GIVEN'), cwd: 'a/b', env: { GIVEN: "it's $HOME" } });
    expect(ran.stdout).toBe("/work/a/b\nit's $HOME\n");
  });

  test('shows its variables to nobody who lists processes, inside or outside', async () => {
    const running = await sandbox.start({
      ...shell('echo $GIVEN; cat /proc/1/cmdline; echo; cat'),
      env: { GIVEN: 'hunter2' },
    });
    let text = '';
    running.stdout.on('data', (data) => (text += String(data)));
    await vi.waitUntil(() => text.includes('--unshare-all') && text.endsWith('\0\n'), { timeout: 120_000 });
    const outside = processesBelow('--unshare-all');
    expect(outside).not.toEqual([]);
    expect(processesBelow('hunter2')).toEqual([]);
    running.kill();
    await running.over;
    expect(text).toMatch(/^hunter2\n.*--unshare-all/);
    expect(text.slice('hunter2'.length)).not.toContain('hunter2');
  });

  test('can be talked to for as long as it goes on, by more pipes than the usual ones', async () => {
    const running = await sandbox.start({ ...shell('cat <&3 >&4; cat'), pipes: 2 });
    const [third, fourth] = running.pipes;
    const heard = new Promise<string>((resolve) => fourth!.once('data', (data) => resolve(String(data))));
    third!.end('by the third');
    expect(await heard).toBe('by the third');
    const echoed = new Promise<string>((resolve) =>
      running.stdout.once('data', (data) => resolve(String(data))),
    );
    running.stdin.write('by stdin');
    expect(await echoed).toBe('by stdin');
    running.kill();
    expect(await running.over).toMatchObject({ exit: null, ended: 'killed' });
  });

  test.each([
    ['wall-time', 'sleep 987654', { wallSeconds: 1 }],
    // The kernel counts each of them by itself.
    ['cpu-time', 'for i in 1 2 3 4; do while :; do :; done & done; sleep 987654', { cpuSeconds: 1 }],
  ] as const)(
    'ends when its %s is used up, also while our event loop is kept',
    async (ended, script, limits) => {
      const running = await sandbox.start({ ...shell(script), limits });
      const latest = performance.now() + 120_000;
      // Without a turn of the event loop: no timer of this process runs meanwhile.
      const never = new Int32Array(new SharedArrayBuffer(4));
      while (processesBelow('987654').length > 0 && performance.now() < latest) Atomics.wait(never, 0, 0, 50);
      expect(processesBelow('987654')).toEqual([]);
      expect(await running.over).toMatchObject({ exit: null, ended });
    },
  );

  test('that is over in time is told so, also where our event loop is kept until after it', async () => {
    const running = await sandbox.start({ ...shell('echo done'), limits: { wallSeconds: 3 } });
    let text = '';
    running.stdout.on('data', (data) => (text += String(data)));
    const never = new Int32Array(new SharedArrayBuffer(4));
    Atomics.wait(never, 0, 0, 4_000);
    expect(await running.over).toMatchObject({ exit: 0, ended: 'exit' });
    expect(text).toBe('done\n');
  });

  test('ends when it is no longer wanted', async () => {
    const stopping = new AbortController();
    const running = sandbox.run({ argv: ['sleep', '100'], signal: stopping.signal });
    stopping.abort(new Error('not wanted'));
    await expect(running).rejects.toThrow('not wanted');
  });

  test('ends when it is no longer wanted before it has begun', async () => {
    for (const ask of [sandbox.run.bind(sandbox), sandbox.start.bind(sandbox)]) {
      const stopping = new AbortController();
      const mark = `600.${process.pid}8`;
      const running = ask({ argv: ['sleep', mark], signal: stopping.signal });
      running.catch(() => undefined);
      // Its arguments are there from the start, before anything is set up.
      await vi.waitUntil(() => processesBelow(mark).length > 0, { timeout: 120_000, interval: 1 });
      stopping.abort(new Error('not wanted'));
      await running.then(
        async (one) => expect('over' in one && (await one.over).ended).toBe('killed'),
        (error: unknown) => expect(error).toMatchObject({ message: 'not wanted' }),
      );
    }
  });

  test.each([
    ['an empty command', { argv: [] }],
    ['a file above the work folder', { argv: ['true'], files: [{ path: '../x', content: '' }] }],
    ['an absolute file', { argv: ['true'], files: [{ path: '/etc/x', content: '' }] }],
    ['a collected path above it', { argv: ['true'], collect: ['a/../../etc'] }],
    ['a mount over /proc', { argv: ['true'], mounts: [{ at: '/proc/sys', from: '/usr' }] }],
    ['a mount of nothing', { argv: ['true'], mounts: [{ at: '/x', from: '/no/such/folder' }] }],
    ['no time', { argv: ['true'], limits: { wallSeconds: 0 } }],
    [
      'more files than there is room',
      {
        argv: ['true'],
        files: [{ path: 'x', content: Buffer.alloc(9000) }],
        limits: { writableBytes: 9000 },
      },
    ],
  ])('is refused where it asks for %s', async (_, command) => {
    await expect(sandbox.run(command)).rejects.toMatchObject({
      boundary: 'environment',
      type: 'sandbox-command',
    });
  });

  test('does not run where namespaces are forbidden, and that says what allows them', async () => {
    const program = path.join(import.meta.dirname, 'run-once.ts');
    const forbid = 'echo 0 >/proc/sys/user/max_user_namespaces && exec "$@"';
    const node = [process.execPath, '--import', 'tsx', program, 'true'];
    await expect(
      promisify(execFile)('unshare', ['--user', '--map-root-user', 'sh', '-c', forbid, 'sh', ...node]),
    ).rejects.toMatchObject({ stderr: expect.stringContaining('sysctl -w user.max_user_namespaces=') });
  });
});
