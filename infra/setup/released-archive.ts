import { chmod, mkdir, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import { messageOf } from '../../core/errors.ts';
import { cacheRoot } from '../cache-dir.ts';
import { withLock } from './file-lock.ts';
import { whyUnreached } from './reached.ts';
import { isAsRecorded, assertRecorded } from './recorded-digests.ts';
import { timeoutSignal } from '../../core/timeout-signal.ts';

export const RELEASES = 'https://github.com/';
/** How long the download may take, milliseconds; archives have some 20 to 60 MB. */
const DOWNLOAD_MS = 5 * 60_000;

/** An archive without its `.tar.gz`, and what its SHA-256 must be (ADR 0045 says where these are from). */
export interface Archive {
  name: string;
  sha256: string;
}

/** By platform and architecture as Node names them. */
export type Archives = Readonly<Record<string, Archive>>;

export const archiveForHere = (archives: Archives): Archive | undefined =>
  archives[`${process.platform}-${process.arch}`];

export interface Release {
  /** What a person calls it, with its version. */
  title: string;
  /** Where its archives are, below the host. */
  at: string;
  /** That of this machine. */
  archive: Archive | undefined;
  /** The program in the archive. */
  member: string;
  /** Where it is kept: alone in a folder of the cache. */
  target: string;
}

/**
 * Keeps a program as its makers release it; says whether it is there. Where there is no release for this machine, the host
 * does not answer in a few seconds, or what comes has another SHA-256 than it must, that is said, and nothing is kept.
 */
export async function downloadReleased(
  release: Release,
  say: (text: string) => void,
  env: NodeJS.ProcessEnv,
  host: string,
): Promise<boolean> {
  const root = cacheRoot(env);
  // In the cache's own file system, so that the rename at the end is atomic.
  const folder = path.join(root, `download-${path.basename(release.target)}`);
  const waiting = (pid: number): void => say(`${release.title}: waiting for process ${pid} …`);
  return withLock(`${folder}.lock`, waiting, async () => {
    if (await isAsRecorded(path.dirname(release.target))) return true;
    await rm(folder, { recursive: true, force: true }); // what a killed download left
    await mkdir(folder);
    try {
      return await download(release, say, host, folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
}

async function download(
  { title, at, archive, member, target }: Release,
  say: (text: string) => void,
  host: string,
  folder: string,
): Promise<boolean> {
  const not = (why: string): false => {
    say(`${title}: not downloaded, since ${why}`);
    return false;
  };
  if (!archive) return not(`there is no release for ${process.platform} on ${process.arch}`);
  const unreached = await whyUnreached(host);
  if (unreached !== undefined) return not(unreached);
  try {
    say(`${title}: downloading …`);
    const url = `${host}${at}/${archive.name}.tar.gz`;
    const response = await fetch(url, { signal: timeoutSignal(DOWNLOAD_MS) });
    if (!response.ok) return not(`${url} answered ${response.status}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    if (sha256 !== archive.sha256)
      return not(`${url} has SHA-256 ${sha256}, and ${archive.sha256} was expected`);
    const files = await unpackTar(await promisify(gunzip)(bytes));
    const data = files.find(({ header }) => header.name === member)?.data;
    if (!data) return not(`${url} has no ${member}`);
    const file = path.join(folder, path.basename(target));
    await writeFile(file, data);
    await chmod(file, 0o755);
    await assertRecorded(file, target);
    return true;
  } catch (error) {
    return not(messageOf(error));
  }
}
