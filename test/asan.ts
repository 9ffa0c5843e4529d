import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { runCommand } from '../infra/setup/command.ts';
import { compileDecoder } from '../engine/decoder/native/setup.ts';

// `npm run asan`: the decoder's tests with its addon under AddressSanitizer and UndefinedBehaviorSanitizer. Leaks are not
// looked for, because Node itself does not free what it holds at its end; a test of the addon watches its memory.

const root = path.resolve(import.meta.dirname, '..');

async function main(): Promise<number> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-asan-'));
  try {
    const addon = path.join(folder, 'decoder.node');
    const flags = ['-fsanitize=address,undefined', '-fno-sanitize-recover=undefined', '-O1', '-g'];
    await compileDecoder(root, addon, flags);
    const library = await runCommand('g++', ['-print-file-name=libasan.so']);
    const vitest = createRequire(import.meta.url).resolve('vitest/package.json');
    const command = path.join(path.dirname(vitest), 'vitest.mjs');
    const tests = ['test/unit/engine/decoder', 'test/unit/engine/parity/decoder.test.ts'];
    const child = spawn(process.execPath, [command, 'run', '--project', 'unit', ...tests], {
      cwd: root,
      stdio: 'inherit',
      env: {
        ...process.env,
        GRADUS_DECODER_ADDON: addon,
        LD_PRELOAD: library.stdout.trim(),
        ASAN_OPTIONS: 'detect_leaks=0:abort_on_error=1',
        UBSAN_OPTIONS: 'print_stacktrace=1',
      },
    });
    return await new Promise((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', (code) => resolve(code ?? 1));
    });
  } finally {
    await rm(folder, { recursive: true });
  }
}

process.exitCode = await main();
