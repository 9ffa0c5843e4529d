import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { readRegularFile } from '../../../engine/regular-file.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'gradus-files-'));
});
afterEach(() => {
  rmSync(folder, { recursive: true });
});

test.each([0, 1, 65_535, 65_536, 65_537, 1_000_000])(
  'a file of %d bytes is read to the byte',
  async (size) => {
    const bytes = Uint8Array.from({ length: size }, (_, i) => (i * 31) % 251);
    const file = path.join(folder, 'file');
    writeFileSync(file, bytes);
    expect(Buffer.compare(await readRegularFile(file), bytes)).toBe(0);
  },
);

// Of Linux: it is a regular file of no bytes by what it says, and has a byte for every few thousand of the address space.
test.runIf(process.platform === 'linux')(
  'a file without end that says it has no bytes is refused',
  async () => {
    await expect(readRegularFile('/proc/self/pagemap', 2 ** 20)).rejects.toThrow(
      'it has more than 1048576 bytes',
    );
  },
);
