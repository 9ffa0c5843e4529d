import { describe, expect, test } from 'vitest';
import { findGVisor } from '../../../environments/sandbox/gvisor/find.ts';

const found = await findGVisor();
const leftOut = 'missing' in found ? ` — NOT SHOWN HERE, for ${found.missing}` : '';
if (leftOut !== '') console.warn(`SKIPPED: tests of gVisor${leftOut}`);

describe.skipIf('missing' in found)(`a command in gVisor${leftOut}`, { timeout: 300_000 }, () => {
  const sandbox = 'sandbox' in found ? found.sandbox : undefined!;

  test('has a kernel, files and nobody of its own', async () => {
    const { stdout, files } = await sandbox.run({
      argv: [
        'sh',
        '-c',
        'cat given > made; uname -r; ls /root /home 2>/dev/null; grep -c : /proc/net/dev; id -u; exec 2>&1; echo x > /usr/x',
      ],
      files: [{ path: 'given', content: 'brought' }],
      collect: ['made'],
    });
    expect(stdout).toMatch(/^4\.19\.0-gvisor\n[01]\n64001\n.*cannot create \/usr\/x/s);
    expect(Buffer.from(files.get('made')!).toString()).toBe('brought');
  });

  test('is ended by its limits, and leaves no process', async () => {
    const sleeping = await sandbox.run({ argv: ['sleep', '60'], limits: { wallSeconds: 0.5 } });
    expect(sleeping.ended).toBe('wall-time');
    const shared = `
import mmap
held = mmap.mmap(-1, 1 << 30)
while True: held.write(bytes(1 << 20))`;
    const large = await sandbox.run({
      argv: ['python3', '-c', shared],
      limits: { memoryBytes: 64 * 2 ** 20, wallSeconds: 50, cpuSeconds: 50 },
    });
    expect(large.ended).toBe('memory');
  });
});
