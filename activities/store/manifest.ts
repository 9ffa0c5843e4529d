import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json.ts';

const blobRef = z.strictObject({
  key: z.string(),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
  bytes: z.int().min(0),
});

const checkpointRef = z.strictObject({ manifest: blobRef, weights: z.string(), step: z.int().min(0) });

/** What writes checkpoints, as their manifests name it. */
export const CREATED_BY = 'gradus 0.1.0';

/** What every checkpoint has. Beside these it has the other small files of its model, such as a chat template. */
export const CHECKPOINT_FILES = [
  'config.json',
  'model.safetensors',
  'tokenizer.json',
  'optimizer.safetensors',
] as const;
export type CheckpointFile = (typeof CHECKPOINT_FILES)[number];

const manifest = z.strictObject({
  format: z.literal('gradus.checkpoint/1'),
  run: z.string(),
  stage: z.string(),
  step: z.int().min(0),
  /** What the learner step started from. */
  parent: checkpointRef.optional(),
  /** The learner's, e.g. `tensorflow 2.20.0 cpu`. */
  backend: z.string(),
  /** Optimizer updates since the weights were drawn. */
  updates: z.int().min(0),
  /** What wrote it, e.g. `gradus 0.1.0`. */
  createdBy: z.string(),
  files: z
    .object(
      Object.fromEntries(CHECKPOINT_FILES.map((name) => [name, blobRef])) as Record<
        CheckpointFile,
        typeof blobRef
      >,
    )
    .catchall(blobRef),
});

/**
 * Names every file of a checkpoint with its digest. It is written last, so what it names is there. It holds no
 * time of day: its bytes are a function of what is in the checkpoint.
 */
export type CheckpointManifest = z.infer<typeof manifest>;

/** Throws GradusError('store', 'invalid-manifest'). */
export function parseManifest(json: Json, key: string): CheckpointManifest {
  const parsed = manifest.safeParse(json);
  if (parsed.success) return parsed.data;
  throw new GradusError(
    'store',
    'invalid-manifest',
    `${key} is not a manifest of gradus.checkpoint/1: ${z.prettifyError(parsed.error)}. Use another checkpoint`,
    { cause: parsed.error },
  );
}
