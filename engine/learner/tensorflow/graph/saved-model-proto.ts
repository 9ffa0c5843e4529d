import protobuf from 'protobufjs';

/**
 * The fields of TensorFlow's SavedModel that a traced program needs, numbered as in tensorflow/core/protobuf
 * (saved_model, meta_graph) and tensorflow/core/framework (graph, node_def, attr_value, tensor, tensor_shape).
 */
const SCHEMA = `
  syntax = "proto3";
  message Shape { message Dim { int64 size = 1; } repeated Dim dim = 2; }
  message Tensor { int32 dtype = 1; Shape tensor_shape = 2; bytes tensor_content = 4; }
  message Attr {
    message List { repeated int64 i = 3; repeated float f = 4; repeated bool b = 5; }
    oneof value { List list = 1; bytes s = 2; int64 i = 3; float f = 4; bool b = 5; int32 type = 6; Shape shape = 7; Tensor tensor = 8; }
  }
  message Node { string name = 1; string op = 2; repeated string input = 3; map<string, Attr> attr = 5; }
  message Versions { int32 producer = 1; }
  message Graph { repeated Node node = 1; Versions versions = 4; }
  message TensorInfo { string name = 1; int32 dtype = 2; Shape tensor_shape = 3; }
  message Signature { map<string, TensorInfo> inputs = 1; map<string, TensorInfo> outputs = 2; string method_name = 3; }
  message MetaGraph {
    message Info { repeated string tags = 4; string tensorflow_version = 5; }
    Info meta_info_def = 1; Graph graph_def = 2; map<string, Signature> signature_def = 5;
  }
  message SavedModel { int64 saved_model_schema_version = 1; repeated MetaGraph meta_graphs = 2; }
`;

const savedModel = protobuf.parse(SCHEMA, { keepCase: true }).root.lookupType('SavedModel');

export interface ShapeProto {
  dim: { size: number }[];
}

/** One of TensorFlow's AttrValue. */
export type AttrProto =
  | { list: { i?: number[]; f?: number[]; b?: boolean[] } }
  | { s: Uint8Array }
  | { i: number }
  | { f: number }
  | { b: boolean }
  | { type: number }
  | { shape: ShapeProto }
  | { tensor: { dtype: number; tensor_shape: ShapeProto; tensor_content: Uint8Array } };

export interface NodeProto {
  name: string;
  op: string;
  input: string[];
  attr: Record<string, AttrProto>;
}

export interface TensorInfoProto {
  name: string;
  dtype: number;
  tensor_shape: ShapeProto;
}

export const shapeProto = (shape: readonly number[]): ShapeProto => ({
  dim: shape.map((size) => ({ size })),
});

/** The bytes of `saved_model.pb` with one graph and one signature, `serving_default`. */
export function encodeSavedModel(
  version: string,
  nodes: NodeProto[],
  inputs: Record<string, TensorInfoProto>,
  outputs: Record<string, TensorInfoProto>,
): Uint8Array {
  const message = savedModel.fromObject({
    saved_model_schema_version: 1,
    meta_graphs: [
      {
        meta_info_def: { tags: ['serve'], tensorflow_version: version },
        // The oldest producer whose graphs may use every op of TensorFlow 2.20.
        graph_def: { node: nodes, versions: { producer: 1882 } },
        signature_def: { serving_default: { inputs, outputs, method_name: 'gradus' } },
      },
    ],
  });
  return savedModel.encode(message).finish();
}
