import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser } from 'playwright-core';
import { CACHED_CHROMIUM } from '../../environments/sandbox/browser/find-chromium.ts';
import { cacheEntry, cacheRoot } from '../../infra/cache-dir.ts';

/**
 * A Chromium for looking at our own pages: `GRADUS_CHROMIUM`, that of `npm run setup:browser`, or the system's; null, said
 * loudly, where there is none.
 */
export async function launchChromium(): Promise<Browser | null> {
  const found = find();
  if (found === null) {
    console.warn(
      'SKIPPED: pages in a real browser — NOT SHOWN HERE, no Chromium: "npm run setup:browser" fetches one, or GRADUS_CHROMIUM names one',
    );
    return null;
  }
  return chromium.launch({
    executablePath: found.executable,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage'],
    env: { ...process.env, ...found.env },
  });
}

export const hasChromium = (): boolean => find() !== null;

function find(): { executable: string; env: Record<string, string> } | null {
  const named = process.env['GRADUS_CHROMIUM'];
  if (named !== undefined) return { executable: named, env: {} };
  const cached = cacheEntry(cacheRoot(process.env), CACHED_CHROMIUM);
  const executable = path.join(cached, 'usr/lib/chromium/chromium-headless-shell');
  if (isExecutable(executable)) {
    return { executable, env: { LD_LIBRARY_PATH: librariesIn(path.join(cached, 'usr/lib')).join(':') } };
  }
  const system = ['chromium', 'chromium-browser', 'chromium-headless-shell', 'google-chrome'].map((name) =>
    path.join('/usr/bin', name),
  );
  const there = system.find((file) => isExecutable(file));
  return there === undefined ? null : { executable: there, env: {} };
}

/** Debian's libraries, which were unpacked and not installed. */
function librariesIn(lib: string): string[] {
  const architecture = readdirSync(lib).find((name) => name.endsWith('-linux-gnu'));
  if (architecture === undefined || !existsSync(path.join(lib, architecture))) return [];
  const folder = path.join(lib, architecture);
  const deeper = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
  return [folder, ...deeper.map(({ name }) => path.join(folder, name))];
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}
