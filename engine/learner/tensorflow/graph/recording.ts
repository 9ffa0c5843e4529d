import type { Tensor } from '@tensorflow/tfjs';
import type { NativeOpsBinding, NativeOps, OpAttribute } from '../native-ops.ts';

export interface RecordedOp {
  name: string;
  attributes: OpAttribute[];
  inputs: number[];
  outputs: { id: number; shape: number[]; dtype: number }[];
}

interface RecordedConstant {
  shape: number[];
  dtype: number;
  bytes: Uint8Array;
}

/** What an eager computation did, by the addon's tensor ids, which are never used twice. */
export interface Recording {
  ops: RecordedOp[];
  constants: Map<number, RecordedConstant>;
  inputs: number[];
  outputs: number[];
}

/**
 * Runs `compute` once, eagerly, and records every op at the addon's boundary. What must not be baked into the
 * recording is given as `inputs`; every other tensor has to be made inside `compute`.
 */
export function recordGraph(
  native: NativeOps,
  compute: (inputs: Tensor[]) => Tensor[],
  inputs: Tensor[],
): Recording & { results: Tensor[] } {
  const { kernels } = native;
  const inputIds = kernels.getInputTensorIds(inputs);
  const { binding } = kernels;
  const ops: RecordedOp[] = [];
  const constants = new Map<number, RecordedConstant>();
  const recorder = Object.create(binding, {
    executeOp: {
      value: ((name, attributes, inputs, count) => {
        const outputs = binding.executeOp(name, attributes, inputs, count);
        ops.push({ name, attributes: [...attributes], inputs: [...inputs], outputs });
        return outputs;
      }) satisfies NativeOpsBinding['executeOp'],
    },
    createTensor: {
      value: ((shape, dtype, values) => {
        const id = binding.createTensor(shape, dtype, values);
        constants.set(id, { shape: [...shape], dtype, bytes: bytesOf(values) });
        return id;
      }) satisfies NativeOpsBinding['createTensor'],
    },
  }) as NativeOpsBinding;
  kernels.binding = recorder;
  try {
    const results = compute(inputs);
    return { ops, constants, inputs: inputIds, outputs: kernels.getInputTensorIds(results), results };
  } finally {
    kernels.binding = binding;
  }
}

function bytesOf(values: unknown): Uint8Array {
  if (!ArrayBuffer.isView(values)) throw new TypeError('a constant of the program is not a typed array');
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength).slice();
}
