import { mkdir, readdir, rename, rm } from 'node:fs/promises';
import path from 'node:path';
import { GradusError, isA } from '../../../core/errors.ts';
import { findBubblewrap } from './find.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { findOnPath, isExecutable, runCommand, tailOf } from '../../../infra/setup/command.ts';
import { withLock } from '../../../infra/setup/file-lock.ts';

/** Where Debian's bubblewrap lies once it is set up; environments/sandbox/bubblewrap/find.ts looks there. */
export const CACHED_BUBBLEWRAP = { name: 'bubblewrap', version: 'debian' } as const;

/**
 * Bubblewrap without root: Debian's (or Ubuntu's) package, which apt downloads and checks by the system's own sources, unpacked into
 * the cache. Its libraries (libc, libcap, libselinux) are of every such system.
 * Throws GradusError('infra', 'bubblewrap-missing') where there is no apt, or it cannot download.
 */
export async function ensureBubblewrap(say: (text: string) => void): Promise<string> {
  const folder = cacheEntry(cacheRoot(), CACHED_BUBBLEWRAP);
  const bwrap = path.join(folder, 'bwrap');
  await mkdir(path.dirname(folder), { recursive: true });
  const waiting = (pid: number): void => say(`waiting for process ${pid}, which is making ${folder}`);
  return withLock(`${folder}.lock`, waiting, async () => {
    if (await isExecutable(bwrap)) return bwrap;
    const [apt, dpkg] = [await findOnPath('apt-get'), await findOnPath('dpkg-deb')];
    if (apt === undefined || dpkg === undefined) {
      throw new GradusError(
        'infra',
        'bubblewrap-missing',
        'There is no apt-get here to fetch bubblewrap with. Install it with the package manager of your system (it is called bubblewrap everywhere).',
      );
    }
    const temporary = `${folder}.making`;
    await rm(temporary, { recursive: true, force: true }); // what a killed set-up left
    await mkdir(temporary);
    try {
      await run(apt, ['download', '--quiet', 'bubblewrap'], temporary);
      const deb = (await readdir(temporary)).find((name) => name.endsWith('.deb'))!;
      await run(dpkg, ['-x', deb, 'unpacked'], temporary);
      await mkdir(folder, { recursive: true });
      await rename(path.join(temporary, 'unpacked', 'usr', 'bin', 'bwrap'), bwrap);
    } finally {
      await rm(temporary, { recursive: true, force: true });
    }
    return bwrap;
  });
}

/** Finds a bubblewrap that works, or fetches one, or says why not: only environments that run programs need it. */
export async function offerBubblewrap(say: (text: string) => void): Promise<void> {
  let found = await findBubblewrap();
  try {
    if ('missing' in found && process.platform === 'linux') {
      await ensureBubblewrap(say);
      found = await findBubblewrap();
    }
  } catch (error) {
    if (!isA(error, GradusError)) throw error;
    say(error.message);
  }
  say('missing' in found ? `sandbox: none; ${found.missing}` : 'sandbox (bubblewrap): works');
}

async function run(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { code, stdout, stderr } = await runCommand(command, args, { cwd });
  if (code === 0) return;
  throw new GradusError(
    'infra',
    'bubblewrap-missing',
    `${command} ${args.join(' ')} failed:\n${tailOf(stderr || stdout)}\nIs the package archive reachable, and are its lists there ("apt-get update")? Then run the command again.`,
    { retryable: true },
  );
}
