import type { OpAttribute } from '../native-ops.ts';
import type { RecordedOp } from './recording.ts';

/** A tensor by what is known before anything is computed. */
export interface Described {
  readonly shape: readonly number[];
  /** As TensorFlow numbers its types. */
  readonly dtype: number;
  /** Of whole numbers that the program itself has written down: sizes, axes, orders. */
  readonly constant?: readonly number[];
}

interface Op {
  inputs: readonly Described[];
  attribute: (name: string) => OpAttribute['value'];
}
type Rule = (op: Op) => readonly Described[];
type Shape = readonly number[];

/** DT_BOOL of TensorFlow's types.proto. */
const BOOL = 10;

/**
 * Shapes and types of what an op gives, by the ops that the learner's programs are made of (TensorFlow's op reference).
 * Throws Error for an op that has no rule, and for sizes that are computed and so not known.
 */
export function resultsOf(
  { name, attributes }: Pick<RecordedOp, 'name' | 'attributes'>,
  inputs: readonly Described[],
): readonly Described[] {
  const rule = RULES[name];
  if (!rule)
    throw new Error(`what TensorFlow's ${name} gives is not known: add a rule to ${import.meta.url}`);
  const attribute = (wanted: string) => {
    const found = attributes.find((one) => one.name === wanted);
    if (!found) throw new Error(`${name} has no attribute ${wanted}`);
    return found.value;
  };
  return rule({ inputs, attribute });
}

const like: Rule = ({ inputs: [x] }) => [{ shape: x!.shape, dtype: x!.dtype }];
const broadcast: Rule = ({ inputs: [a, b] }) => [{ shape: together(a!.shape, b!.shape), dtype: a!.dtype }];
const compare: Rule = (op) => [{ ...broadcast(op)[0]!, dtype: BOOL }];
const reduce: Rule = ({ inputs: [x, axes], attribute }) => {
  const { shape, dtype } = x!;
  const gone = new Set(known(axes!).map((axis) => from(axis, shape.length)));
  const kept = attribute('keep_dims')
    ? shape.map((size, axis) => (gone.has(axis) ? 1 : size))
    : shape.filter((_, axis) => !gone.has(axis));
  return [{ shape: kept, dtype }];
};
const scalar: Rule = ({ inputs: [x] }) => [{ shape: [], dtype: x!.dtype }];

const named = (names: readonly string[], rule: Rule) => Object.fromEntries(names.map((name) => [name, rule]));

export const RULES: Readonly<Record<string, Rule>> = {
  ...named(
    ['Abs', 'Exp', 'Expm1', 'Log', 'Log1p', 'LogicalNot', 'Neg', 'OnesLike', 'Relu', 'Rsqrt', 'Sigmoid'],
    like,
  ),
  ...named(['LogSoftmax', 'Reciprocal', 'Softmax', 'Softplus', 'Sqrt', 'Square', 'Tanh', 'ZerosLike'], like),
  ...named(
    ['Add', 'Div', 'Maximum', 'Minimum', 'Mul', 'Pow', 'RealDiv', 'SquaredDifference', 'Sub'],
    broadcast,
  ),
  ...named(['Equal', 'Greater', 'GreaterEqual', 'Less', 'LessEqual', 'NotEqual'], compare),
  ...named(['LogicalAnd', 'LogicalOr'], compare),
  ...named(['Max', 'Mean', 'Min', 'Prod', 'Sum'], reduce),
  L2Loss: scalar,
  AddN: like,
  Cast: ({ inputs: [x], attribute }) => [{ shape: x!.shape, dtype: attribute('DstT') as number }],
  Select: ({ inputs: [, x] }) => [{ shape: x!.shape, dtype: x!.dtype }],

  MatMul: ({ inputs: [a, b], attribute }) => {
    const rows = a!.shape[attribute('transpose_a') ? 1 : 0]!;
    const columns = b!.shape[attribute('transpose_b') ? 0 : 1]!;
    return [{ shape: [rows, columns], dtype: a!.dtype }];
  },
  BatchMatMulV2: ({ inputs: [a, b], attribute }) => {
    const batch = together(a!.shape.slice(0, -2), b!.shape.slice(0, -2));
    const rows = a!.shape.at(attribute('adj_x') ? -1 : -2)!;
    const columns = b!.shape.at(attribute('adj_y') ? -2 : -1)!;
    return [{ shape: [...batch, rows, columns], dtype: a!.dtype }];
  },
  SparseSoftmaxCrossEntropyWithLogits: ({ inputs: [logits] }) => {
    const { shape, dtype } = logits!;
    return [
      { shape: shape.slice(0, -1), dtype },
      { shape, dtype },
    ];
  },

  Reshape: ({ inputs: [x, sizes] }) => {
    const { shape, dtype } = x!;
    const wanted = known(sizes!);
    const rest = sizeOf(shape) / sizeOf(wanted.filter((size) => size >= 0));
    return [{ shape: wanted.map((size) => (size < 0 ? rest : size)), dtype }];
  },
  ExpandDims: ({ inputs: [x, at] }) => {
    const { shape, dtype } = x!;
    return [{ shape: shape.toSpliced(from(known(at!)[0]!, shape.length + 1), 0, 1), dtype }];
  },
  Transpose: ({ inputs: [x, order] }) => [
    { shape: known(order!).map((axis) => x!.shape[axis]!), dtype: x!.dtype },
  ],
  Slice: ({ inputs: [x, begin, sizes] }) => {
    const begins = known(begin!);
    const shape = known(sizes!).map((size, axis) => (size < 0 ? x!.shape[axis]! - begins[axis]! : size));
    return [{ shape, dtype: x!.dtype }];
  },
  SplitV: ({ inputs: [x, sizes, at] }) => {
    const { shape, dtype } = x!;
    const axis = from(known(at!)[0]!, shape.length);
    return known(sizes!).map((size) => ({ shape: shape.with(axis, size), dtype }));
  },
  ConcatV2: ({ inputs }) => {
    const parts = inputs.slice(0, -1);
    const { shape, dtype } = parts[0]!;
    const axis = from(known(inputs.at(-1)!)[0]!, shape.length);
    const size = parts.reduce((sum, part) => sum + part.shape[axis]!, 0);
    return [{ shape: shape.with(axis, size), dtype }];
  },
  Pack: ({ inputs, attribute }) => {
    const { shape, dtype } = inputs[0]!;
    return [{ shape: shape.toSpliced(from(attribute('axis'), shape.length + 1), 0, inputs.length), dtype }];
  },
  Unpack: ({ inputs: [x], attribute }) => {
    const { shape, dtype } = x!;
    const part = { shape: shape.toSpliced(from(attribute('axis'), shape.length), 1), dtype };
    return Array.from({ length: attribute('num') as number }, () => part);
  },
  Tile: ({ inputs: [x, times] }) => {
    const factors = known(times!);
    return [{ shape: x!.shape.map((size, axis) => size * factors[axis]!), dtype: x!.dtype }];
  },

  GatherV2: ({ inputs: [x, indices, at] }) => {
    const { shape, dtype } = x!;
    return [{ shape: shape.toSpliced(from(known(at!)[0]!, shape.length), 1, ...indices!.shape), dtype }];
  },
  OneHot: ({ inputs: [indices, depth, on], attribute }) => {
    const { shape } = indices!;
    const at = from(attribute('axis'), shape.length + 1);
    return [{ shape: shape.toSpliced(at, 0, known(depth!)[0]!), dtype: on!.dtype }];
  },
  UnsortedSegmentSum: ({ inputs: [x, segments, count] }) => [
    { shape: [known(count!)[0]!, ...x!.shape.slice(segments!.shape.length)], dtype: x!.dtype },
  ],
  ScatterNd: ({ inputs: [, updates, sizes] }) => [{ shape: known(sizes!), dtype: updates!.dtype }],
  Fill: ({ inputs: [sizes, value] }) => [{ shape: known(sizes!), dtype: value!.dtype }],
  Range: ({ inputs }) => {
    const [start, end, by] = inputs.map((input) => known(input)[0]!);
    return [{ shape: [Math.max(0, Math.ceil((end! - start!) / by!))], dtype: inputs[0]!.dtype }];
  },
};

function known({ constant }: Described): readonly number[] {
  if (!constant) throw new Error('a shape of the program is computed: it has to be written down');
  return constant;
}

/** Axes may count from the end. */
function from(axis: OpAttribute['value'], rank: number): number {
  const given = axis as number;
  return given < 0 ? given + rank : given;
}

const sizeOf = (shape: Shape): number => shape.reduce((product, size) => product * size, 1);

/** The shape that two others are broadcast to. */
function together(a: Shape, b: Shape): Shape {
  const rank = Math.max(a.length, b.length);
  return Array.from({ length: rank }, (_, i) => {
    const [x, y] = [a[i - rank + a.length] ?? 1, b[i - rank + b.length] ?? 1];
    return x === 1 ? y : x;
  });
}
