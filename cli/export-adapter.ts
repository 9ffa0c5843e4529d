import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ONLY_LEARNERS, readManifest } from '../store/training/checkpoints.ts';
import type { ObjectStore } from '../store/objects/object-store.ts';
import { GradusError } from '../core/errors.ts';
import type { CheckpointRef } from '../core/refs.ts';
import { modelCard } from './model-card.ts';
import { provenanceOf } from './provenance.ts';
import { writeNewFolder } from './write-new-folder.ts';

/**
 * The LoRA adapter of a checkpoint as a folder that PEFT loads beside the base model, with the tokenizer and a card.
 * Throws GradusError('store', 'no-adapter'), and what `writeNewFolder` and reading the store throw.
 */
export async function exportAdapter(store: ObjectStore, ref: CheckpointRef, target: string): Promise<void> {
  const { files, base } = await readManifest(store, ref.manifest);
  if (!base) {
    throw new GradusError(
      'store',
      'no-adapter',
      `${ref.manifest.key} has no LoRA adapter: leave out --adapter`,
    );
  }
  await writeNewFolder(target, async (folder) => {
    for (const [name, blob] of Object.entries(files)) {
      if (ONLY_LEARNERS.has(name)) continue;
      await writeFile(path.join(folder, name), await store.get(blob));
    }
    await writeFile(path.join(folder, 'README.md'), modelCard(await provenanceOf(store, ref)));
  });
}
