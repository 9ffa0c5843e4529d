import { archiveForHere, downloadReleased, RELEASES } from './released-archive.ts';
import type { Archives } from './released-archive.ts';
import { BINARIES, cachedBinary } from './server-binaries.ts';
import type { Binary } from './server-binaries.ts';

/** Of release v1.8.0. */
const ARCHIVES: Archives = {
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

/** The object store as its makers release it, in the cache; undefined, and said, where `downloadReleased` says no. */
export async function downloadObjectStore(
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
  host = RELEASES,
  archive = archiveForHere(ARCHIVES),
): Promise<Binary | undefined> {
  const { title, version } = BINARIES.versitygw;
  const target = cachedBinary('versitygw', env);
  const release = {
    title: `${title} ${version}`,
    at: `versity/versitygw/releases/download/${version}`,
    archive,
    member: `${archive?.name}/versitygw`,
    target,
  };
  return (await downloadReleased(release, say, env, host)) ? { path: target, from: 'downloaded' } : undefined;
}
