import { chownSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Limits, LongCommand, Mount } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';
import type { HostFolders } from '../linux/host.ts';
import { processEnvironment, writableSizes } from '../linux/launcher.ts';
import { GROUP, PASSWD, SANDBOX_UID } from '../linux/user.ts';

/** A folder of our own with an OCI bundle (config.json and rootfs) and the state of its container. */
export interface Bundle {
  folder: string;
  state: string;
}

/** Writes a bundle: a root with nothing in it but places for mounts. Whoever asks removes the folder. */
export function writeBundle(
  argv: readonly string[],
  command: Pick<LongCommand, 'env' | 'links'>,
  limits: Limits,
  mounts: readonly Mount[],
  host: HostFolders,
  asOther: boolean,
): Bundle {
  const folder = mkdtempSync(path.join(tmpdir(), 'gradus-gvisor-'));
  const root = path.join(folder, 'rootfs');
  const state = path.join(folder, 'state');
  mkdirSync(path.join(root, 'etc'), { recursive: true });
  mkdirSync(state);
  for (const { at, to } of [...host.symlinks, ...(command.links ?? [])]) {
    mkdirSync(path.dirname(path.join(root, at)), { recursive: true });
    symlinkSync(to, path.join(root, at));
  }
  writeFileSync(path.join(root, 'etc/passwd'), PASSWD);
  writeFileSync(path.join(root, 'etc/group'), GROUP);
  const binds = [...host.binds.map((at) => ({ at, from: at })), ...mounts];
  const config = {
    ociVersion: '1.0.0',
    hostname: 'sandbox',
    process: {
      user: { uid: SANDBOX_UID, gid: SANDBOX_UID },
      args: argv,
      env: Object.entries(processEnvironment(command)).map(([name, value]) => `${name}=${value}`),
      cwd: WORK_FOLDER,
      capabilities: {},
      noNewPrivileges: true,
    },
    root: { path: 'rootfs', readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc' },
      ...writableSizes(limits).map(({ at, bytes }) => ({
        destination: at,
        type: 'tmpfs',
        source: 'tmpfs',
        options: ['mode=1777', `size=${bytes}`],
      })),
      ...binds.map(({ at, from }) => ({
        destination: at,
        type: 'bind',
        source: from,
        options: ['ro', 'rbind'],
      })),
    ],
    linux: { namespaces: ['pid', 'network', 'ipc', 'uts', 'mount'].map((type) => ({ type })) },
  };
  writeFileSync(path.join(folder, 'config.json'), JSON.stringify(config));
  if (asOther)
    for (const place of [folder, state, root, path.join(root, 'etc')])
      chownSync(place, SANDBOX_UID, SANDBOX_UID);
  return { folder, state };
}
