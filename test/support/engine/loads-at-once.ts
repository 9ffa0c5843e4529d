import { isMainThread, Worker, workerData } from 'node:worker_threads';
import { findAddon } from '../../../engine/decoder/native/addon.ts';
import { openRequest } from '../../../engine/decoder/native-backend.ts';
import { packedLayout } from '../../../engine/decoder/packed-weights.ts';
import type { DecoderWeights } from '../../../engine/decoder/packed-weights.ts';
import { parameterCount } from '../../../core/model/config.ts';
import { smallConfig } from './random-model.ts';

// The first sessions of this process, each on a thread of its own, at one moment: half of them with packed weights.

const THREADS = 8;
/** A thread takes over neither tsx nor how it was registered. */
const START = `import('tsx/esm/api').then(({ register }) => {
  register();
  return import(require('node:worker_threads').workerData.file);
})`;
const found = findAddon();
if (!('addon' in found)) throw new Error(found.missing);
const { addon, library } = found;

if (isMainThread) {
  const ready = new Int32Array(new SharedArrayBuffer(4));
  const threads = Array.from(
    { length: THREADS },
    (_, number) =>
      new Worker(START, { eval: true, execArgv: [], workerData: { ready, number, file: import.meta.url } }),
  );
  await Promise.all(
    threads.map((thread) => new Promise((ended, failed) => thread.on('exit', ended).on('error', failed))),
  );
  console.log('loaded');
} else {
  const { ready, number } = workerData as { ready: Int32Array; number: number };
  const weights: DecoderWeights =
    number % 2 === 0
      ? new Float32Array(parameterCount(smallConfig))
      : { dtype: 'bfloat16', data: new Uint8Array(packedLayout(smallConfig, 'bfloat16').bytes) };
  const request = openRequest(smallConfig, weights, { threads: 1, lanes: 0 });
  // Without a model there is no session, but the library is there.
  try {
    addon.open(library, {} as never);
  } catch {}
  Atomics.add(ready, 0, 1);
  while (Atomics.load(ready, 0) < THREADS);
  addon.close(addon.open(library, request));
}
