import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import type { NativeOps } from '../native-ops.ts';
import type { Program } from '../programs.ts';
import type { Runner } from '../runner.ts';
import { graphNodes } from './graph-def.ts';
import { loadGraph, type Graph } from './load-graph.ts';
import { record } from './recording.ts';
import { tensorInfo, type Signature } from './saved-model-proto.ts';

/** Graphs kept at a time; the one that was used longest ago goes first. */
const KEPT = 24;

/**
 * Runs each program as one TensorFlow graph: the eager ops of one run are recorded, written as a SavedModel and
 * loaded. TensorFlow then runs independent ops side by side, reuses buffers and crosses into JavaScript once, some
 * two times faster than op by op. A new shape costs a trace of 0.2 to 2 s.
 */
export function createTracedRunner(tf: Tf, native: NativeOps): Runner {
  const graphs = new Map<string, { graph: Graph<'run'>; outputs: number }>();

  const load = async (program: Program, inputs: Tensor[]) => {
    const { binding } = native.kernels;
    const { results, ...recording } = record(
      native,
      (inputs) => tf.tidy(() => program.compute(inputs)),
      inputs,
    );
    for (const tensor of results) tensor.dispose();
    const described = inputs.map(({ dtype, shape }) => ({
      dtype: dtype === 'int32' ? binding.TF_INT32 : binding.TF_FLOAT,
      shape,
    }));
    const nodes = graphNodes(binding, recording, described, program.precision);
    const inputInfo = described.map(({ dtype, shape }, i) => [`in${i}`, tensorInfo(`in${i}`, dtype, shape)]);
    const outputInfo = recording.outputs.map((_, i) => [
      `out${i}`,
      tensorInfo(`out${i}`, binding.TF_FLOAT, []),
    ]);
    const run = {
      inputs: Object.fromEntries(inputInfo) as Signature['inputs'],
      outputs: Object.fromEntries(outputInfo) as Signature['outputs'],
    };
    return { graph: await loadGraph(tf, native, nodes, { run }), outputs: recording.outputs.length };
  };

  return {
    precisions: ['float32', 'bfloat16'],
    prepare: async (program, inputs) => {
      const key = `${program.key} ${JSON.stringify(inputs.map(({ shape }) => shape))}`;
      const traced = graphs.get(key) ?? (await load(program, inputs));
      graphs.delete(key);
      graphs.set(key, traced);
      for (const [oldest, { graph }] of graphs) {
        if (graphs.size <= KEPT) break;
        graph.dispose();
        graphs.delete(oldest);
      }
      const { graph, outputs } = traced;
      return (inputs) => {
        const named = Object.fromEntries(inputs.map((tensor, i) => [`in${i}`, tensor]));
        const results = graph.run('run', named);
        return Array.from({ length: outputs }, (_, i) => results[`out${i}`]!);
      };
    },
    close: () => {
      for (const { graph } of graphs.values()) graph.dispose();
      graphs.clear();
    },
  };
}
