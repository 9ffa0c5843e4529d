import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';

/** As `sha256sum` writes and checks it. */
const RECORD = 'SHA256SUMS';

/** SHA-256 in hex, read as a stream: some of these files are hundreds of megabytes. */
async function sha256OfFile(file: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(file), hash);
  return hash.digest('hex');
}

/** Writes down the SHA-256 of every file below a folder whose content has just been made. */
export async function recordDigests(folder: string): Promise<void> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && entry.name !== RECORD)
    .map((entry) => path.relative(folder, path.join(entry.parentPath ?? entry.path, entry.name)))
    .toSorted();
  const lines = [];
  for (const file of files) lines.push(`${await sha256OfFile(path.join(folder, file))}  ${file}\n`);
  const fresh = path.join(folder, `${RECORD}.${process.pid}`);
  await writeFile(fresh, lines.join(''));
  await rename(fresh, path.join(folder, RECORD));
}

/**
 * Whether a folder's files are what was made: each of them there, with the recorded SHA-256. False where nothing was
 * recorded: what a folder without a record holds is nobody's word, and is made anew.
 */
export async function isAsRecorded(folder: string): Promise<boolean> {
  const record = await readFile(path.join(folder, RECORD), 'utf8').catch(() => '');
  const lines = record.split('\n').filter((line) => line !== '');
  if (lines.length === 0) return false;
  for (const line of lines) {
    const [digest, file] = [line.slice(0, 64), line.slice(66)];
    const found = await sha256OfFile(path.join(folder, file)).catch(() => undefined);
    if (found !== digest) return false;
  }
  return true;
}

/**
 * Makes a file, which lies alone in a temporary folder of the same file system, the content of its target's folder, with
 * its digest: all of it is there, or nothing. What was there is replaced.
 */
export async function assertRecorded(file: string, target: string): Promise<void> {
  const entry = path.join(path.dirname(file), 'entry');
  await mkdir(entry);
  await rename(file, path.join(entry, path.basename(target)));
  await recordDigests(entry);
  await rm(path.dirname(target), { recursive: true, force: true });
  await rename(entry, path.dirname(target));
}
