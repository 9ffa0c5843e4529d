import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, expect, test, vi } from 'vitest';
import { makeChemistry } from '../../../../../plugins/molecules/report/chemistry.ts';

afterEach(() => vi.unstubAllEnvs());

test('a machine without Python is told what is left out and what to do', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-no-python-'));
  try {
    vi.stubEnv('GRADUS_CACHE', path.join(folder, 'cache'));
    vi.stubEnv('PATH', folder);
    const lines: string[] = [];
    expect(await makeChemistry((text) => lines.push(text))).toBe(false);
    expect(lines.join('\n')).toMatch(/needs Python 3\.\d+ or newer.*install it.*the fast tier alone/s);
  } finally {
    await rm(folder, { recursive: true });
  }
});
