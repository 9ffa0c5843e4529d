import type { ModelConfig } from '../model-config.ts';
import type { DecoderBackend } from './backend.ts';
import { findAddon } from './native/addon.ts';
import { NativeBackend } from './native-backend.ts';
import { OnnxBackend } from './onnx-backend.ts';

export type BackendKind = 'native' | 'stock';

/** The native decoder where its addon is built, unless `GRADUS_DECODER=stock`; else the stock one. */
export function backendKind(env: NodeJS.ProcessEnv = process.env): BackendKind {
  return env['GRADUS_DECODER'] !== 'stock' && 'addon' in findAddon() ? 'native' : 'stock';
}

/** Which decoder runs here, for people. */
export function backendName(kind: BackendKind = backendKind()): string {
  if (kind === 'native') return 'native decoder';
  const found = findAddon();
  const why = 'addon' in found ? 'GRADUS_DECODER=stock' : found.missing;
  return `stock decoder, which is slower (${why})`;
}

/** Both draw the same bits. Throws Error for a native one that is not there. */
export function loadBackend(
  kind: BackendKind,
  config: ModelConfig,
  weights: Float32Array,
  threads: number,
): Promise<DecoderBackend> {
  if (kind === 'stock') return OnnxBackend.load(config, weights, threads);
  const found = findAddon();
  if (!('addon' in found)) throw new Error(found.missing);
  return Promise.resolve(NativeBackend.load(found, config, weights, threads));
}
