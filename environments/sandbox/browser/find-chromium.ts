import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { commandLine } from '../../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import type { Need } from '../../contract/environment.ts';
import type { Mount } from '../contract.ts';
import { sandboxNeeds } from '../open-sandbox.ts';

/** Where `npm run setup:browser` leaves Debian's Chromium, with the libraries that the machine lacks. */
export const CACHED_CHROMIUM = { name: 'chromium', version: 'debian' } as const;

/** A Chromium as the sandbox starts it. */
export interface Chromium {
  /** In the sandbox. */
  executable: string;
  env: Readonly<Record<string, string>>;
  /** What it needs besides /usr. */
  mounts: readonly Mount[];
}

const AT = '/opt/chromium';
const NAMES = ['chromium-headless-shell', 'chromium', 'chromium-browser', 'google-chrome'];

/**
 * The Chromium that `GRADUS_BROWSER` names, that `npm run setup:browser` has fetched, or that the system has; else what
 * to do about it.
 */
export function findChromium(): Chromium | { missing: string } {
  // Without them there is no text to lay out.
  const fonts = existsSync('/etc/fonts') ? [{ at: '/etc/fonts', from: '/etc/fonts' }] : [];
  const named = process.env['GRADUS_BROWSER'];
  if (named) {
    if (!isExecutable(named)) return { missing: `GRADUS_BROWSER names ${named}, which cannot be run` };
    const file = realpathSync(named);
    if (file.startsWith('/usr/')) return { executable: file, env: {}, mounts: fonts };
    const folder = path.dirname(file);
    return {
      executable: `${AT}/${path.basename(file)}`,
      env: {},
      mounts: [...fonts, { at: AT, from: folder }],
    };
  }
  const cached = cacheEntry(cacheRoot(), CACHED_CHROMIUM);
  const inCache = 'usr/lib/chromium/chromium-headless-shell';
  if (isExecutable(path.join(cached, inCache))) {
    return {
      executable: `${AT}/${inCache}`,
      env: { LD_LIBRARY_PATH: libraryFolders(path.join(cached, 'usr/lib')).join(':') },
      mounts: [...fonts, { at: AT, from: cached }],
    };
  }
  // The program before Debian's script of that name, which reads /etc/chromium.d: no sandbox has that.
  for (const folder of ['/usr/lib/chromium', '/usr/bin', '/usr/local/bin']) {
    for (const name of NAMES) {
      const file = path.join(folder, name);
      if (isExecutable(file)) return { executable: file, env: {}, mounts: fonts };
    }
  }
  return { missing: `no Chromium is installed: "${commandLine('setup browser')}" fetches one, without root` };
}

/** Debian keeps libraries by architecture, and those that belong to one package a folder deeper. */
function libraryFolders(lib: string): string[] {
  const [architecture] = readdirSync(lib).filter((name) => name.endsWith('-linux-gnu'));
  if (architecture === undefined) return [];
  const deeper = readdirSync(path.join(lib, architecture), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name);
  return ['', ...deeper].map((folder) => path.posix.join(AT, 'usr/lib', architecture, folder));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** What an environment with a browser needs. */
export async function browserNeeds(): Promise<Need[]> {
  const present = !('missing' in findChromium());
  return [...(await sandboxNeeds()), { what: 'Chromium', present, setUp: commandLine('setup browser') }];
}
