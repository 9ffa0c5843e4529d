import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

/** SHA-256 of the C++ files of a folder, in hexadecimal: an addon says from which it was built. */
export function sourcesDigest(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).toSorted()) {
    if (/\.(cc|h)$/.test(name)) hash.update(name).update(readFileSync(path.join(folder, name)));
  }
  return hash.digest('hex');
}
