import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';

const FOLLOW = pathToFileURL(path.join(import.meta.dirname, '../../infra/setup/follow-parent.mjs')).href;

/** Starts a server of the tests from its sources. It ends with this process, also where this one is killed. */
export const spawnServer = (
  main: string,
  args: readonly string[],
): ChildProcess & { stdout: Readable; stderr: Readable } =>
  spawn(process.execPath, ['--import', FOLLOW, '--import', 'tsx', main, ...args], {
    // The fourth is a pipe that nobody writes to: it closes with this process.
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  }) as ChildProcess & { stdout: Readable; stderr: Readable };
