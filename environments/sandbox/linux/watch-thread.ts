import { readFileSync } from 'node:fs';
import { parentPort } from 'node:worker_threads';
import type { MessagePort } from 'node:worker_threads';
import type { Ending, Limits } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';
import { filesIn, memoryFiles, proportionalMemory, usageOfTree } from './process-tree.ts';

// A thread that looks at the sandboxes of its process from outside, and ends those that have used up wall time, processor
// time or memory. The kernel's limits are of single processes; this is what holds for all of them together where no
// cgroup does. It has an event loop of its own, which nobody's code keeps.

/** A sandbox, from before its program begins. */
export interface Watched {
  /** The process below which all of it is. */
  root: number;
  /** Our own child, with which it ends. */
  child: number;
  limits: Pick<Limits, 'wallSeconds' | 'cpuSeconds' | 'memoryBytes' | 'descriptors' | 'writableBytes'>;
  keepsMemoryInFiles: boolean;
  /** How long it may take to begin, seconds. */
  setupSeconds: number;
  /** Brings a message when the program has begun, takes the `Ending` before the sandbox is ended, closes when it is over. */
  port: MessagePort;
}

/** Shortest and longest time between two looks, milliseconds: short commands are looked at closely, long ones seldom. */
const FIRST_LOOK = 20;
const LONGEST_PAUSE = 100;

/** A file takes a kilobyte of the kernel's memory, also when it is empty. */
const BYTES_PER_FILE = 1024;
const WRITABLE = [WORK_FOLDER, '/tmp', '/dev/shm'];

function watch({ root, child, limits, keepsMemoryInFiles, setupSeconds, port }: Watched): void {
  const wallTime = (seconds: number): NodeJS.Timeout | undefined =>
    Number.isFinite(seconds) ? setTimeout(() => end('wall-time'), seconds * 1000) : undefined;
  // Who says that it has begun may be kept from saying so.
  let wall = wallTime(setupSeconds + limits.wallSeconds);
  port.once('message', () => {
    clearTimeout(wall);
    wall = wallTime(limits.wallSeconds);
  });
  port.once('close', stop);
  let pause = FIRST_LOOK;
  let next = setTimeout(look, pause);

  function look(): void {
    const usage = usageOfTree(root);
    if (usage.cpuSeconds > limits.cpuSeconds) return end('cpu-time');
    if (usage.descriptors > limits.descriptors) return end('memory');
    if (filesIn(root, WRITABLE) * BYTES_PER_FILE > limits.writableBytes) return end('memory');
    if (usage.memoryBytes > limits.memoryBytes) {
      const bytes = proportionalMemory(usage.pids) ?? usage.memoryBytes;
      if (bytes > limits.memoryBytes) return end('memory');
    }
    if (keepsMemoryInFiles && memoryFiles(usage.pids) > limits.memoryBytes) return end('memory');
    pause = Math.min(pause * 1.5, LONGEST_PAUSE);
    next = setTimeout(look, pause);
  }

  function stop(): void {
    clearTimeout(wall);
    clearTimeout(next);
  }

  function end(ending: Ending): void {
    stop();
    // What is over has not run over, however late this process hears of it.
    if (!isRunning(child)) return;
    port.postMessage(ending);
    process.kill(child, 'SIGKILL');
  }
}

/** A child keeps its number until this process has heard of its end: after that the number is somebody else's. */
function isRunning(pid: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return Number(parent) === process.pid && state !== 'Z' && state !== 'X';
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ESRCH') return false;
    throw error;
  }
}

parentPort!.on('message', watch);
parentPort!.postMessage('up');
