import path from 'node:path';
import { commandLine } from '../../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../../../infra/cache-dir.ts';
import type { Sandbox } from '../contract.ts';
import { executable, findSetpriv, hostFolders, onPath } from '../linux/host.ts';
import { PRLIMIT } from '../linux/launcher.ts';
import { probe } from '../linux/probe.ts';
import { GVisor } from './gvisor.ts';

/** What infra/setup/server-binaries.ts builds. */
export const RUNSC_VERSION = 'v0.0.0-20260527191743-a81fd9dd382e';
const cachedRunsc = (): string =>
  path.join(cacheEntry(cacheRoot(), { name: 'runsc', version: RUNSC_VERSION }), 'runsc');

/** gVisor where it has run a command here, or why there is none. Nothing is built here: that takes minutes. */
export async function findGVisor(): Promise<{ sandbox: Sandbox } | { missing: string }> {
  if (process.platform !== 'linux') return { missing: 'gVisor needs Linux' };
  const runsc = executable([process.env['GRADUS_RUNSC'], ...onPath('runsc', process.env), cachedRunsc()]);
  if (runsc === undefined) {
    return {
      missing: `there is no runsc on PATH: install gVisor, or "${commandLine('setup sandbox --gvisor')}" builds it with Go`,
    };
  }
  if (executable([PRLIMIT]) === undefined) return { missing: `gVisor needs ${PRLIMIT}: install util-linux` };
  const user = findSetpriv(process.env);
  if ('missing' in user) return user;
  const sandbox = new GVisor({ runsc, ...user, host: hostFolders() });
  const wrong = await probe(sandbox);
  return wrong === undefined ? { sandbox } : { missing: `gVisor does not work here: ${wrong}` };
}
