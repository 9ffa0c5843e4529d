import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, test } from 'vitest';
import { peakBytesOfDescendants } from '../../../bench/processes.ts';

const LINUX = process.platform === 'linux';

test.skipIf(!LINUX)(
  'what processes held counts, those that they started too, and also when it is given back',
  async () => {
    const before = peakBytesOfDescendants();
    // The child holds 150 MB, gives them back, and its own child holds 100 MB.
    const hold = (megabytes: number): string => `Buffer.alloc(${megabytes} * 1e6, 1)`;
    const inner = `const held = ${hold(100)}; console.log('held', held.length); setInterval(() => {}, 1000);`;
    const outer = `let held = ${hold(150)}; held = undefined;
    require('node:child_process').spawn(process.execPath, ['-e', ${JSON.stringify(inner)}], { stdio: ['ignore', 'inherit', 'inherit'] });
    process.stdin.resume(); process.on('exit', () => {});`;
    const child = spawn(process.execPath, ['-e', outer], {
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    });
    try {
      await once(child.stdout, 'data');
      const held = peakBytesOfDescendants() - before;
      expect(held).toBeGreaterThan(250e6);
      expect(held).toBeLessThan(900e6);
    } finally {
      process.kill(-child.pid!, 'SIGKILL');
      await once(child, 'close');
    }
  },
);
