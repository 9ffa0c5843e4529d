import { readdir } from 'node:fs/promises';
import path from 'node:path';
import { GradusError, isA } from '../../../core/errors.ts';
import { findBubblewrap } from './find.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import { findOnPath, isExecutable, runCommand, tailOf } from '../../../infra/setup/command.ts';
import { makeOnce } from '../../../infra/setup/make-once.ts';

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
  await makeOnce(
    folder,
    say,
    () => isExecutable(bwrap),
    async (making) => {
      const [apt, dpkg] = [await findOnPath('apt-get'), await findOnPath('dpkg-deb')];
      if (apt === undefined || dpkg === undefined) {
        throw new GradusError(
          'infra',
          'bubblewrap-missing',
          'There is no apt-get here to fetch bubblewrap with. Install it with the package manager of your system (it is called bubblewrap everywhere).',
        );
      }
      await run(apt, ['download', '--quiet', 'bubblewrap'], making);
      const deb = (await readdir(making)).find((name) => name.endsWith('.deb'))!;
      await run(dpkg, ['-x', deb, 'unpacked'], making);
      return path.join(making, 'unpacked', 'usr', 'bin');
    },
  );
  return bwrap;
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
