import { spawn } from 'node:child_process';
import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { LoopMeter } from '../../../workers/loop-meter.ts';

const work = (ms: number): void => {
  const busy = (): number => {
    const { user, system } = process.cpuUsage();
    return (user + system) / 1000;
  };
  // Of processor time, which other threads may have a part of, and by the clock.
  for (
    const [until, end] = [busy() + ms, performance.now() + ms];
    busy() < until || performance.now() < end;
  );
};

test('work that keeps the event loop is seen with its length', async () => {
  const meter = new LoopMeter();
  await delay(50);
  work(150);
  await delay(50);
  meter.stop();
  expect(meter.longest.busyMs).toBeGreaterThan(90);
  expect(meter.longest.busyMs).toBeLessThan(400);
});

test('a wait that takes no processor time is no block, whoever caused it', async () => {
  const meter = new LoopMeter();
  const lock = new Int32Array(new SharedArrayBuffer(4));
  Atomics.wait(lock, 0, 0, 500);
  await delay(50);
  meter.stop();
  expect(meter.longest.busyMs).toBeLessThan(100);
});

test('a process that was stopped for a while has not been busy', async () => {
  const meter = new LoopMeter();
  const shell = spawn('sh', ['-c', `kill -STOP ${process.pid}; sleep 0.7; kill -CONT ${process.pid}`]);
  await new Promise((resolve) => shell.once('exit', resolve));
  await delay(50);
  meter.stop();
  expect(meter.longest.busyMs).toBeLessThan(200);
});
