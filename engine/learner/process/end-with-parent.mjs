// Beside the learner's event loop, which a kernel keeps for as long as it takes: ends the process when its parent is
// gone, because it holds gigabytes that the parent's successor needs. Plain JavaScript, so that it needs no loader.
import process from 'node:process';
import { workerData } from 'node:worker_threads';

const LOOK_EVERY_MS = 200;

setInterval(() => {
  if (process.ppid !== workerData.parent) process.kill(process.pid, 'SIGKILL');
}, LOOK_EVERY_MS);
