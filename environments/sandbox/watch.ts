import type { Ending, Limits } from './contract.ts';
import { proportionalMemory, usageOfTree } from './process-tree.ts';

/** Shortest and longest time between two looks, milliseconds: short commands are looked at closely, long ones seldom. */
const FIRST_LOOK = 20;
const LONGEST_PAUSE = 100;

/**
 * Looks at a sandbox from outside and says once, when wall time, processor time or memory is used up. The kernel's limits
 * are of single processes; this is what holds for all of them together where no cgroup does.
 */
export function watch(
  root: number,
  limits: Pick<Limits, 'cpuSeconds' | 'memoryBytes'> & { wallSeconds: number },
  reached: (ending: Ending) => void,
): { stop(): void } {
  const wall = Number.isFinite(limits.wallSeconds)
    ? setTimeout(() => end('wall-time'), limits.wallSeconds * 1000)
    : undefined;
  let pause = FIRST_LOOK;
  let next = setTimeout(look, pause);

  function look(): void {
    const usage = usageOfTree(root);
    if (usage.cpuSeconds > limits.cpuSeconds) return end('cpu-time');
    if (usage.memoryBytes > limits.memoryBytes) {
      const bytes = proportionalMemory(usage.pids) ?? usage.memoryBytes;
      if (bytes > limits.memoryBytes) return end('memory');
    }
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
