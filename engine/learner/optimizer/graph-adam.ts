import type { Tensor } from '@tensorflow/tfjs';
import type { Tf } from '../backend.ts';
import type { OptimizerSettings } from '../contract.ts';
import { loadGraph, type Graph } from '../graph/load-graph.ts';
import { shapeProto, tensorInfo } from '../graph/saved-model-proto.ts';
import type { AttrProto, NodeProto, Signature } from '../graph/saved-model-proto.ts';
import type { NativeOps } from '../native-ops.ts';
import type { Adam } from './adam.ts';

/** Numbers that an update is given, in the order in which ResourceApplyAdam takes all but the last. */
const SCALARS = ['beta1Power', 'beta2Power', 'rate', 'beta1', 'beta2', 'epsilon', 'largest'] as const;
/** A weight and its moments. */
const KINDS = ['weight', 'first', 'second'] as const;

type Run = 'assign' | 'update' | 'weights' | 'moments';

/**
 * Adam by TensorFlow's own kernel on variables that live in a graph: one pass over the weights, in place, and the
 * cores share them.
 */
export class GraphAdam implements Adam {
  private readonly tf: Tf;
  private readonly graph: Graph<Run>;
  private readonly count: number;
  private current: Tensor[];

  private constructor(tf: Tf, graph: Graph<Run>, count: number) {
    this.tf = tf;
    this.graph = graph;
    this.count = count;
    this.current = this.kept(graph.run('weights', {}), 'weight');
  }

  static async load(
    tf: Tf,
    native: NativeOps,
    weights: Tensor[],
    first: Tensor[],
    second: Tensor[],
  ): Promise<GraphAdam> {
    const { nodes, signatures } = adamGraph(
      native.kernels.binding.TF_FLOAT,
      weights.map(({ shape }) => shape),
    );
    const graph = await loadGraph(tf, native, nodes, signatures);
    const initial = { weight: weights, first, second };
    const named = KINDS.flatMap((kind) => initial[kind].map((tensor, i) => [`${kind}${i}`, tensor]));
    tf.dispose(graph.run('assign', Object.fromEntries(named) as Record<string, Tensor>));
    // An update is in place only while nobody else holds the buffer.
    tf.dispose([weights, first, second]);
    return new GraphAdam(tf, graph, weights.length);
  }

  weights(): Tensor[] {
    return this.current;
  }

  moments(): { first: Tensor[]; second: Tensor[] } {
    const read = this.graph.run('moments', {});
    return { first: this.ordered(read, 'first'), second: this.ordered(read, 'second') };
  }

  update(gradients: Tensor[], rate: number, update: number, settings: OptimizerSettings): number {
    const { tf } = this;
    const { beta1, beta2, epsilon, maxGradientNorm } = settings;
    const scalars: Record<(typeof SCALARS)[number], number> = {
      beta1Power: beta1 ** update,
      beta2Power: beta2 ** update,
      rate,
      beta1,
      beta2,
      epsilon,
      largest: maxGradientNorm > 0 ? maxGradientNorm : Infinity,
    };
    tf.dispose(this.current);
    const { norm, ...updated } = tf.tidy(() =>
      this.graph.run('update', {
        ...Object.fromEntries(SCALARS.map((name) => [name, tf.scalar(scalars[name])])),
        ...Object.fromEntries(gradients.map((gradient, i) => [`gradient${i}`, gradient])),
      }),
    );
    this.current = this.kept(updated, 'weight');
    const [value] = norm!.dataSync();
    norm!.dispose();
    return value!;
  }

  dispose(): void {
    this.tf.dispose(this.current);
    this.graph.dispose();
  }

  private kept(results: Record<string, Tensor>, kind: (typeof KINDS)[number]): Tensor[] {
    return this.ordered(results, kind).map((tensor) => this.tf.keep(tensor));
  }

  private ordered(results: Record<string, Tensor>, kind: (typeof KINDS)[number]): Tensor[] {
    return Array.from({ length: this.count }, (_, i) => results[`${kind}${i}`]!);
  }
}

/** Ops by the names of TensorFlow's op reference. */
function adamGraph(
  dtype: number,
  shapes: readonly (readonly number[])[],
): { nodes: NodeProto[]; signatures: Record<Run, Signature> } {
  const nodes: NodeProto[] = [];
  const node = (name: string, op: string, input: string[], attr: Record<string, AttrProto>): string => {
    nodes.push({ name, op, input, attr });
    return name;
  };
  const T = { T: { type: dtype } };
  const typed = { dtype: { type: dtype } };
  const signature = (): Signature => ({ inputs: {}, outputs: {} });
  const signatures = {
    assign: signature(),
    update: signature(),
    weights: signature(),
    moments: signature(),
  };
  const given = (run: Run, name: string, shape: readonly number[]): string => {
    const placeholder = `${run}/${name}`;
    signatures[run].inputs[name] = tensorInfo(placeholder, dtype, shape);
    return node(placeholder, 'Placeholder', [], { ...typed, shape: { shape: shapeProto(shape) } });
  };
  const result = (run: Run, name: string, from: string, shape: readonly number[]): void => {
    signatures[run].outputs[name] = tensorInfo(from, dtype, shape);
  };
  const constant = (name: string, value: number, ...after: string[]): string => {
    const tensor = {
      dtype,
      tensor_shape: shapeProto([]),
      tensor_content: new Uint8Array(Float32Array.of(value).buffer),
    };
    return node(name, 'Const', after, { ...typed, value: { tensor } });
  };

  const scalars = SCALARS.map((name) => given('update', name, []));
  const largest = scalars.pop()!;
  const gradients = shapes.map((shape, i) => given('update', `gradient${i}`, shape));
  const halves = gradients.map((gradient, i) => node(`half${i}`, 'L2Loss', [gradient], T));
  const half = node('half', 'AddN', halves, { ...T, N: { i: halves.length } });
  const norm = node('norm', 'Sqrt', [node('square', 'Mul', [half, constant('two', 2)], T)], T);
  const scale = node(
    'scale',
    'Minimum',
    [constant('one', 1), node('room', 'RealDiv', [largest, norm], T)],
    T,
  );
  result('update', 'norm', norm, []);

  const assigned: string[] = [];
  shapes.forEach((shape, i) => {
    const handles = KINDS.map((kind) => {
      const name = `${kind}${i}`;
      const handle = node(name, 'VarHandleOp', [], {
        ...typed,
        shape: { shape: shapeProto(shape) },
        container: { s: Buffer.from('') },
        shared_name: { s: Buffer.from(name) },
      });
      const assign = node(
        `${name}/assign`,
        'AssignVariableOp',
        [handle, given('assign', name, shape)],
        typed,
      );
      assigned.push(`^${assign}`);
      const run = kind === 'weight' ? 'weights' : 'moments';
      result(run, name, node(`${name}/read`, 'ReadVariableOp', [handle], typed), shape);
      return handle;
    });
    const clipped = node(`clipped${i}`, 'Mul', [gradients[i]!, scale], T);
    const flags = { use_locking: { b: false }, use_nesterov: { b: false } };
    const apply = node(`apply${i}`, 'ResourceApplyAdam', [...handles, ...scalars, clipped], {
      ...T,
      ...flags,
    });
    const updated = node(`updated${i}`, 'ReadVariableOp', [handles[0]!, `^${apply}`], typed);
    result('update', `weight${i}`, updated, shape);
  });
  result('assign', 'done', constant('done', 0, ...assigned), []);
  return { nodes, signatures };
}
