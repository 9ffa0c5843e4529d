import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import { CACHED_MINIWOB, MINIWOB_VERSION } from './page-files.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { findOnPath } from '../../../infra/setup/command.ts';
import { makeOnce } from '../../../infra/setup/make-once.ts';
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
  const isThere = async (): Promise<boolean> => (await readdir(folder).catch(() => [])).length > 0;
  await makeOnce(folder, say, isThere, async (making) => {
    const python = await findOnPath('python3');
    if (python === undefined) {
      throw new GradusError(
        'infra',
        'python-missing',
        'MiniWoB comes from the Python package index, and there is no python3 on PATH: install it with pip, then run the command again',
      );
    }
    await mkdir(path.join(making, 'wheel'));
    const wheel = await downloadWheel(python, WHEEL, path.join(making, 'wheel'));
    await extract(wheel, (entry) =>
      entry.startsWith(PAGES) ? path.join(making, 'html', entry.slice(PAGES.length)) : undefined,
    );
    return path.join(making, 'html');
  });
  return folder;
}
