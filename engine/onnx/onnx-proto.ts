import protobuf from 'protobufjs';

/** Element types of ONNX tensors (`TensorProto.DataType`). */
const dataType = { float32: 1, uint8: 2, int32: 6, int64: 7 } as const;
type DataType = keyof typeof dataType;

/** An attribute of a node; a bare number cannot say whether it is an int or a float. */
export type Attribute = { int: number } | { float: number } | { ints: readonly number[] };

export interface OnnxNode {
  op: string;
  /** '' is the ONNX operator set, 'com.microsoft' ONNX Runtime's own, 'gradus' that of the native decoder. */
  domain: string;
  inputs: readonly string[];
  outputs: readonly string[];
  attributes: Readonly<Record<string, Attribute>>;
}

/** A graph input or output; a string dimension is symbolic. */
export interface OnnxValue {
  name: string;
  type: DataType;
  shape: readonly (number | string)[];
}

/** A constant: its bytes lie in the model, or in an external file at a byte offset. */
export interface OnnxInitializer {
  name: string;
  type: DataType;
  shape: readonly number[];
  data: Uint8Array | { file: string; offset: number; length: number };
}

export interface OnnxModel {
  nodes: readonly OnnxNode[];
  initializers: readonly OnnxInitializer[];
  inputs: readonly OnnxValue[];
  outputs: readonly OnnxValue[];
}

const field = (type: string, id: number) => ({ type, id });
const list = (type: string, id: number) => ({ rule: 'repeated', type, id });

/** The part of onnx.proto3 (https://github.com/onnx/onnx, IR version 9) that a decoder needs. */
const root = protobuf.Root.fromJSON({
  nested: {
    ModelProto: {
      fields: {
        irVersion: field('int64', 1),
        producerName: field('string', 2),
        graph: field('GraphProto', 7),
        opsetImport: list('OperatorSetIdProto', 8),
      },
    },
    OperatorSetIdProto: { fields: { domain: field('string', 1), version: field('int64', 2) } },
    GraphProto: {
      fields: {
        node: list('NodeProto', 1),
        name: field('string', 2),
        initializer: list('TensorProto', 5),
        input: list('ValueInfoProto', 11),
        output: list('ValueInfoProto', 12),
      },
    },
    NodeProto: {
      fields: {
        input: list('string', 1),
        output: list('string', 2),
        name: field('string', 3),
        opType: field('string', 4),
        attribute: list('AttributeProto', 5),
        domain: field('string', 7),
      },
    },
    AttributeProto: {
      fields: {
        name: field('string', 1),
        f: field('float', 2),
        i: field('int64', 3),
        ints: list('int64', 8),
        type: field('int32', 20),
      },
    },
    TensorProto: {
      fields: {
        dims: list('int64', 1),
        dataType: field('int32', 2),
        name: field('string', 8),
        rawData: field('bytes', 9),
        externalData: list('StringStringEntryProto', 13),
        dataLocation: field('int32', 14),
      },
    },
    StringStringEntryProto: { fields: { key: field('string', 1), value: field('string', 2) } },
    ValueInfoProto: { fields: { name: field('string', 1), type: field('TypeProto', 2) } },
    TypeProto: { fields: { tensorType: field('TensorTypeProto', 1) } },
    TensorTypeProto: { fields: { elemType: field('int32', 1), shape: field('TensorShapeProto', 2) } },
    TensorShapeProto: { fields: { dim: list('DimensionProto', 1) } },
    DimensionProto: { fields: { dimValue: field('int64', 1), dimParam: field('string', 2) } },
  },
});
const modelProto = root.lookupType('ModelProto');
const [FLOAT, INT, INTS] = [1, 2, 7];
const EXTERNAL = 1;

function attribute([name, value]: [string, Attribute]) {
  if ('int' in value) return { name, i: value.int, type: INT };
  if ('float' in value) return { name, f: value.float, type: FLOAT };
  return { name, ints: value.ints, type: INTS };
}

function valueInfo({ name, type, shape }: OnnxValue) {
  const dim = shape.map((size) => (typeof size === 'number' ? { dimValue: size } : { dimParam: size }));
  return { name, type: { tensorType: { elemType: dataType[type], shape: { dim } } } };
}

function tensor({ name, type, shape, data }: OnnxInitializer) {
  const head = { name, dims: shape, dataType: dataType[type] };
  if (data instanceof Uint8Array) return { ...head, rawData: data };
  const entries = { location: data.file, offset: data.offset, length: data.length };
  const externalData = Object.entries(entries).map(([key, value]) => ({ key, value: String(value) }));
  return { ...head, externalData, dataLocation: EXTERNAL };
}

/** The bytes of an `.onnx` file: operator set 20 and `com.microsoft` 1, and `gradus` 1 where a node is of it. */
export function encodeModel(model: OnnxModel): Uint8Array {
  const isOurs = model.nodes.some(({ domain }) => domain === 'gradus');
  return modelProto
    .encode({
      irVersion: 9,
      producerName: 'gradus',
      opsetImport: [
        { domain: '', version: 20 },
        { domain: 'com.microsoft', version: 1 },
        ...(isOurs ? [{ domain: 'gradus', version: 1 }] : []),
      ],
      graph: {
        name: 'decoder',
        node: model.nodes.map((node, index) => ({
          name: `${node.op}_${index}`,
          opType: node.op,
          domain: node.domain,
          input: node.inputs,
          output: node.outputs,
          attribute: Object.entries(node.attributes).map(attribute),
        })),
        initializer: model.initializers.map(tensor),
        input: model.inputs.map(valueInfo),
        output: model.outputs.map(valueInfo),
      },
    })
    .finish();
}
