import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import { CACHED_CHROMIUM } from './find-chromium.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { runCommand, tailOf } from '../../../infra/setup/command.ts';
import { debianIn } from '../../../infra/setup/debian-packages.ts';
import { withLock } from '../../../infra/setup/file-lock.ts';

const PACKAGE = 'chromium-headless-shell';

/**
 * Chromium without root: Debian's package and those of its libraries that this machine lacks, which apt downloads (100 MB)
 * and checks by the system's own sources, unpacked into the cache (300 MB). The system itself is not touched.
 * Throws GradusError('infra', 'browser-missing') where there is no apt, or it cannot download.
 */
export async function ensureChromium(say: (text: string) => void): Promise<string> {
  const folder = cacheEntry(cacheRoot(), CACHED_CHROMIUM);
  await mkdir(path.dirname(folder), { recursive: true });
  const waiting = (pid: number): void => say(`waiting for process ${pid}, which is making ${folder}`);
  return withLock(`${folder}.lock`, waiting, async () => {
    if (await isThere(folder)) return folder;
    const making = `${folder}.making`;
    await rm(making, { recursive: true, force: true }); // what a killed set-up left
    await mkdir(making);
    try {
      const debian = await debianIn(making, missing);
      const install = ['--quiet', '--yes', '--no-install-recommends', '--download-only', 'install', PACKAGE];
      await debian.apt('apt-get', install);
      await debian.unpack(debian.archives, path.join(making, 'root'));
      // In the sandbox it runs as somebody else.
      const { code, stderr } = await runCommand('chmod', ['-R', 'go+rX', path.join(making, 'root')]);
      if (code !== 0) throw missing(tailOf(stderr), false);
      await rm(folder, { recursive: true, force: true });
      await rename(path.join(making, 'root'), folder);
    } finally {
      await rm(making, { recursive: true, force: true });
    }
    return folder;
  });
}

const isThere = (folder: string): Promise<boolean> =>
  readdir(folder).then(
    () => true,
    () => false,
  );

const missing = (message: string, retryable: boolean): GradusError =>
  new GradusError(
    'infra',
    'browser-missing',
    `${message}\nIs the package archive reachable, and does it have ${PACKAGE} (Debian 12 and newer)? Then run the command ` +
      'again; or install Chromium with the package manager of your system, or name its executable in GRADUS_BROWSER.',
    { retryable },
  );
