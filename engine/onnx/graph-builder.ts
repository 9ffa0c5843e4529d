import type { Attribute, OnnxInitializer, OnnxModel, OnnxNode, OnnxValue } from './onnx-proto.ts';

/** Collects the parts of an ONNX graph; values are known by name. */
export class GraphBuilder {
  private readonly nodes: OnnxNode[] = [];
  private readonly initializers: OnnxInitializer[] = [];
  private readonly inputs: OnnxValue[] = [];
  private readonly outputs: OnnxValue[] = [];
  private count = 0;

  input(value: OnnxValue): string {
    this.inputs.push(value);
    return value.name;
  }

  output(value: OnnxValue): string {
    this.outputs.push(value);
    return value.name;
  }

  initializer(value: OnnxInitializer): string {
    this.initializers.push(value);
    return value.name;
  }

  /** A constant of 64-bit integers, as shapes and indices are. */
  integers(values: readonly number[]): string {
    const data = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
    return this.initializer({ name: this.fresh('const'), type: 'int64', shape: [values.length], data });
  }

  floats(name: string, shape: readonly number[], values: Float32Array): string {
    const data = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return this.initializer({ name, type: 'float32', shape, data });
  }

  /** Adds a node of a standard operator and returns its only output. */
  node(op: string, inputs: readonly string[], attributes: Record<string, Attribute> = {}, output?: string) {
    return this.add('', op, inputs, [output ?? this.fresh(op)], attributes)[0]!;
  }

  /** Cuts an axis into so many parts, of the sizes that are in a value [parts]. */
  split(x: string, parts: number, sizes: string, axis: number): string[] {
    const outputs = Array.from({ length: parts }, () => this.fresh('Split'));
    this.add('', 'Split', [x, sizes], outputs, { axis: { int: axis } });
    return outputs;
  }

  /** Adds a node of an operator of ONNX Runtime and returns its outputs; '' leaves an output out. */
  microsoft(
    op: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: Record<string, Attribute> = {},
  ): readonly string[] {
    return this.add('com.microsoft', op, inputs, outputs, attributes);
  }

  /** Adds a node of an operator of the native decoder and returns its only output. */
  native(
    op: string,
    inputs: readonly string[],
    attributes: Record<string, Attribute>,
    output: string,
  ): string {
    return this.add('gradus', op, inputs, [output], attributes)[0]!;
  }

  fresh(prefix: string): string {
    return `${prefix}_${this.count++}`;
  }

  build(): OnnxModel {
    const { nodes, initializers, inputs, outputs } = this;
    return { nodes, initializers, inputs, outputs };
  }

  private add(
    domain: string,
    op: string,
    inputs: readonly string[],
    outputs: readonly string[],
    attributes: Record<string, Attribute>,
  ): readonly string[] {
    this.nodes.push({ op, domain, inputs, outputs, attributes });
    return outputs;
  }
}
