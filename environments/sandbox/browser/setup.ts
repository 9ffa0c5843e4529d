import { existsSync } from 'node:fs';
import path from 'node:path';
import { GradusError } from '../../../core/errors.ts';
import { CACHED_CHROMIUM } from './find-chromium.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { runCommand, tailOf } from '../../../infra/setup/command.ts';
import { debianIn } from '../../../infra/setup/debian-packages.ts';
import { makeOnce } from '../../../infra/setup/make-once.ts';

const PACKAGE = 'chromium-headless-shell';

/**
 * Chromium without root: Debian's package and those of its libraries that this machine lacks, which apt downloads (100 MB)
 * and checks by the system's own sources, unpacked into the cache (300 MB). The system itself is not touched.
 * Throws GradusError('infra', 'browser-missing') where there is no apt, or it cannot download.
 */
export async function ensureChromium(say: (text: string) => void): Promise<string> {
  const folder = cacheEntry(cacheRoot(), CACHED_CHROMIUM);
  await makeOnce(
    folder,
    say,
    () => existsSync(folder),
    async (making) => {
      const debian = await debianIn(making, missing);
      const install = ['--quiet', '--yes', '--no-install-recommends', '--download-only', 'install', PACKAGE];
      await debian.apt('apt-get', install);
      const root = path.join(making, 'root');
      await debian.unpack(debian.archives, root);
      // In the sandbox it runs as somebody else.
      const { code, stderr } = await runCommand('chmod', ['-R', 'go+rX', root]);
      if (code !== 0) throw missing(tailOf(stderr), false);
      return root;
    },
  );
  return folder;
}

const missing = (message: string, retryable: boolean): GradusError =>
  new GradusError(
    'infra',
    'browser-missing',
    `${message}\nIs the package archive reachable, and does it have ${PACKAGE} (Debian 12 and newer)? Then run the command ` +
      'again; or install Chromium with the package manager of your system, or name its executable in GRADUS_BROWSER.',
    { retryable },
  );
