import type { Tensor } from '@tensorflow/tfjs';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  loadTensorflowBackend,
  type TensorflowBackend,
} from '../../../../../../engine/learner/tensorflow/backend.ts';
import { recordGraph } from '../../../../../../engine/learner/tensorflow/graph/recording.ts';
import { resultsOf, RULES } from '../../../../../../engine/learner/tensorflow/graph/result-shapes.ts';
import type {
  NativeOpsBinding,
  OpAttribute,
} from '../../../../../../engine/learner/tensorflow/native-ops.ts';

// What TensorFlow itself gives is what the rules are held against.

let backend: TensorflowBackend;
let binding: NativeOpsBinding;
beforeAll(async () => {
  backend = await loadTensorflowBackend('cpu');
  ({ binding } = backend.native!.kernels);
});

const [FLOAT, INT32, BOOL] = [1, 3, 10];

interface Given {
  shape: number[];
  dtype: number;
  values?: number[];
}
const floats = (...shape: number[]): Given => ({ shape, dtype: FLOAT });
const bools = (...shape: number[]): Given => ({ shape, dtype: BOOL });
const ints = (shape: number[], ...values: number[]): Given => ({ shape, dtype: INT32, values });
const axis = (value: number): Given => ints([], value);

/** An attribute by its name and value; whole numbers whose names say so are types. */
function attributes(given: Record<string, number | boolean>): OpAttribute[] {
  return Object.entries(given).map(([name, value]) => {
    const isType = /^(T.*|SrcT|DstT|index_type)$/.test(name);
    const type =
      typeof value === 'boolean' ? binding.TF_ATTR_BOOL : isType ? binding.TF_ATTR_TYPE : binding.TF_ATTR_INT;
    return { name, type, value };
  });
}

type Case = readonly [inputs: Given[], attributes: Record<string, number | boolean>, outputs?: number];
const T = { T: FLOAT };

const elementwise = (...names: string[]): Record<string, Case[]> =>
  Object.fromEntries(names.map((name) => [name, [[[floats(2, 3)], T]]]));
const ofTwo = (...names: string[]): Record<string, Case[]> =>
  Object.fromEntries(
    names.map((name) => [
      name,
      [
        [[floats(2, 3), floats(2, 3)], T],
        [[floats(4, 1, 3), floats(2, 1)], T],
        [[floats(), floats(5)], T],
      ],
    ]),
  );
const reduced = (...names: string[]): Record<string, Case[]> =>
  Object.fromEntries(
    names.map((name) => [
      name,
      [
        [[floats(2, 3, 4), ints([1], -1)], { keep_dims: true, T: FLOAT, Tidx: INT32 }],
        [[floats(2, 3, 4), ints([2], 0, 2)], { keep_dims: false, T: FLOAT, Tidx: INT32 }],
      ],
    ]),
  );

const CASES: Record<string, Case[]> = {
  ...elementwise('Abs', 'Exp', 'Expm1', 'L2Loss', 'Log', 'Log1p', 'LogSoftmax', 'Neg', 'OnesLike'),
  ...elementwise('Reciprocal', 'Relu', 'Rsqrt', 'Sigmoid', 'Softmax', 'Softplus', 'Sqrt', 'Square', 'Tanh'),
  ...elementwise('ZerosLike'),
  ...ofTwo(
    'Add',
    'Div',
    'Equal',
    'Greater',
    'GreaterEqual',
    'Less',
    'LessEqual',
    'Maximum',
    'Minimum',
    'Mul',
  ),
  ...ofTwo('NotEqual', 'Pow', 'RealDiv', 'SquaredDifference', 'Sub'),
  ...reduced('Max', 'Mean', 'Min', 'Prod', 'Sum'),
  LogicalNot: [[[bools(3)], {}]],
  LogicalAnd: [[[bools(2, 1), bools(3)], {}]],
  LogicalOr: [[[bools(3), bools(3)], {}]],
  AddN: [[[floats(2), floats(2), floats(2)], { T: FLOAT, N: 3 }]],
  Cast: [[[ints([2], 1, 2)], { SrcT: INT32, DstT: FLOAT, Truncate: false }]],
  Select: [[[bools(2, 3), floats(2, 3), floats(2, 3)], T]],
  MatMul: [false, true].flatMap((a) =>
    [false, true].map((b): Case => [
      [floats(...(a ? [3, 2] : [2, 3])), floats(...(b ? [4, 3] : [3, 4]))],
      { T: FLOAT, transpose_a: a, transpose_b: b },
    ]),
  ),
  BatchMatMulV2: [
    [[floats(5, 1, 2, 3), floats(4, 3, 6)], { T: FLOAT, adj_x: false, adj_y: false }],
    [[floats(5, 3, 2), floats(5, 6, 3)], { T: FLOAT, adj_x: true, adj_y: true }],
  ],
  SparseSoftmaxCrossEntropyWithLogits: [[[floats(2, 3), ints([2], 0, 2)], { T: FLOAT, Tlabels: INT32 }, 2]],
  Reshape: [
    [[floats(2, 6), ints([3], 3, -1, 2)], { T: FLOAT, Tshape: INT32 }],
    [[floats(1), ints([0])], { T: FLOAT, Tshape: INT32 }],
  ],
  ExpandDims: [
    [[floats(2, 3), axis(0)], {}],
    [[floats(2, 3), axis(-1)], {}],
  ],
  Transpose: [[[floats(2, 3, 4), ints([3], 2, 0, 1)], { T: FLOAT, Tperm: INT32 }]],
  Slice: [[[floats(4, 5), ints([2], 1, 2), ints([2], 2, -1)], { T: FLOAT, Index: INT32 }]],
  SplitV: [[[floats(2, 5), ints([2], 2, 3), axis(-1)], { num_split: 2, T: FLOAT, Tlen: INT32 }, 2]],
  ConcatV2: [[[floats(2, 3), floats(2, 4), axis(-1)], { N: 2, T: FLOAT, Tidx: INT32 }]],
  Pack: [0, -1].map((at): Case => [[floats(2, 3), floats(2, 3)], { N: 2, T: FLOAT, axis: at }]),
  Unpack: [[[floats(2, 3)], { num: 3, T: FLOAT, axis: -1 }, 3]],
  Tile: [[[floats(2, 3), ints([2], 2, 1)], { T: FLOAT, Tmultiples: INT32 }]],
  GatherV2: [
    [
      [floats(5, 3), ints([2, 2], 0, 4, 1, 1), axis(0)],
      { batch_dims: 0, Tparams: FLOAT, Tindices: INT32, Taxis: INT32 },
    ],
  ],
  OneHot: [[[ints([2], 0, 1), axis(4), ints([], 1), ints([], 0)], { axis: -1, T: INT32, TI: INT32 }]],
  UnsortedSegmentSum: [
    [[floats(4, 3), ints([4], 0, 1, 1, 0), axis(2)], { T: FLOAT, Tindices: INT32, Tnumsegments: INT32 }],
  ],
  ScatterNd: [[[ints([2, 1], 0, 3), floats(2, 5), ints([2], 4, 5)], { T: FLOAT, Tindices: INT32 }]],
  Fill: [[[ints([2], 2, 3), floats()], { T: FLOAT, index_type: INT32 }]],
  Range: [[[axis(1), axis(8), axis(3)], { Tidx: INT32 }]],
};

const made = ({ shape, dtype, values }: Given): number => {
  const size = shape.reduce((product, one) => product * one, 1);
  if (dtype === INT32) return binding.createTensor(shape, dtype, Int32Array.from(values!));
  if (dtype === BOOL) return binding.createTensor(shape, dtype, new Uint8Array(size));
  return binding.createTensor(shape, dtype, new Float32Array(size).fill(0.5));
};

describe('what an op gives', () => {
  it('is asked for every rule', () => {
    expect(Object.keys(CASES).toSorted()).toEqual(Object.keys(RULES).toSorted());
  });

  it.each(Object.keys(RULES))('%s', (name) => {
    for (const [inputs, given, outputs = 1] of CASES[name]!) {
      const attribute = attributes(given);
      const real = binding.executeOp(name, attribute, inputs.map(made), outputs);
      const told = resultsOf(
        { name, attributes: attribute },
        inputs.map(({ shape, dtype, values }) => ({ shape, dtype, ...(values && { constant: values }) })),
      );
      expect(told).toEqual(real.map(({ shape, dtype }) => ({ shape, dtype })));
    }
  });

  it('is not guessed: another op, and sizes that are computed, are errors', () => {
    expect(() => resultsOf({ name: 'Unique', attributes: [] }, [])).toThrow(/Unique gives is not known/);
    const sizes = { shape: [1], dtype: INT32 };
    expect(() => resultsOf({ name: 'Fill', attributes: [] }, [sizes, sizes])).toThrow(
      /has to be written down/,
    );
  });
});

describe('a recording', () => {
  it('computes nothing: a program of a billion numbers is recorded', () => {
    const { tf, native } = backend;
    const before = process.memoryUsage.rss();
    const tensors = tf.memory().numTensors;
    const input = tf.zeros([1, 1]);
    const huge = (inputs: Tensor[]) => tf.tidy(() => [tf.sum(tf.exp(tf.tile(inputs[0]!, [32_768, 32_768])))]);
    const { ops, outputs } = recordGraph(native!, huge, [input]);
    input.dispose();
    expect(ops.map(({ name }) => name)).toEqual(expect.arrayContaining(['Tile', 'Exp', 'Sum']));
    expect(outputs).toHaveLength(1);
    expect(tf.memory().numTensors).toBe(tensors);
    expect(process.memoryUsage.rss() - before).toBeLessThan(2 ** 28);
  });

  it('refuses a program that reads a value, and leaves the backend as it was', () => {
    const { tf, native } = backend;
    const input = tf.ones([2]);
    const reads = (inputs: Tensor[]) => tf.tidy(() => [tf.scalar(tf.exp(inputs[0]!).dataSync()[0]!)]);
    expect(() => recordGraph(native!, reads, [input])).toThrow(/reads a value while it is recorded/);
    expect(tf.exp(input).dataSync()[0]).toBeCloseTo(Math.E, 5);
    input.dispose();
  });
});
