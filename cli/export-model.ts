import { mkdir, readdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { loadPolicy } from '../activities/store/checkpoints.ts';
import type { Policy } from '../activities/store/checkpoints.ts';
import type { ObjectStore } from '../activities/store/object-store.ts';
import { GradusError } from '../core/errors.ts';
import type { CheckpointRef } from '../core/refs.ts';
import { withDtype } from '../engine/hf-dtype.ts';
import { writeHfWeights } from '../engine/hf-weights.ts';
import type { WeightFileOptions } from '../engine/hf-weights.ts';
import { weightShapes } from '../engine/model-config.ts';
import { buildDecoderGraph, WEIGHTS_FILE } from '../engine/onnx/decoder-graph.ts';
import { modelCard } from './model-card.ts';
import { provenanceOf } from './provenance.ts';

export interface ExportFormat extends WeightFileOptions {
  /** Also as ONNX, for serving with onnxruntime: `onnx/decoder.onnx` and its weights beside it. */
  onnx: boolean;
}

/**
 * A checkpoint as a folder that transformers loads, with a card that says how it was trained. It is written beside the
 * target and renamed at the end, so that a folder that is there is whole.
 * Throws GradusError('store', 'target-exists'), and what reading the store throws (a damaged object is named).
 */
export async function exportModel(
  store: ObjectStore,
  ref: CheckpointRef,
  target: string,
  format: ExportFormat,
): Promise<void> {
  const there = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return [];
    throw notEmpty(target);
  });
  if (there.length > 0) throw notEmpty(target);
  const partial = `${target}.partial-${process.pid}`;
  await mkdir(partial, { recursive: true });
  try {
    const policy = await loadPolicy(store, ref);
    for (const [name, bytes] of policy.files) {
      await writeFile(
        path.join(partial, name),
        name === 'config.json' ? withDtype(bytes, format.dtype) : bytes,
      );
    }
    await writeHfWeights(partial, policy.config, policy.weights, format);
    if (format.onnx) await writeOnnx(path.join(partial, 'onnx'), policy);
    await writeFile(path.join(partial, 'README.md'), modelCard(await provenanceOf(store, ref)));
    await rm(target, { recursive: true, force: true });
    await rename(partial, target);
  } finally {
    await rm(partial, { recursive: true, force: true });
  }
}

/** Inputs and outputs are those of `buildDecoderGraph`. */
async function writeOnnx(folder: string, { config, weights }: Policy): Promise<void> {
  await mkdir(folder);
  await writeFile(path.join(folder, 'decoder.onnx'), buildDecoderGraph(config));
  const parts = weightShapes(config).map(([name]) => {
    const { data } = weights.get(name)!;
    return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  });
  await writeFile(path.join(folder, WEIGHTS_FILE), parts);
}

const notEmpty = (target: string): GradusError =>
  new GradusError(
    'store',
    'target-exists',
    `${target} is there and not empty: name another folder with --to`,
  );
