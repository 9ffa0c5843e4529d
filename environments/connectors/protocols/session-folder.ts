import { lstatSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { hostname, tmpdir } from 'node:os';
import path from 'node:path';

// Folders of sessions lie in one of the process, whose name says which process it is: what a process that was killed has
// left is removed by the next one.

const PREFIX = `gradus-sessions-${hostname()}-`;

let ofProcess: string | undefined;

/** An empty folder, which is gone when this process has ended, if it is not removed before. */
export async function makeSessionFolder(): Promise<string> {
  if (ofProcess === undefined) {
    removeLeftBehind();
    const made = (ofProcess = mkdtempSync(path.join(tmpdir(), `${PREFIX}${process.pid}-`)));
    process.once('exit', () => rmSync(made, { recursive: true, force: true }));
  }
  return mkdtemp(path.join(ofProcess, 'session-'));
}

/** A program that is just ending may still write. */
export const removeSessionFolder = (folder: string): Promise<void> =>
  rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });

/** Of processes of this machine and this user that are no more. */
function removeLeftBehind(): void {
  for (const name of readdirSync(tmpdir())) {
    const pid = name.startsWith(PREFIX) ? Number(name.slice(PREFIX.length).split('-')[0]) : Number.NaN;
    if (!Number.isInteger(pid) || pid <= 0 || isAlive(pid)) continue;
    const folder = path.join(tmpdir(), name);
    // What another user's process has left we may not remove, and another of ours may just have removed it.
    const left = lstatSync(folder, { throwIfNoEntry: false });
    if (left && left.uid === (process.getuid?.() ?? left.uid))
      rmSync(folder, { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Somebody else's process may be there, and ours may not ask.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
