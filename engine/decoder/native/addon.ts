import { existsSync, readdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { messageOf } from '../../../core/errors.ts';
import { commandLine } from '../../../core/installation.ts';
import type { PackedMatrix } from '../../onnx/packed-matrix.ts';
import type { Draws } from '../draws.ts';
import { sourcesDigest } from './sources.ts';

/** A session, or a block's binding to one; freed with the object, a session earlier by `close`. */
export type DecoderSession = object;
export type DecoderBinding = object;

/** What session.cc exports. Calls are synchronous, and throw what onnxruntime says. */
export interface NativeAddon {
  /** What `sourcesDigest` said of the files that it was built from. */
  sources?: string;
  /** The session shares with `sibling`, a session of the same weights, what the library keeps of them. */
  open(library: string, model: OpenRequest, sibling?: DecoderSession): DecoderSession;
  close(session: DecoderSession): void;
  /** Gives the pages of these bytes back to the system, which are zeros from then on; only Linux has such a call. */
  discard(weights: Uint8Array, start: number, length: number): void;
  prefill(session: DecoderSession, tokens: Int32Array, logits: Float32Array, rows: Float32Array): void;
  bind(session: DecoderSession, block: BindRequest): DecoderBinding;
  step(binding: DecoderBinding, draws: Draws): void;
  feed(session: DecoderSession, piece: FeedRequest, draws: Draws): void;
  /** One row; `out` gets token, margin, total, and how many ids `kept` got. */
  draw(
    logits: Float32Array,
    temperature: number,
    topK: number,
    topP: number,
    u: number,
    out: Float64Array,
    kept: Int32Array,
  ): void;
  /** Those that run on this processor, the fastest first, which is the one that sessions take. All compute the same bits. */
  kernels: readonly string[];
  /** Rounds rows [.., in] into a matrix, from its row `first` on. */
  pack(matrix: PackedMatrix, data: Uint8Array, first: number, weights: Float32Array): void;
  /** y [rows, out] = x [rows, in] · the matrix. */
  multiply(kernels: string, matrix: PackedMatrix, data: Uint8Array, x: Float32Array, y: Float32Array): void;
}

export interface OpenRequest {
  graph: Uint8Array;
  weights: Uint8Array;
  /** Which tensors of the graph lie in `weights`, and from which byte on. */
  tensors: readonly { name: string; type: string; start: number; shape: readonly number[] }[];
  threads: number;
  layers: number;
  heads: number;
  headSize: number;
  vocabulary: number;
  /** Sequences that a graph for pieces of several tokens is for; 0 for one that prefills and decodes. */
  lanes: number;
}

/** A piece for each of n lanes, of the G that the session has; arrays of [n] unless said otherwise. */
export interface FeedRequest {
  /** [S], the pieces end to end. */
  tokens: Int32Array;
  sizes: Int32Array;
  lengths: Int32Array;
  capacities: Int32Array;
  /** Any bound on the lengths after the piece. */
  totals: Int32Array;
  /** The lanes' caches in turn, keys and values of each layer, each [K, C, D]. */
  caches: readonly Float32Array[];
  /** [G, V] */
  logits: Float32Array;
}

interface BindRequest {
  parts: readonly Float32Array[];
  tokens: Int32Array;
  lengths: Int32Array;
  logits: Float32Array;
  count: number;
  capacity: number;
  total: number;
}

/** Where `npm run setup` puts the addon, as a link into the cache; `GRADUS_DECODER_ADDON` names another build. */
const addonFile = (): string =>
  process.env['GRADUS_DECODER_ADDON'] ?? path.join(import.meta.dirname, 'decoder.node');

export type FoundAddon = { addon: NativeAddon; library: string } | { missing: string };

let found: FoundAddon | undefined;

/** The addon with the onnxruntime library that it runs on, or why there is none: then the stock decoder serves. */
export function findAddon(): FoundAddon {
  found ??= search();
  return found;
}

function search(): FoundAddon {
  const file = addonFile();
  if (!existsSync(file))
    return { missing: `the native decoder is not built: \`${commandLine('setup')}\` builds it` };
  const library = onnxruntimeLibrary();
  if (library === undefined) return { missing: 'onnxruntime-node brings no library for this machine' };
  try {
    const addon = createRequire(import.meta.url)(file) as NativeAddon;
    if (addon.sources !== sourcesDigest(import.meta.dirname)) {
      return {
        missing: `the native decoder is of other sources than these: \`${commandLine('setup')}\` builds it anew`,
      };
    }
    return { addon, library };
  } catch (error) {
    return {
      missing: `the native decoder cannot be loaded (${messageOf(error)}): \`${commandLine('setup')}\` builds it anew`,
    };
  }
}

/** The library that onnxruntime-node itself loads. */
function onnxruntimeLibrary(): string | undefined {
  const main = createRequire(import.meta.url).resolve('onnxruntime-node');
  const bin = path.join(main.slice(0, main.lastIndexOf(`${path.sep}dist${path.sep}`)), 'bin');
  const version = readdirSync(bin).find((name) => name.startsWith('napi-v'));
  if (version === undefined) return undefined;
  const folder = path.join(bin, version, process.platform, process.arch);
  const name = existsSync(folder)
    ? readdirSync(folder).find((file) => /^libonnxruntime\.(so|.*dylib)/.test(file))
    : undefined;
  return name === undefined ? undefined : path.join(folder, name);
}
