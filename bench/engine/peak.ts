import { Worker } from 'node:worker_threads';
import { loadTensorflowBackend } from '../../engine/learner/tensorflow/backend.ts';
import { serveChild } from '../child.ts';

// What the processor reaches at best, in a process of its own: libtensorflow reads how many threads it has when it is loaded.

/** Large enough that nothing but the multiplication counts, small enough to be done in well under a second. */
const SIDE = 2048;
/** Each figure is the best of what fits in so many milliseconds. */
const MEASURED_MS = 2000;

function quickestMs(work: () => unknown): number {
  let best = Infinity;
  for (const end = performance.now() + MEASURED_MS; performance.now() < end;) {
    const started = performance.now();
    work();
    best = Math.min(best, performance.now() - started);
  }
  return best;
}

/** Comparing equal bytes reads all of them, and does next to nothing else. Plain JavaScript, for a thread needs no loader. */
const READER = `
const { workerData: { size, milliseconds }, parentPort } = require('node:worker_threads');
const [one, other] = [Buffer.alloc(size / 2, 1), Buffer.alloc(size / 2, 1)];
let best = Infinity;
for (const end = performance.now() + milliseconds; performance.now() < end; ) {
  const started = performance.now();
  if (!one.equals(other)) throw new Error('memory that was not written has changed');
  best = Math.min(best, performance.now() - started);
}
parentPort.postMessage(best);
`;

const readMs = (size: number): Promise<number> =>
  new Promise((resolve, reject) => {
    const workerData = { size, milliseconds: MEASURED_MS };
    new Worker(READER, { eval: true, workerData }).once('message', resolve).once('error', reject);
  });

await serveChild({
  /** Operations per second of a product of two square matrices of float32 by libtensorflow. */
  async flops() {
    const { tf } = await loadTensorflowBackend('cpu');
    const [a, b] = [tf.randomNormal([SIDE, SIDE]), tf.randomNormal([SIDE, SIDE])];
    const milliseconds = quickestMs(() => {
      const product = tf.matMul(a, b);
      product.dataSync();
      product.dispose();
    });
    return { perSecond: (2 * SIDE ** 3) / (milliseconds / 1000) };
  },

  /** Bytes per second with which `threads` threads read `size` bytes again and again, a part each. */
  async read({ threads, size }: { threads: number; size: number }) {
    const part = 2 * Math.floor(size / threads / 2);
    const times = await Promise.all(Array.from({ length: threads }, () => readMs(part)));
    return { perSecond: (part * threads) / (Math.max(...times) / 1000) };
  },
});
