import { existsSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { createRequire } from 'node:module';
import { GradusError, messageOf } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import type * as TensorFlow from '@tensorflow/tfjs';
import { NativeOps, type KernelBackend } from './native-ops.ts';

export type Tf = typeof TensorFlow;
export type TensorflowBackendKind = 'gpu' | 'cpu' | 'wasm';

/** Where tensors live and are computed. `native` is there when libtensorflow does the work. */
export interface TensorflowBackend {
  readonly tf: Tf;
  /** e.g. `tensorflow 2.20.0 cpu × 2`: what a step is repeatable on. */
  readonly name: string;
  readonly native: NativeOps | undefined;
  /**
   * Cores that a step is spread over: a micro-batch is computed in so many parts side by side, each on one core. Ops of
   * a small model are too short to be shared among cores one by one.
   */
  readonly threads: number;
  /** True when the kernels whose sums are not repeatable on a GPU must be avoided. */
  readonly gpu: boolean;
}

/** More parts than this are too small to be worth it. */
const MOST_THREADS = 16;

const require = createRequire(import.meta.url);

/**
 * The fastest backend that answers: libtensorflow on a GPU, else on the CPU. `kind` (or `GRADUS_LEARNER_BACKEND`)
 * asks for one; `wasm` is 40–70 times slower than libtensorflow and is only ever used on request.
 * Throws GradusError('learner', 'backend-missing') when it cannot be loaded.
 */
export async function loadTensorflowBackend(kind = kindFromEnvironment()): Promise<TensorflowBackend> {
  // libtensorflow reads these when it is loaded.
  process.env['TF_CPP_MIN_LOG_LEVEL'] ??= '3';
  process.env['TF_DETERMINISTIC_OPS'] ??= '1';
  const threads = threadsFromEnvironment();
  process.env['TF_NUM_INTRAOP_THREADS'] ??= '1';
  process.env['TF_NUM_INTEROP_THREADS'] ??= String(threads);
  restoreRemovedUtilities();
  if (kind === 'wasm') return loadWasm();
  if (kind === 'gpu') return loadNative('@tensorflow/tfjs-node-gpu', true);
  if (kind === undefined && hasGpu()) {
    try {
      return await loadNative('@tensorflow/tfjs-node-gpu', true);
    } catch (error) {
      if (!(error instanceof GradusError)) throw error;
    }
  }
  return loadNative('@tensorflow/tfjs-node', false);
}

/** The number of parts decides how gradients are summed, so it is part of what makes a step repeatable. */
function threadsFromEnvironment(): number {
  const text = process.env['GRADUS_LEARNER_THREADS'];
  if (text === undefined || text === '') return Math.min(availableParallelism(), MOST_THREADS);
  const threads = Number(text);
  if (Number.isInteger(threads) && threads >= 1) return threads;
  throw new GradusError(
    'learner',
    'backend',
    `GRADUS_LEARNER_THREADS is "${text}": use a whole number from 1`,
  );
}

function kindFromEnvironment(): TensorflowBackendKind | undefined {
  const kind = process.env['GRADUS_LEARNER_BACKEND'];
  if (kind === undefined || kind === '') return undefined;
  if (kind === 'gpu' || kind === 'cpu' || kind === 'wasm') return kind;
  throw new GradusError('learner', 'backend', `GRADUS_LEARNER_BACKEND is "${kind}": use gpu, cpu or wasm`);
}

/** A driver that answers shows its device file; what the GPU can do is found out by loading. */
function hasGpu(): boolean {
  return existsSync('/dev/nvidia0') || existsSync('/dev/dxg');
}

async function loadNative(addon: string, wantGpu: boolean): Promise<TensorflowBackend> {
  let tf: Tf;
  try {
    tf = require(addon) as Tf;
    await tf.ready();
  } catch (error) {
    throw new GradusError(
      'learner',
      'backend-missing',
      `The learner's TensorFlow (${addon}) cannot be loaded. Run \`${commandLine('setup')}\`, which builds it, ` +
        `or set GRADUS_LEARNER_BACKEND=wasm to train without it, some 50 times slower.\n${messageOf(error)}`,
      { cause: error },
    );
  }
  const kernels = tf.backend() as unknown as KernelBackend;
  const gpu = kernels.isUsingGpuDevice;
  if (wantGpu && !gpu) {
    throw new GradusError(
      'learner',
      'backend-missing',
      `${addon} loads but finds no GPU. Check the driver and the CUDA libraries, or set GRADUS_LEARNER_BACKEND=cpu.`,
    );
  }
  const threads = gpu ? 1 : threadsFromEnvironment();
  const name = `tensorflow ${kernels.binding.TF_Version} ${gpu ? 'gpu' : `cpu × ${threads}`}`;
  return { tf, name, native: new NativeOps(tf, kernels), gpu, threads };
}

async function loadWasm(): Promise<TensorflowBackend> {
  const tf = require('@tensorflow/tfjs') as Tf;
  // Loading it registers the backend.
  const wasm = require('@tensorflow/tfjs-backend-wasm') as { version_wasm: string };
  if (!(await tf.setBackend('wasm'))) {
    throw new GradusError(
      'learner',
      'backend-missing',
      `The WebAssembly backend does not start here. Run \`${commandLine('setup')}\`, which builds the TensorFlow backend.`,
    );
  }
  await tf.ready();
  return {
    tf,
    name: `wasm ${wasm.version_wasm} (some 50 times slower)`,
    native: undefined,
    gpu: false,
    threads: 1,
  };
}

/** tfjs-node 4.22 calls two functions of `node:util` that Node 23 removed. */
function restoreRemovedUtilities(): void {
  const legacy = require('node:util') as Record<string, unknown>;
  legacy['isNullOrUndefined'] ??= (value: unknown) => value === null || value === undefined;
  legacy['isArray'] ??= Array.isArray;
}
