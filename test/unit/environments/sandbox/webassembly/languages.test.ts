import { describe, expect, test } from 'vitest';
import { openSandbox } from '../../../../../environments/sandbox/open-sandbox.ts';
import type { Limits } from '../../../../../environments/sandbox/contract.ts';

const MIB = 2 ** 20;

describe.each([
  {
    prefer: 'wasi-python' as const,
    run: ['python3', '-c'],
    greets: 'import sys, math; print(sys.stdin.read(), math.floor(math.e)); print("no", file=sys.stderr)',
    fails: 'raise SystemExit(3)',
    spins: 'while True: pass',
    eats: 'held = []\nwhile True: held.append(bytearray(1 << 22))',
    floods: 'while True: print("y" * 5000)',
    peeks: `
import os
found = [name for name in ('/etc/passwd', '/proc/self/environ') if os.path.exists(name)]
try:
    import socket
    socket.socket()
    found.append('socket')
except OSError: pass
print([*found, *[name for name in os.environ if name not in ('LANG', 'PYTHONHOME', 'PYTHONPATH')]])`,
    nothing: '[]\n',
    exits: 3,
  },
  {
    prefer: 'quickjs' as const,
    run: ['node', '-e'],
    greets: 'console.log(stdin, Math.floor(Math.E)); console.error("no")',
    fails: 'throw new Error("failed")',
    spins: 'while (true);',
    eats: 'const held = []; while (true) held.push("x".repeat(1 << 22) + held.length)',
    floods: 'while (true) console.log("y".repeat(5000))',
    peeks: 'console.log([typeof require, typeof process, typeof fetch, typeof std, typeof os])',
    nothing: '["undefined","undefined","undefined","undefined","undefined"]\n',
    exits: 1,
  },
])('a program in $prefer', ({ prefer, run, ...programs }) => {
  const limited = async (program: string, limits: Partial<Limits> = {}, stdin = '') =>
    (await openSandbox({ prefer })).run({
      argv: [...run, program],
      stdin,
      limits: { wallSeconds: 120, cpuSeconds: 120, ...limits },
    });

  test('reads what it is given, prints, and says how it ended', async () => {
    expect(await limited(programs.greets, {}, 'hällo')).toMatchObject({
      exit: 0,
      ended: 'exit',
      stdout: 'hällo 2\n',
      stderr: 'no\n',
    });
    expect(await limited(programs.fails)).toMatchObject({ exit: programs.exits, ended: 'exit' });
  });

  test('is ended by its limits', async () => {
    expect(await limited(programs.spins, { wallSeconds: 1 })).toMatchObject({
      ended: 'wall-time',
      exit: null,
    });
    expect(await limited(programs.floods, { outputBytes: 1000 })).toMatchObject({
      ended: 'output',
      cut: true,
      stdout: 'y'.repeat(1000),
    });
    const before = process.memoryUsage().rss;
    expect((await limited(programs.eats, { memoryBytes: 64 * MIB })).exit).toBeGreaterThan(0);
    expect(process.memoryUsage().rss - before).toBeLessThan(400 * MIB);
  });

  test('finds nothing of ours', async () => {
    expect(await limited(programs.peeks)).toMatchObject({ exit: 0, stdout: programs.nothing });
  });

  test('is refused where it asks for files or another program', async () => {
    const sandbox = await openSandbox({ prefer });
    const asked = [
      { argv: ['sh', '-c', 'true'] },
      { argv: [...run, programs.greets], files: [{ path: 'x', content: '' }] },
      { argv: [...run, programs.greets], collect: ['x'] },
    ];
    for (const command of asked) {
      await expect(sandbox.run(command)).rejects.toMatchObject({ type: 'sandbox-command' });
    }
  });
});

test('where a sandbox is preferred that there is not, none is opened instead of it', async () => {
  await expect(openSandbox({ prefer: 'chroot' as never })).rejects.toMatchObject({
    boundary: 'infra',
    type: 'no-sandbox',
  });
});
