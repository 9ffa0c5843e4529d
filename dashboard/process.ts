import { fork } from 'node:child_process';
import path from 'node:path';
import { IN_CHECKOUT, SERVERS_ARE_HELD_UP } from '../core/installation.ts';
import { OWN_LOADER, ownModule } from '../engine/own-module.ts';
import { inheritedEnvironment } from '../workers/inherited-environment.ts';
import { settingsToEnv } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';
import type { ProcessKind } from '../workers/supervised-process.ts';
import type { OpenOptions } from './open.ts';

const MAIN = ownModule('main', import.meta.url);

/** The dashboard beside workers, for whoever holds these up. It says its address when it is ready. */
export function dashboardProcess(settings: WorkerSettings, options: OpenOptions): ProcessKind {
  /** One that is started again keeps the address that people have open. */
  let { port } = options;
  return {
    title: 'the dashboard',
    spawn: (output) =>
      fork(MAIN, [JSON.stringify({ ...options, ...(port !== undefined && { port }) })], {
        execArgv: [...OWN_LOADER],
        env: {
          ...inheritedEnvironment(),
          ...settingsToEnv(settings),
          // Nobody is to be told to start what is started again anyway.
          [SERVERS_ARE_HELD_UP]: '1',
          // How pages are written is said there, whatever folder this is started from.
          ...(IN_CHECKOUT && { TSX_TSCONFIG_PATH: path.join(import.meta.dirname, '..', 'tsconfig.json') }),
        },
        stdio: ['ignore', output, output, 'ipc'],
        detached: true,
      }),
    whenReady: (child, ready, failed) =>
      child.on('message', ({ ready: url, failed: why }: { ready?: string; failed?: string }) => {
        if (url !== undefined) {
          port = Number(new URL(url).port);
          ready([url]);
        }
        if (why !== undefined) failed(why);
      }),
  };
}
