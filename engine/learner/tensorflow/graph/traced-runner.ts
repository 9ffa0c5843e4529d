import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import type { NativeOps } from '../native-ops.ts';
import type { Program } from '../../programs/program.ts';
import type { Runner } from '../runner.ts';
import { graphNodes } from './graph-def.ts';
import { recordGraph } from './recording.ts';
import { encodeSavedModel, shapeProto } from './saved-model-proto.ts';

/** tfjs-node's addition to tfjs that runs a TensorFlow graph. */
interface TfNode {
  node: { loadSavedModel(path: string): Promise<SavedModel> };
}

interface SavedModel {
  predict(inputs: Record<string, Tensor>): Record<string, Tensor>;
  dispose(): void;
}

/** Graphs kept at a time; the one that was used longest ago goes first. */
const MOST_TRACES = 24;

/**
 * Runs each program as one TensorFlow graph: its ops are recorded, written as a SavedModel and
 * loaded. TensorFlow then runs independent ops side by side, reuses buffers and crosses into JavaScript once, some
 * two times faster than op by op. A new shape costs a trace of 0.2 to 2 s.
 */
export function createTracedRunner(tf: Tf, native: NativeOps): Runner {
  const graphs = new Map<string, { model: SavedModel; outputs: number }>();

  const load = async (program: Program, inputs: Tensor[]) => {
    const { binding } = native.kernels;
    const recording = recordGraph(native, (inputs) => tf.tidy(() => program.compute(inputs)), inputs);
    const described = inputs.map(({ dtype, shape }) => ({
      dtype: dtype === 'int32' ? binding.TF_INT32 : binding.TF_FLOAT,
      shape,
    }));
    const info = (name: string, dtype: number, shape: readonly number[]) => ({
      name: `${name}:0`,
      dtype,
      tensor_shape: shapeProto(shape),
    });
    const bytes = encodeSavedModel(
      binding.TF_Version,
      graphNodes(binding, recording, described, program.precision),
      Object.fromEntries(described.map(({ dtype, shape }, i) => [`in${i}`, info(`in${i}`, dtype, shape)])),
      Object.fromEntries(recording.outputs.map((_, i) => [`out${i}`, info(`out${i}`, binding.TF_FLOAT, [])])),
    );
    const folder = mkdtempSync(join(tmpdir(), 'gradus-graph-'));
    try {
      writeFileSync(join(folder, 'saved_model.pb'), bytes);
      const model = await (tf as unknown as TfNode).node.loadSavedModel(folder);
      return { model, outputs: recording.outputs.length };
    } finally {
      rmSync(folder, { recursive: true });
    }
  };

  return {
    precisions: ['float32', 'bfloat16'],
    prepare: async (program, inputs) => {
      const key = `${program.key} ${JSON.stringify(inputs.map(({ shape }) => shape))}`;
      const graph = graphs.get(key) ?? (await load(program, inputs));
      graphs.delete(key);
      graphs.set(key, graph);
      for (const [oldest, { model }] of graphs) {
        if (graphs.size <= MOST_TRACES) break;
        model.dispose();
        graphs.delete(oldest);
      }
      const { model, outputs } = graph;
      return (inputs) => {
        const results = model.predict(Object.fromEntries(inputs.map((tensor, i) => [`in${i}`, tensor])));
        return Array.from({ length: outputs }, (_, i) => results[`out${i}`]!);
      };
    },
    close: () => {
      for (const { model } of graphs.values()) model.dispose();
      graphs.clear();
    },
  };
}
