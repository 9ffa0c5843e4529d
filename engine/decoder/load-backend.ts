import type { ModelConfig } from '../../core/model/config.ts';
import type { BackendOptions, DecoderBackend } from './backend.ts';
import { findAddon } from './native/addon.ts';
import { NativeBackend } from './native-backend.ts';
import { OnnxBackend } from './onnx-backend.ts';
import type { DecoderWeights } from './packed-weights.ts';

/** `cuda` is the stock decoder with onnxruntime's CUDA provider. */
export type DecoderBackendKind = 'native' | 'stock' | 'cuda';

/** The native decoder where its addon is built, unless `GRADUS_DECODER` is `stock` or `cuda`; else the stock one. */
export function backendKind(env: NodeJS.ProcessEnv = process.env): DecoderBackendKind {
  if (env['GRADUS_DECODER'] === 'cuda') return 'cuda';
  return env['GRADUS_DECODER'] !== 'stock' && 'addon' in findAddon() ? 'native' : 'stock';
}

/** Which decoder runs here, for people. */
export function backendName(kind: DecoderBackendKind = backendKind()): string {
  if (kind === 'native') return 'native decoder';
  if (kind === 'cuda') return 'stock decoder on the GPU (CUDA provider)';
  const found = findAddon();
  const why = 'addon' in found ? 'GRADUS_DECODER=stock' : found.missing;
  return `stock decoder, which is slower (${why})`;
}

/** Both draw the same bits. Throws Error for a native one that is not there, and for packed weights in another one. */
export function createDecoderBackend(
  kind: DecoderBackendKind,
  config: ModelConfig,
  weights: DecoderWeights,
  options: BackendOptions,
): Promise<DecoderBackend> {
  if (kind !== 'native') {
    if ('dtype' in weights) throw new Error(`the ${kind} decoder has no ${weights.dtype}`);
    return OnnxBackend.load(config, weights, options.threads, kind === 'cuda' ? ['cuda', 'cpu'] : ['cpu']);
  }
  const found = findAddon();
  if (!('addon' in found)) throw new Error(found.missing);
  return Promise.resolve(NativeBackend.load(found, config, weights, options));
}
