import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import { CACHED_MINIWOB, MINIWOB_VERSION } from './page-files.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { findOnPath } from '../../../infra/setup/command.ts';
import { withLock } from '../../../infra/setup/file-lock.ts';
import { downloadWheel, extract } from '../../../infra/setup/wheel.ts';

const WHEEL = {
  project: 'miniwob',
  version: MINIWOB_VERSION,
  sha256: ['297006e84219d56ad037e843527ed773a4a82509dc43b6031ec4a3ad3e3e61d9'],
} as const;
const PAGES = 'miniwob/html/';

/**
 * MiniWoB's pages (MIT licence) out of its wheel from the Python package index, into the cache: 2 MB to download.
 * Throws GradusError('infra', 'python-missing'), and as `downloadWheel` does.
 */
export async function ensureMiniwob(say: (text: string) => void): Promise<string> {
  const folder = cacheEntry(cacheRoot(), CACHED_MINIWOB);
  await mkdir(path.dirname(folder), { recursive: true });
  const waiting = (pid: number): void => say(`waiting for process ${pid}, which is making ${folder}`);
  return withLock(`${folder}.lock`, waiting, async () => {
    const there = await readdir(folder).catch(() => []);
    if (there.length > 0) return folder;
    const python = await findOnPath('python3');
    if (python === undefined) {
      throw new GradusError(
        'infra',
        'python-missing',
        'MiniWoB comes from the Python package index, and there is no python3 on PATH: install it with pip, then run the command again',
      );
    }
    const making = `${folder}.making`;
    await rm(making, { recursive: true, force: true }); // what a killed set-up left
    await mkdir(path.join(making, 'wheel'), { recursive: true });
    try {
      const wheel = await downloadWheel(python, WHEEL, path.join(making, 'wheel'));
      await extract(wheel, (entry) =>
        entry.startsWith(PAGES) ? path.join(making, 'html', entry.slice(PAGES.length)) : undefined,
      );
      await rename(path.join(making, 'html'), folder);
    } finally {
      await rm(making, { recursive: true, force: true });
    }
    return folder;
  });
}
