import { realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { messageOf } from '../../../core/errors.ts';
import { refuseCommand, shellWord } from '../command.ts';
import type { Mount } from '../contract.ts';

/** Every system has this folder, and nothing that a sandbox shows lies in it. */
const STAGE = '/mnt';
const OTHERS_READ = 0o4;
const OTHERS_ENTER = 0o1;

export interface MountPlan {
  binds: readonly { at: string; from: string }[];
  /** A command line that goes before the sandbox's own: it prepares what `binds` names. */
  prefix: readonly string[];
}

/**
 * How folders get into a sandbox that does not run as us. What anybody may read is mounted from where it is. What lies in
 * root's own folders, such as a virtual environment below /root, is first mounted where others may go, in a mount
 * namespace that nobody else sees and that ends with the sandbox. What is mounted must itself be readable for everybody.
 */
export function planMounts(mounts: readonly Mount[], asOther: boolean): MountPlan {
  const real = mounts.map(({ at, from }) => ({ at, from: realPath(from) }));
  for (const { from } of asOther ? real : []) {
    if (!othersRead(from))
      refuseCommand(`a sandboxed command mounts ${from}, which only its owner may read: "chmod -R go+rX" it`);
  }
  const hidden = asOther ? real.filter(({ from }) => !othersReach(from)) : [];
  if (hidden.length === 0) return { binds: real, prefix: [] };
  const staged = new Map(hidden.map(({ from }, i) => [from, `${STAGE}/${i}`]));
  const steps = [...staged].flatMap(([from, stage]) => [
    `${statSync(from).isDirectory() ? 'mkdir' : '>'} ${stage}`,
    `mount --bind ${shellWord(from)} ${stage}`,
  ]);
  return {
    binds: real.map(({ at, from }) => ({ at, from: staged.get(from) ?? from })),
    prefix: [
      '/usr/bin/unshare',
      '--mount',
      '--propagation',
      'private',
      '/bin/sh',
      '-c',
      [
        'set -e',
        'PATH=/usr/bin:/bin',
        `mount -t tmpfs -o mode=755,size=64k none ${STAGE}`,
        ...steps,
        'exec "$@"',
      ].join('\n'),
      'sh',
    ],
  };
}

function realPath(from: string): string {
  try {
    return realpathSync(from);
  } catch (error) {
    return refuseCommand(`a sandboxed command mounts ${from}, which is not there: ${messageOf(error)}`);
  }
}

/** Whether a user who is neither owner nor in the group could read it, had he a way to it. */
function othersRead(file: string): boolean {
  const stats = statSync(file);
  const needed = stats.isDirectory() ? OTHERS_READ | OTHERS_ENTER : OTHERS_READ;
  return (stats.mode & needed) === needed;
}

/** Whether such a user has a way to it. */
function othersReach(file: string): boolean {
  const folder = path.dirname(file);
  return (statSync(folder).mode & OTHERS_ENTER) !== 0 && (folder === file || othersReach(folder));
}
