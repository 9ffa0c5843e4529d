import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { Json } from '../../core/json/json.ts';
import { INDEX, weightFileNames } from '../../engine/hf-shards.ts';
import { ADAPTER_CONFIG, ADAPTER_MODEL } from '../../engine/lora/peft-format.ts';
import { checkedJson } from '../codec.ts';
import type { Codec } from '../codec.ts';
import { DIGEST_FORM, sha256Hex } from '../digest.ts';
import { isFileName } from '../keys.ts';

export const blobRef = z.strictObject({
  key: z.string(),
  sha256: z.string().regex(DIGEST_FORM),
  bytes: z.int().min(0),
});

export const checkpointRef = z.strictObject({
  manifest: blobRef,
  weights: z.string().regex(DIGEST_FORM),
  step: z.int().min(0),
});

/** What writes checkpoints, as their manifests name it. */
export const CREATED_BY = 'gradus 0.1.0';

/** In the place of weights that a server holds: the digests of the small files, and so the checkpoint's version. */
export const WEIGHTS_ELSEWHERE = 'weights-elsewhere.json';

/**
 * What every checkpoint has. Beside these it has the other small files of its model, such as a chat template, and its
 * weights: `model.safetensors`, or its shards with their index, or PEFT's two files of an adapter; or `WEIGHTS_ELSEWHERE`.
 */
const CHECKPOINT_FILES = ['config.json', 'tokenizer.json', 'optimizer.safetensors'] as const;
type CheckpointFile = (typeof CHECKPOINT_FILES)[number];

const fields = z.strictObject({
  format: z.literal('gradus.checkpoint/1'),
  run: z.string(),
  stage: z.string(),
  step: z.int().min(0),
  /** What the learner step started from. */
  parent: checkpointRef.optional(),
  /** Whose weights an adapter is for: a checkpoint of the same run, which stays as long as this one does. */
  base: checkpointRef.optional(),
  /** The learner's, e.g. `tensorflow 2.20.0 cpu`, and its precision where that is not float32. */
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

const manifest = fields.refine(hasWeights, {
  path: ['files'],
  error:
    'there must be model.safetensors, or all of its shards with their index, or a base and the two files of an adapter',
});

/**
 * Names every file of a checkpoint with its digest. It is written last, so what it names is there. It holds no
 * time of day: its bytes are a function of what is in the checkpoint.
 */
export type CheckpointManifest = z.infer<typeof manifest>;

/**
 * The version of a checkpoint's policy: the SHA-256 of `model.safetensors`, or of what is in its place; of shards, that of the
 * digests of their index and of each in order; of an adapter, that of the base's version and of the digests of its two
 * files. So it stands for the weights that they make together.
 */
export function policyVersion({ files, base }: Pick<CheckpointManifest, 'files' | 'base'>): string {
  const digest = (name: string): string => files[name]!.sha256;
  if (!base && files[WEIGHTS_ELSEWHERE]) return digest(WEIGHTS_ELSEWHERE);
  const names = weightFileNames(Object.keys(files));
  if (!base && names.length === 1) return digest(names[0]!);
  const parts = base
    ? [base.weights, digest(ADAPTER_CONFIG), digest(ADAPTER_MODEL)]
    : [INDEX, ...names].map(digest);
  return sha256Hex(new TextEncoder().encode(parts.join('\n')));
}

function hasWeights({ files, base }: { files: Record<string, unknown>; base?: unknown }): boolean {
  const held = WEIGHTS_ELSEWHERE in files;
  const whole = weightFileNames(Object.keys(files)).length > 0;
  return base === undefined
    ? whole !== held
    : !whole && !held && ADAPTER_CONFIG in files && ADAPTER_MODEL in files;
}

export const manifests: Codec<CheckpointManifest> = checkedJson(parseManifest);

/** Throws GradusError('store', 'invalid-manifest'). */
export function parseManifest(json: Json, key: string): CheckpointManifest {
  const parsed = manifest.safeParse(json);
  const folder = key.slice(0, key.lastIndexOf('/'));
  const problem = parsed.success ? strayFile(parsed.data, folder) : z.prettifyError(parsed.error);
  if (parsed.success && problem === null) return parsed.data;
  throw new GradusError(
    'store',
    'invalid-manifest',
    `${key} is not a manifest of gradus.checkpoint/1: ${problem}. Use another checkpoint`,
    parsed.success ? {} : { cause: parsed.error },
  );
}

/**
 * What keeps a manifest from being believed: files are written under these names when a checkpoint is exported, and
 * deleted by these keys when it is retired, so it may name the files of its own folder only.
 */
function strayFile({ files }: CheckpointManifest, folder: string): string | null {
  for (const [name, { key }] of Object.entries(files)) {
    if (!isFileName(name)) return `${JSON.stringify(name)} is no name of a file`;
    if (key !== `${folder}/${name}`) return `${name} lies at ${JSON.stringify(key)}, not in ${folder}`;
  }
  return null;
}
