import { GradusError } from '../../core/errors.ts';
import type { RolloutDtype } from '../../core/schema/policy.ts';
import { commandLine } from '../../core/installation.ts';
import { randomKey } from '../../core/random.ts';
import { inTurns } from '../in-pieces.ts';
import type { LoraAdapter } from '../lora/adapter.ts';
import { addInPieces } from '../lora/merge-adapter.ts';
import { parameterCount, weightShapes, type ModelConfig, type Weights } from '../../core/model/config.ts';
import { assertServable } from '../onnx/decoder-graph.ts';
import type { LocalPolicy, SampleRequest, SampleResult } from '../policy.ts';
import { DecoderThread } from './decoder-thread.ts';
import { backendKind, backendName } from './load-backend.ts';
import type { DecoderBackendKind } from './load-backend.ts';
import { findAddon } from './native/addon.ts';
import { packedLayout, packInPieces } from './packed-weights.ts';
import type { DecoderWeights, PackedWeights } from './packed-weights.ts';
import type { ThreadSettings } from './messages.ts';

export interface DecoderOptions {
  /** Default: the native one where it is built. What is sampled does not depend on it. */
  backend?: DecoderBackendKind;
  /** Threads that compute. A small model has a batch on each, a large one has one batch that all work on. Default 2. */
  threads?: number;
  /** Bytes for the caches of episodes that wait for a tool and of prefixes, over all threads. Default 512 MiB. */
  cacheBytes?: number;
  /** Episodes decoded at the same time, over all threads; the others wait. Default 256. */
  maxBatch?: number;
}

/** By how many episodes a thread may be ahead before an episode goes elsewhere than its prefix. */
const TOLERATED_IMBALANCE = 4;

/**
 * The policy as a model on this machine's CPU, off the event loop.
 *
 * `sample` rejects with the signal's reason, or GradusError `policy/no-model` (load first), `policy/bad-request`,
 * `policy/closed`, or the retryable `policy/decoder-crashed`, after which `load` starts afresh. `load` rejects with
 * `policy/unsupported-model`, `policy/bad-weights` or `policy/no-dtype` before it spends anything; what was requested before it is
 * finished with the old weights, what comes after it waits for the new ones. (Between a small and a large model threads
 * are started anew, and what was requested before is rejected with the retryable `policy/decoder-replaced`.) The old
 * weights are freed before memory for the new ones is taken, so there are none while it lasts.
 *
 * Await `close` before `process.exit`: Node aborts a process whose thread is ended inside onnxruntime.
 */
export function createDecoder(options: DecoderOptions = {}): LocalPolicy {
  const { backend = backendKind(), threads = 2, cacheBytes = 512 * 2 ** 20, maxBatch = 256 } = options;
  return new Decoder({ backend, threads, cacheBytes, maxBatch });
}

/** Weights up to this many stay in a core's own cache from step to step, and a batch of its own is best for each core. */
const SMALL_MODEL = 4e6;

class Decoder implements LocalPolicy {
  version: string | undefined;
  private readonly options: Required<DecoderOptions>;
  private pool: DecoderThread[] = [];
  /** Which thread has an open session's cache. */
  private readonly seat = new Map<string, number>();
  private sessions: number[] = [];
  /** What the threads compute with lies here. */
  private memory: SharedArrayBuffer | undefined;
  /** Over when the last load is. */
  private loading: Promise<void> = Promise.resolve();
  private crashed = false;
  private closed = false;

  constructor(options: Required<DecoderOptions>) {
    this.options = options;
  }

  async load(
    version: string,
    config: ModelConfig,
    weights: Weights,
    adapter?: LoraAdapter,
    dtype: RolloutDtype = 'float32',
  ): Promise<void> {
    if (this.closed) throw closed();
    assertServable(config);
    checkWeights(config, weights);
    if (dtype !== 'float32' && this.options.backend !== 'native') throw noDtype(dtype, this.options.backend);
    const loaded = this.loading.then(() => this.replace(version, config, weights, adapter, dtype));
    this.loading = loaded.catch(() => undefined);
    await loaded;
  }

  async sample(request: SampleRequest, signal?: AbortSignal): Promise<SampleResult> {
    await this.loading;
    signal?.throwIfAborted();
    if (this.closed) throw closed();
    if (this.pool.length === 0) {
      const [type, what] = this.crashed ? ['decoder-crashed', 'crashed'] : ['no-model', 'has no weights'];
      throw new GradusError('policy', type, `The decoder ${what}. Call load() and repeat the request.`, {
        retryable: true,
      });
    }
    return this.pool[this.place(request)]!.sample(request, signal);
  }

  release(session: string): void {
    const index = this.seat.get(session);
    if (index === undefined) return;
    this.seat.delete(session);
    this.sessions[index]!--;
    this.pool[index]?.release(session);
  }

  async close(): Promise<void> {
    this.closed = true;
    this.version = undefined;
    this.memory = undefined;
    const { pool } = this;
    this.pool = [];
    await Promise.all(pool.map((thread) => thread.close(closed())));
  }

  private async replace(
    ...[version, config, weights, adapter, dtype = 'float32']: Parameters<LocalPolicy['load']>
  ): Promise<void> {
    if (this.closed) throw closed();
    const large = parameterCount(config) > SMALL_MODEL;
    const batches = large ? 1 : this.options.threads;
    this.version = undefined;
    const freed =
      this.pool.length === batches ? this.pool.map((thread) => thread.unload()) : this.restart(batches);
    const { pool } = this;
    await Promise.all(freed);
    const own =
      dtype === 'float32'
        ? await this.merged(config, weights, adapter)
        : await this.packed(config, weights, adapter, dtype);
    await Promise.all(pool.map((thread) => thread.load({ config, weights: own, exclusive: large })));
    if (this.pool === pool) this.version = version;
  }

  private async merged(
    config: ModelConfig,
    weights: Weights,
    adapter?: LoraAdapter,
  ): Promise<DecoderWeights> {
    const { flat, parts } = this.copy(config, weights);
    if (adapter) await inTurns(addInPieces(config, parts, adapter));
    return flat;
  }

  /** Matrix by matrix: beside the weights that are given there are the rounded ones, and no copy of all in float32. */
  private async packed(
    config: ModelConfig,
    weights: Weights,
    adapter: LoraAdapter | undefined,
    dtype: PackedWeights['dtype'],
  ): Promise<DecoderWeights> {
    const found = findAddon();
    if (!('addon' in found)) throw noDtype(dtype, 'native');
    const packed = { dtype, data: new Uint8Array(this.shared(packedLayout(config, dtype).bytes)) };
    await inTurns(packInPieces(found.addon, config, weights, packed, adapter));
    return packed;
  }

  /** Memory that threads share, that of the old weights where it fits. */
  private shared(bytes: number): SharedArrayBuffer {
    if (this.memory?.byteLength !== bytes) this.memory = new SharedArrayBuffer(bytes);
    return this.memory;
  }

  /** All weights end to end; `parts` are views of them. */
  private copy(config: ModelConfig, weights: Weights): { flat: Float32Array; parts: Weights } {
    const flat = new Float32Array(this.shared(parameterCount(config) * Float32Array.BYTES_PER_ELEMENT));
    const parts: Weights = new Map();
    let offset = 0;
    for (const [name, shape] of weightShapes(config)) {
      const { data: given } = weights.get(name)!;
      const data = flat.subarray(offset, offset + given.length);
      data.set(given);
      parts.set(name, { shape, data });
      offset += given.length;
    }
    return { flat, parts };
  }

  /** Threads for so many batches. Gives the ends of those that were there, which finish nothing more. */
  private restart(batches: number): Promise<void>[] {
    const ended = this.pool.map((thread) => thread.close(replaced()));
    this.crashed = false;
    this.seat.clear();
    this.sessions = Array.from({ length: batches }, () => 0);
    const { backend, threads, cacheBytes, maxBatch } = this.options;
    const settings: ThreadSettings = {
      backend,
      intraOpThreads: threads / batches,
      cacheBytes: Math.floor(cacheBytes / batches),
      maxBatch: Math.ceil(maxBatch / batches),
    };
    const pool: DecoderThread[] = [];
    const onCrash = (failure: GradusError) => {
      // One thread's end is everybody's: the others hold the same weights and are started again with it.
      if (this.pool !== pool) return;
      this.pool = [];
      this.version = undefined;
      this.crashed = true;
      for (const thread of pool) void thread.close(failure);
    };
    for (let i = 0; i < batches; i++) pool.push(new DecoderThread(settings, onCrash));
    this.pool = pool;
    return ended;
  }

  /** Where the session is; a new one goes where its prefix goes, unless that thread has more than its share. */
  private place({ session, prefix }: SampleRequest): number {
    const known = this.seat.get(session);
    if (known !== undefined) return known;
    const least = Math.min(...this.sessions);
    let index = randomKey(...prefix).k0 % this.pool.length;
    if (this.sessions[index]! > least + TOLERATED_IMBALANCE) index = this.sessions.indexOf(least);
    this.seat.set(session, index);
    this.sessions[index]!++;
    return index;
  }
}

const replaced = () =>
  new GradusError(
    'policy',
    'decoder-replaced',
    'The decoder was given a model of another size. Repeat the request.',
    { retryable: true },
  );
const noDtype = (dtype: RolloutDtype, backend: DecoderBackendKind) =>
  new GradusError(
    'policy',
    'no-dtype',
    `Only the native decoder samples in ${dtype}, and here is the ${backendName(backend)}. ` +
      `Run \`${commandLine('setup')}\` on the machines of rollout workers, without GRADUS_DECODER, or leave out "policy.dtype".`,
  );
const closed = () => new GradusError('policy', 'closed', 'The decoder was closed. Create another one.');

/** Throws `policy/bad-weights`. */
function checkWeights(config: ModelConfig, weights: Weights): void {
  for (const [name, shape] of weightShapes(config)) {
    const tensor = weights.get(name);
    const length = shape.reduce((a, b) => a * b, 1);
    if (tensor?.shape.join() === shape.join() && tensor.data.length === length) continue;
    const found = tensor === undefined ? 'is missing' : `is [${tensor.shape.join(', ')}]`;
    throw new GradusError(
      'policy',
      'bad-weights',
      `Weight ${name} ${found}, expected [${shape.join(', ')}]. Load the weights that belong to this configuration.`,
    );
  }
}
