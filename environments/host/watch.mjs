// A thread of a host, which turns however busy the host's own event loop is. It ends the process when the worker that
// started it is gone (descriptor 4 is a pipe that closes then, also after kill -9), or when memory, inside and outside
// of the heap, passes the limit. Plain JavaScript, so that it needs no loader.
import { writeSync } from 'node:fs';
import { Socket } from 'node:net';
import process from 'node:process';
import { workerData } from 'node:worker_threads';
import { endDescendants } from './descendants.mjs';

const LIFELINE = 4;
const PERIOD_MS = 100;

// With its group, and what left that: all that users' code has started.
const end = () => {
  endDescendants(process.pid, workerData.mark);
  process.kill(-process.pid, 'SIGKILL');
};

const lifeline = new Socket({ fd: LIFELINE, readable: true, writable: true });
lifeline.on('close', end);
lifeline.on('error', end);
lifeline.resume();

setInterval(() => {
  if (process.memoryUsage.rss() <= workerData.memoryBytes) return;
  writeSync(LIFELINE, workerData.tooMuchMemory);
  end();
}, PERIOD_MS);
