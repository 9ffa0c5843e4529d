import { z } from 'zod';
import { jsonCodec } from '../codec.ts';

/** Where a checkpoint stands on a server of Tinker's API that trained it, by the digest of its weights. */
export interface ServerState {
  /** Weights and moments. */
  state: string;
  /** The weights alone, from which the checkpoint was read. */
  sampler: string;
  /** Adam's steps by the server's count, which an emptying of the moments does not begin anew. */
  steps: number;
}

export const serverStates = jsonCodec<ServerState>(
  'where a checkpoint stands on a server',
  z.looseObject({ state: z.string(), sampler: z.string(), steps: z.int().min(0) }),
);
