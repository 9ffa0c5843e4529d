import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { readManifest } from '../../activities/store/checkpoints.ts';
import { checkpointOf } from '../../activities/store/find-checkpoints.ts';
import type { ObjectStore } from '../../activities/store/object-store.ts';
import { GradusError } from '../../core/errors.ts';
import { parseCheckpointName } from '../checkpoint-name.ts';
import { withConnectionFlags, withStore } from '../connection.ts';
import type { ConnectionOptions } from '../connection.ts';
import { modelCard } from '../model-card.ts';
import { provenanceOf } from '../provenance.ts';

interface ExportOptions extends ConnectionOptions {
  to: string;
}

/** `gradus export RUN --to DIR`: a checkpoint as a folder that transformers loads, with a card that says how it was trained. */
export function exportModel(): Command {
  return withConnectionFlags(new Command('export'))
    .description('Writes a checkpoint as a Hugging Face folder, with a model card of how it was trained.')
    .argument('<run>', 'RUN, its last checkpoint, or RUN@STEP', parseCheckpointName)
    .requiredOption('--to <dir>', 'a folder that is not there yet, or empty')
    .action((name: ReturnType<typeof parseCheckpointName>, options: ExportOptions) =>
      withStore(options, async (store) => {
        const ref = await checkpointOf(store, name);
        await exportTo(store, ref, path.resolve(options.to));
        console.log(`${name.run}, step ${ref.step}, is in ${path.resolve(options.to)}`);
      }),
    );
}

/**
 * Writes beside the target and renames at the end, so that a folder that is there is whole.
 * Throws GradusError('store', 'target-exists'), and what reading the store throws (a damaged object is named).
 */
export async function exportTo(
  store: ObjectStore,
  ref: Awaited<ReturnType<typeof checkpointOf>>,
  target: string,
): Promise<void> {
  const there = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw notEmpty(target);
  });
  if (there.length > 0) throw notEmpty(target);
  const partial = `${target}.partial-${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    const { files } = await readManifest(store, ref.manifest);
    for (const [name, blob] of Object.entries(files)) {
      if (name === 'optimizer.safetensors') continue;
      await writeFile(path.join(partial, name), await store.get(blob));
    }
    await writeFile(path.join(partial, 'README.md'), modelCard(await provenanceOf(store, ref)));
    await rm(target, { recursive: true, force: true });
    await rename(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

const notEmpty = (target: string): GradusError =>
  new GradusError(
    'store',
    'target-exists',
    `${target} is there and not empty: name another folder with --to`,
  );
