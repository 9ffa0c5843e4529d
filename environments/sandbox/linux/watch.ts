import type { Ending, Limits } from '../contract.ts';
import { WORK_FOLDER } from '../contract.ts';
import { filesIn, memoryFiles, proportionalMemory, usageOfTree } from './process-tree.ts';

/** Shortest and longest time between two looks, milliseconds: short commands are looked at closely, long ones seldom. */
const FIRST_LOOK = 20;
const LONGEST_PAUSE = 100;

/** An open socket can hold 208 KB of the kernel's memory that no other figure shows: all together hold some 400 MB. */
const MOST_DESCRIPTORS = 2048;
/** A file takes a kilobyte of the kernel's memory, also when it is empty. */
const BYTES_PER_FILE = 1024;
const WRITABLE = [WORK_FOLDER, '/tmp', '/dev/shm'];

/**
 * Looks at a sandbox from outside and says once, when wall time, processor time or memory is used up. The kernel's limits
 * are of single processes; this is what holds for all of them together where no cgroup does.
 */
export function watch(
  root: number,
  limits: Pick<Limits, 'wallSeconds' | 'cpuSeconds' | 'memoryBytes' | 'writableBytes'>,
  reached: (ending: Ending) => void,
  keepsMemoryInFiles: boolean,
): { stop(): void } {
  const wall = Number.isFinite(limits.wallSeconds)
    ? setTimeout(() => end('wall-time'), limits.wallSeconds * 1000)
    : undefined;
  let pause = FIRST_LOOK;
  let next = setTimeout(look, pause);

  function look(): void {
    const usage = usageOfTree(root);
    if (usage.cpuSeconds > limits.cpuSeconds) return end('cpu-time');
    if (usage.descriptors > MOST_DESCRIPTORS) return end('memory');
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
    reached(ending);
  }

  return { stop };
}
