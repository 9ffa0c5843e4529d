// Ends what a process has started, in whatever group or session: `detached` children have their own. Plain JavaScript,
// because the thread that watches a host has no loader.
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import process from 'node:process';

/** A process that starts others while they are ended is looked at again, but not for ever. */
const MOST_ROUNDS = 8;

/**
 * Kills the descendants of a process, and on Linux everything that has `mark` in its environment, which a daemon that left
 * its family still has. Not the process itself.
 */
export function endDescendants(pid, mark) {
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const found = process.platform === 'linux' ? foundInProc(pid, mark) : descendantsIn(listed(), pid);
    if (found.size === 0) return;
    for (const one of found) {
      try {
        process.kill(one, 'SIGKILL');
      } catch {
        // It has ended meanwhile.
      }
    }
  }
}

function foundInProc(pid, mark) {
  const parents = new Map();
  const marked = new Set();
  for (const name of readdirSync('/proc')) {
    const one = Number(name);
    if (!Number.isInteger(one) || one === pid || one === process.pid) continue;
    const stat = read(`/proc/${name}/stat`);
    // `pid (name) state parent …`, in which the name may have anything in it.
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (stat === '' || state === 'Z') continue;
    parents.set(one, Number(parent));
    if (`\0${read(`/proc/${name}/environ`)}\0`.includes(`\0${mark}\0`)) marked.add(one);
  }
  return new Set([...descendantsIn(parents, pid), ...marked]);
}

/** Where a process has ended, or is another user's, there is nothing to read. */
function read(file) {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return '';
  }
}

function listed() {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid='], { encoding: 'utf8' }).trim().split('\n');
  return new Map(lines.map((line) => line.trim().split(/\s+/).map(Number)));
}

function descendantsIn(parents, pid) {
  const below = new Set();
  for (let size = -1; size !== below.size;) {
    size = below.size;
    for (const [one, parent] of parents) if (parent === pid || below.has(parent)) below.add(one);
  }
  return below;
}
