import { z } from 'zod';
import type { BlobRef, TaskRef } from '../../core/refs.ts';
import type { Synthesized } from '../../core/requests/demonstrations.ts';
import { jsonCodec } from '../codec.ts';
import { sha256Hex } from '../digest.ts';
import { synthesisKey, synthesizedKey } from '../keys.ts';
import { GradusError } from '../../core/errors.ts';
import type { CallOptions, ObjectStore } from '../objects/object-store.ts';

/** What became of a task that was looked at. */
export type Looked =
  /** So many examples of it are kept. */
  | { kind: 'kept'; examples: number }
  /** The verifiers did not pass what its expert did, or an episode has no room for it. */
  | { kind: 'unsolved'; reason: string }
  /** A task that measures asks the same. */
  | { kind: 'set-aside' }
  /** It is another one that was looked at before. */
  | { kind: 'known' };

export interface StoredSynthesis extends Synthesized {
  tasks: { ref: TaskRef; became: Looked }[];
}

const synthesis = jsonCodec<StoredSynthesis>(
  'what a stage has made of verified trajectories',
  z.looseObject({
    data: z.looseObject({ key: z.string() }),
    facts: z.looseObject({ tasks: z.int(), source: z.string() }),
    tasks: z.array(z.looseObject({ became: z.looseObject({ kind: z.string() }) })),
  }),
);

interface StagePlace {
  run: string;
  stage: string;
}

/** What was made before; null where nothing was. */
export async function findSynthesis(
  store: ObjectStore,
  { run, stage }: StagePlace,
  options: CallOptions = {},
): Promise<StoredSynthesis | null> {
  const ref = await store.head(synthesisKey(run, stage), options);
  return ref ? store.read(ref, synthesis, options) : null;
}

/** First writer wins; what is kept is returned. */
export const putSynthesis = async (
  store: ObjectStore,
  { run, stage }: StagePlace,
  wanted: StoredSynthesis,
  options: CallOptions = {},
): Promise<StoredSynthesis> =>
  (await store.putIfAbsent(synthesisKey(run, stage), synthesis, wanted, options)).value;

/** Lines under the digest of what is in them. */
export function putSynthesized(
  store: ObjectStore,
  { run, stage }: StagePlace,
  lines: readonly string[],
  options: CallOptions = {},
): Promise<BlobRef> {
  // All lines together may be longer than a text can be.
  const bytes = Buffer.concat(lines.map((line) => Buffer.from(`${line}\n`)));
  const sha256 = sha256Hex(bytes);
  const conflict = (key: string): GradusError =>
    new GradusError(
      'store',
      'corrupt-object',
      `${key} is not what its name says: delete it, and begin again`,
    );
  return store.putSame(synthesizedKey(run, stage, sha256), bytes, { ...options, sha256, conflict });
}
