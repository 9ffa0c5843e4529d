import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { IN_CHECKOUT } from '../../core/installation.ts';
import { setUp } from './set-up.ts';

/** In the package's own folder, so that another version begins anew. */
const STAMP = path.resolve(import.meta.dirname, '..', '..', 'set-up.json');

/**
 * Brings in what the package alone does not have, at its first use; later it takes milliseconds. A checkout has been set
 * up by infra/setup/bootstrap.mjs before anything of it runs. Throws what `setUp` throws.
 */
export async function setUpOnce(say: (text: string) => void): Promise<void> {
  if (IN_CHECKOUT) return;
  // Variables that decide what is set up.
  const settings = JSON.parse(
    await readFile(path.join(import.meta.dirname, '../../infra/setup/settings.json'), 'utf8'),
  ) as string[];
  const key = [process.versions.napi, process.platform, process.arch]
    .concat(settings.map((name) => `${name}=${process.env[name] ?? ''}`))
    .join(' ');
  if (await isSetUp(key)) return;
  say('setting up servers and the learner; what is missing is downloaded or built, once …');
  const paths = await setUp(say);
  await writeFile(STAMP, JSON.stringify({ key, paths }));
}

async function isSetUp(key: string): Promise<boolean> {
  try {
    const stamp = JSON.parse(await readFile(STAMP, 'utf8')) as { key: string; paths: string[] };
    return stamp.key === key && stamp.paths.every((file) => existsSync(file));
  } catch {
    return false; // There is none, or a kill has torn it: what is there is found again.
  }
}
