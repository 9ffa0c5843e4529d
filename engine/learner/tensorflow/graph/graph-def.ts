import type { NativeOpsBinding, OpAttribute } from '../native-ops.ts';
import type { Precision } from '../runner.ts';
import type { RecordedOp, Recording } from './recording.ts';
import { shapeProto, type AttrProto, type NodeProto } from './saved-model-proto.ts';

/** DT_BFLOAT16 of TensorFlow's types.proto. */
const BFLOAT16 = 14;

/** Ops without an attribute `T`: tfjs-node states all of theirs. Others may leave `T` to be inferred, which a graph cannot. */
const WITHOUT_T = new Set(['Cast', 'GatherV2', 'OneHot', 'Fill']);

/**
 * A recording as the nodes of a TensorFlow graph. Inputs are placeholders `in0` …, results are `out0` …; ops that no
 * result needs are left out. With `bfloat16` the operands of products are rounded to it, which oneDNN multiplies with
 * sums in float32, and the result is rounded once more.
 */
export function graphNodes(
  binding: NativeOpsBinding,
  recording: Recording,
  inputs: { dtype: number; shape: readonly number[] }[],
  precision: Precision = 'float32',
): NodeProto[] {
  const names = new Map<number, string>();
  const nodes: NodeProto[] = recording.inputs.map((id, i) => {
    const name = `in${i}`;
    names.set(id, name);
    const { dtype, shape } = inputs[i]!;
    return {
      name,
      op: 'Placeholder',
      input: [],
      attr: { dtype: { type: dtype }, shape: { shape: shapeProto(shape) } },
    };
  });
  recording.ops.forEach(({ outputs }, i) => {
    outputs.forEach((id, j) => names.set(id, j === 0 ? `op${i}` : `op${i}:${j}`));
  });

  const reference = (id: number): string => {
    const known = names.get(id);
    if (known !== undefined) return known;
    const constant = recording.constants.get(id);
    if (!constant) throw new Error('the program reads a tensor that was made outside of it');
    const name = `const${id}`;
    names.set(id, name);
    const { dtype, shape, bytes } = constant;
    const tensor = { dtype, tensor_shape: shapeProto(shape), tensor_content: bytes };
    nodes.push({ name, op: 'Const', input: [], attr: { dtype: { type: dtype }, value: { tensor } } });
    return name;
  };
  const live = liveOps(recording);
  const roundedOnce = new Set<string>();
  recording.ops.forEach((op, i) => {
    if (!live.has(op)) return;
    const attr: Record<string, AttrProto> = {};
    for (const attribute of op.attributes) attr[attribute.name] = attrProto(binding, attribute);
    if (!attr['T'] && !WITHOUT_T.has(op.name)) attr['T'] = { type: binding.TF_FLOAT };
    const input = op.inputs.map(reference);
    if (precision === 'bfloat16' && isRounded(op)) {
      const cast = (name: string, from: string, [SrcT, DstT]: [number, number]) =>
        nodes.push({ name, op: 'Cast', input: [from], attr: { SrcT: { type: SrcT }, DstT: { type: DstT } } });
      const rounded = input.map((name) => {
        const short = `bf16/${name.replace(':', '_')}`;
        if (!roundedOnce.has(short)) cast(short, name, [binding.TF_FLOAT, BFLOAT16]);
        roundedOnce.add(short);
        return short;
      });
      nodes.push({
        name: `op${i}/bf16`,
        op: op.name,
        input: rounded,
        attr: { ...attr, T: { type: BFLOAT16 } },
      });
      cast(`op${i}`, `op${i}/bf16`, [BFLOAT16, binding.TF_FLOAT]);
      return;
    }
    nodes.push({ name: `op${i}`, op: op.name, input, attr });
  });
  recording.outputs.forEach((id, i) => {
    const attr = { T: { type: binding.TF_FLOAT } };
    nodes.push({ name: `out${i}`, op: 'Identity', input: [reference(id)], attr });
  });
  return nodes;
}

const isRounded = ({ name, attributes }: RecordedOp): boolean =>
  (name === 'MatMul' || name === 'BatchMatMulV2') && !attributes.some(({ exact }) => exact);

/** What the results depend on. */
function liveOps({ ops, outputs }: Recording): Set<RecordedOp> {
  const producer = new Map(ops.flatMap((op) => op.outputs.map((id) => [id, op] as const)));
  const live = new Set<RecordedOp>();
  const pending = [...outputs];
  for (let id = pending.pop(); id !== undefined; id = pending.pop()) {
    const op = producer.get(id);
    if (!op || live.has(op)) continue;
    live.add(op);
    pending.push(...op.inputs);
  }
  return live;
}

function attrProto(binding: NativeOpsBinding, { name, type, value }: OpAttribute): AttrProto {
  if (type === binding.TF_ATTR_SHAPE) return { shape: shapeProto(value as number[]) };
  if (Array.isArray(value)) {
    if (type === binding.TF_ATTR_INT) return { list: { i: value } };
    if (type === binding.TF_ATTR_FLOAT) return { list: { f: value } };
  }
  if (type === binding.TF_ATTR_TYPE) return { type: value as number };
  if (type === binding.TF_ATTR_INT) return { i: value as number };
  if (type === binding.TF_ATTR_FLOAT) return { f: value as number };
  if (type === binding.TF_ATTR_BOOL) return { b: value as boolean };
  if (type === binding.TF_ATTR_STRING) return { s: Buffer.from(value as string) };
  throw new Error(`attribute ${name} of type ${type} has no place in a graph`);
}
