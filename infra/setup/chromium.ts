import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { CACHED_CHROMIUM } from '../../environments/browser/find-chromium.ts';
import { cacheEntry, cacheRoot } from '../cache-dir.ts';
import { findOnPath, runCommand, tailOf } from './command.ts';
import { withLock } from './file-lock.ts';

const PACKAGE = 'chromium-headless-shell';

/**
 * Chromium without root: Debian's package and those of its libraries that this machine lacks, which apt downloads (100 MB)
 * and checks by the system's own sources, unpacked into the cache (300 MB). The system itself is not touched.
 * Throws GradusError('infra', 'browser-missing') where there is no apt, or it cannot download.
 */
export async function ensureChromium(
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const folder = cacheEntry(cacheRoot(env), CACHED_CHROMIUM);
  await mkdir(path.dirname(folder), { recursive: true });
  const waiting = (pid: number): void => say(`waiting for process ${pid}, which is making ${folder}`);
  return withLock(`${folder}.lock`, waiting, async () => {
    if (await isThere(folder)) return folder;
    const [apt, dpkg] = [await findOnPath('apt-get', env), await findOnPath('dpkg-deb', env)];
    if (apt === undefined || dpkg === undefined) {
      throw missing(
        'There is no apt-get here to fetch a browser with. Install Chromium with the package manager of your system, or ' +
          'name its executable in GRADUS_BROWSER.',
      );
    }
    const making = `${folder}.making`;
    await rm(making, { recursive: true, force: true }); // what a killed set-up left
    await mkdir(path.join(making, 'lists', 'partial'), { recursive: true });
    await mkdir(path.join(making, 'cache', 'archives', 'partial'), { recursive: true });
    try {
      // Lists of our own: the system's may be gone or too old, and only root may renew them.
      const ours = [
        `Dir::State::lists=${making}/lists`,
        `Dir::Cache=${making}/cache`,
        'Debug::NoLocking=1',
        // Root would become another user here, who has no way into our cache.
        'APT::Sandbox::User=root',
      ].flatMap((option) => ['-o', option]);
      await run(apt, [...ours, '--quiet', 'update']);
      const install = ['--quiet', '--yes', '--no-install-recommends', '--download-only', 'install', PACKAGE];
      await run(apt, [...ours, ...install]);
      const archives = path.join(making, 'cache', 'archives');
      for (const deb of (await readdir(archives)).filter((name) => name.endsWith('.deb'))) {
        await run(dpkg, ['-x', path.join(archives, deb), path.join(making, 'root')]);
      }
      // In the sandbox it runs as somebody else.
      await run('chmod', ['-R', 'go+rX', path.join(making, 'root')]);
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

const missing = (message: string, retryable = false): GradusError =>
  new GradusError('infra', 'browser-missing', message, { retryable });

async function run(command: string, args: readonly string[]): Promise<void> {
  const { code, stdout, stderr } = await runCommand(command, args);
  if (code === 0) return;
  throw missing(
    `${command} ${args.join(' ')} failed:\n${tailOf(stderr || stdout)}\nIs the package archive reachable, and does it have ` +
      `${PACKAGE} (Debian 12 and newer)? Then run the command again; or name a Chromium's executable in GRADUS_BROWSER.`,
    true,
  );
}
