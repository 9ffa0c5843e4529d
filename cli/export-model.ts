import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadPolicy } from '../store/training/checkpoints.ts';
import type { PolicyContent } from '../store/training/checkpoints.ts';
import type { ObjectStore } from '../store/objects/object-store.ts';
import type { CheckpointRef } from '../core/refs.ts';
import { withDtype } from '../engine/hf-dtype.ts';
import { writeHfWeights } from '../engine/hf-weights.ts';
import type { WeightFileOptions } from '../engine/hf-weights.ts';
import { weightShapes } from '../core/model/config.ts';
import { buildDecoderGraph, WEIGHTS_FILE } from '../engine/onnx/decoder-graph.ts';
import { modelCard } from './model-card.ts';
import { provenanceOf } from './provenance.ts';
import { writeNewFolder } from './write-new-folder.ts';

export interface ExportFormat extends WeightFileOptions {
  /** Also as ONNX, for serving with onnxruntime: `onnx/decoder.onnx` and its weights beside it. */
  onnx: boolean;
}

/**
 * A checkpoint as a folder that transformers loads, with a card that says how it was trained; an adapter is merged into
 * its base. Throws what `writeNewFolder` and reading the store throw (a damaged object is named).
 */
export async function exportModel(
  store: ObjectStore,
  ref: CheckpointRef,
  target: string,
  format: ExportFormat,
): Promise<void> {
  await writeNewFolder(target, async (folder) => {
    const policy = await loadPolicy(store, ref);
    for (const [name, bytes] of policy.files) {
      await writeFile(
        path.join(folder, name),
        name === 'config.json' ? withDtype(bytes, format.dtype) : bytes,
      );
    }
    await writeHfWeights(folder, policy.config, policy.weights, format);
    if (format.onnx) await writeOnnx(path.join(folder, 'onnx'), policy);
    await writeFile(path.join(folder, 'README.md'), modelCard(await provenanceOf(store, ref)));
  });
}

/** Inputs and outputs are those of `buildDecoderGraph`. */
async function writeOnnx(folder: string, { config, weights }: PolicyContent): Promise<void> {
  await mkdir(folder);
  await writeFile(path.join(folder, 'decoder.onnx'), buildDecoderGraph(config));
  const parts = weightShapes(config).map(([name]) => {
    const { data } = weights.get(name)!;
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  });
  await writeFile(path.join(folder, WEIGHTS_FILE), parts);
}
