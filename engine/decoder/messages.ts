import type { Boundary } from '../../core/errors.ts';
import type { DecoderBackendKind } from './load-backend.ts';
import type { LoadedModel } from './backend.ts';
import type { SampleRequest, SampleResult } from '../policy.ts';

/** How a decoder thread is set up. */
export interface ThreadSettings {
  backend: DecoderBackendKind;
  intraOpThreads: number;
  /** Bytes for the caches of sequences that are not being decoded. */
  cacheBytes: number;
  /** Sequences decoded at the same time. */
  maxBatch: number;
}

export type ToThread =
  | ({ type: 'load'; id: number } & LoadedModel)
  | { type: 'unload'; id: number }
  | { type: 'sample'; id: number; request: SampleRequest }
  | { type: 'abort'; id: number }
  | { type: 'release'; session: string }
  | { type: 'close' };

interface ThreadFailure {
  boundary: Boundary;
  type: string;
  message: string;
  retryable: boolean;
}

export type FromThread =
  /** With a load or an unload. */
  | { type: 'done'; id: number }
  | { type: 'sampled'; id: number; result: SampleResult }
  | { type: 'failed'; id: number; failure: ThreadFailure };
