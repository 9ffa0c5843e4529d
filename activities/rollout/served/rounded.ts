import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { z } from 'zod';
import type { CheckpointRef } from '../../../core/refs.ts';
import { withDtype } from '../../../engine/hf-dtype.ts';
import { MAX_SHARD_BYTES } from '../../../engine/hf-shards.ts';
import { writeHfWeights } from '../../../engine/hf-weights.ts';
import { sha256Hex } from '../../../store/digest.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { loadPolicy } from '../../../store/training/checkpoints.ts';

const MANIFEST = 'staged.json';

const manifest = z.strictObject({
  format: z.literal('gradus.staged/1'),
  /** The version of the policy: of the float32 weights that were rounded. */
  weights: z.string(),
  dtype: z.literal('bfloat16'),
  files: z.record(z.string(), z.strictObject({ sha256: z.string(), bytes: z.int() })),
});
export type StagedManifest = z.infer<typeof manifest>;

/**
 * The policy of a checkpoint in Hugging Face's layout, each weight rounded to the nearest bfloat16, ties to even, in shards
 * above 5 GB; `staged.json` names the digests of all files.
 */
export async function writeRounded(
  store: ObjectStore,
  ref: CheckpointRef,
  folder: string,
  signal: AbortSignal,
): Promise<void> {
  const { config, weights, files } = await loadPolicy(store, ref, { signal });
  for (const [name, bytes] of files) {
    await writeFile(join(folder, name), name === 'config.json' ? withDtype(bytes, 'BF16') : bytes);
  }
  await writeHfWeights(folder, config, weights, { dtype: 'BF16', maxShardBytes: MAX_SHARD_BYTES });
  const digests: StagedManifest['files'] = {};
  for (const name of (await readdir(folder)).toSorted()) {
    signal.throwIfAborted();
    const bytes = await readFile(join(folder, name));
    digests[name] = { sha256: sha256Hex(bytes), bytes: bytes.length };
  }
  const staged: StagedManifest = {
    format: 'gradus.staged/1',
    weights: ref.weights,
    dtype: 'bfloat16',
    files: digests,
  };
  await writeFile(join(folder, MANIFEST), `${JSON.stringify(staged, null, 2)}\n`);
}

/** What a folder says that it has of a policy's weights; null where it says nothing, or something else. */
export async function digestsOfRounded(
  folder: string,
  weights: string,
): Promise<[string, { sha256: string }][] | null> {
  let json: unknown;
  try {
    json = JSON.parse(await readFile(join(folder, MANIFEST), 'utf8'));
  } catch {
    // Not there, or damaged: it is put there again.
    return null;
  }
  const parsed = manifest.safeParse(json);
  return parsed.success && parsed.data.weights === weights ? Object.entries(parsed.data.files) : null;
}
