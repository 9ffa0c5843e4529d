import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import { gunzip } from 'node:zlib';
import { unpackTar } from 'modern-tar';
import { messageOf } from '../../core/errors.ts';
import { cacheRoot } from '../cache-dir.ts';
import { whyUnreached } from './reached.ts';
import { keepRecorded } from './recorded-digests.ts';
import { BINARIES, cachedBinary } from './server-binaries.ts';
import type { Binary } from './server-binaries.ts';

const DOWNLOADS = 'https://github.com/';
/** How long the download may take, milliseconds; it has some 20 MB. */
const DOWNLOAD_MS = 5 * 60_000;

/**
 * The archives of release v1.8.0, by platform and architecture as Node names them, with their SHA-256 (ADR 0045 says
 * where these are from).
 */
const ARCHIVES: Readonly<Record<string, { name: string; sha256: string }>> = {
  'linux-x64': {
    name: 'versitygw_v1.8.0_Linux_x86_64',
    sha256: '2ba2c734d10d2c4e651d03182cb4b246656bc735a2f282db7b0b73fba6073467',
  },
  'linux-arm64': {
    name: 'versitygw_v1.8.0_Linux_arm64',
    sha256: 'b34051d33f5a9c457f790896acb7bd7d7e15ad8d92efb70616b924f37e401910',
  },
  'darwin-arm64': {
    name: 'versitygw_v1.8.0_Darwin_arm64',
    sha256: '4953096f65a9c0d62ab184fb6b2ba7c2435229205cf00a56cb62cd4bf6b216ca',
  },
  'darwin-x64': {
    name: 'versitygw_v1.8.0_Darwin_x86_64',
    sha256: '104bd978e80ef0173554cfd8630ccc5bac24b00da440510b60365a3b6b6ab134',
  },
};

/**
 * The object store as its makers release it, in the cache; undefined, and said, where there is no release for this machine,
 * their host does not answer in a few seconds, or what comes has another SHA-256 than it must: then nothing of it is kept.
 */
export async function downloadObjectStore(
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
  host = DOWNLOADS,
  archive = ARCHIVES[`${process.platform}-${process.arch}`],
): Promise<Binary | undefined> {
  const { title, version } = BINARIES.versitygw;
  const not = (why: string): undefined => {
    say(`${title}: not downloaded, since ${why}`);
  };
  if (!archive) return not(`there is no release for ${process.platform} on ${process.arch}`);
  const unreached = await whyUnreached(host);
  if (unreached !== undefined) return not(unreached);
  const root = cacheRoot(env);
  await mkdir(root, { recursive: true });
  const folder = await mkdtemp(path.join(root, 'versitygw-'));
  try {
    say(`${title} ${version}: downloading …`);
    const url = `${host}versity/versitygw/releases/download/${version}/${archive.name}.tar.gz`;
    const response = await fetch(url, { signal: AbortSignal.timeout(DOWNLOAD_MS) });
    if (!response.ok) return not(`${url} answered ${response.status}`);
    const bytes = Buffer.from(await response.arrayBuffer());
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    if (sha256 !== archive.sha256)
      return not(`${url} has SHA-256 ${sha256}, and ${archive.sha256} was expected`);
    const files = await unpackTar(await promisify(gunzip)(bytes));
    const data = files.find(({ header }) => header.name === `${archive.name}/versitygw`)?.data;
    if (!data) return not(`${url} has no ${archive.name}/versitygw`);
    const file = path.join(folder, 'versitygw');
    await writeFile(file, data);
    await chmod(file, 0o755);
    const target = cachedBinary('versitygw', env);
    await keepRecorded(file, target);
    return { path: target, from: 'downloaded' };
  } catch (error) {
    return not(messageOf(error));
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
