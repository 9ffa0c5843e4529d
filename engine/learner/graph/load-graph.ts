import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import type { NativeOps } from '../native-ops.ts';
import { encodeSavedModel, type NodeProto, type Signature } from './saved-model-proto.ts';

/** tfjs-node's addition to tfjs that runs a TensorFlow graph. */
interface TfNode {
  node: { loadSavedModel(path: string, tags: string[], signature: string): Promise<SavedModel> };
}

interface SavedModel {
  predict(inputs: Record<string, Tensor>): Record<string, Tensor>;
  dispose(): void;
}

/** A TensorFlow graph in a session of its own; what its variables hold is in common to its signatures. */
export interface Graph<Name extends string> {
  /** By the names that the signature has. The results belong to the caller. */
  run(signature: Name, inputs: Record<string, Tensor>): Record<string, Tensor>;
  dispose(): void;
}

export async function loadGraph<Name extends string>(
  tf: Tf,
  native: NativeOps,
  nodes: NodeProto[],
  signatures: Record<Name, Signature>,
): Promise<Graph<Name>> {
  const folder = mkdtempSync(join(tmpdir(), 'gradus-graph-'));
  try {
    const bytes = encodeSavedModel(native.kernels.binding.TF_Version, nodes, signatures);
    writeFileSync(join(folder, 'saved_model.pb'), bytes);
    const models = new Map<string, SavedModel>();
    // One after another: the first opens the session, which tfjs-node finds again by the folder's name.
    for (const name of Object.keys(signatures)) {
      models.set(name, await (tf as unknown as TfNode).node.loadSavedModel(folder, ['serve'], name));
    }
    return {
      run: (signature, inputs) => models.get(signature)!.predict(inputs),
      dispose: () => {
        for (const model of models.values()) model.dispose();
      },
    };
  } finally {
    rmSync(folder, { recursive: true });
  }
}
