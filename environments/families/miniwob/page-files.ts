import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { commandLine } from '../../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import type { ServedFile } from '../../sandbox/browser/open-page.ts';
import type { Need } from '../../contract/environment.ts';

export const MINIWOB_VERSION = '1.1.0';
/** Where `npm run setup:browser` leaves MiniWoB's pages. */
export const CACHED_MINIWOB = { name: 'miniwob', version: MINIWOB_VERSION } as const;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.png': 'image/png',
  '.gif': 'image/gif',
  '.jpg': 'image/jpeg',
  '.svg': 'image/svg+xml',
  '.json': 'application/json',
};

const folder = (): string => cacheEntry(cacheRoot(), CACHED_MINIWOB);

export const miniwobNeed = (): Need => ({
  what: "MiniWoB's pages",
  present: existsSync(folder()),
  setUp: commandLine('setup browser'),
});

/** A file of MiniWoB by its address; null where there is none. */
export async function fileAt({ pathname }: URL): Promise<ServedFile | null> {
  const file = path.join(folder(), path.posix.normalize(decodeURIComponent(pathname)));
  try {
    return {
      contentType: TYPES[path.extname(file)] ?? 'application/octet-stream',
      body: await readFile(file),
    };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'EISDIR') return null;
    throw error;
  }
}
