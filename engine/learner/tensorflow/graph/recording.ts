import type { Tensor } from '@tensorflow/tfjs';
import type { NativeOpsBinding, NativeOps, OpAttribute } from '../native-ops.ts';
import { resultsOf, type Described } from './result-shapes.ts';

export interface RecordedOp {
  name: string;
  attributes: OpAttribute[];
  inputs: number[];
  /** Ids of what it gives. */
  outputs: number[];
}

interface RecordedConstant {
  shape: number[];
  dtype: number;
  bytes: Uint8Array;
}

/** What a program would compute, by tensor ids: those of its inputs are the addon's, all others are below 0. */
export interface Recording {
  ops: RecordedOp[];
  constants: Map<number, RecordedConstant>;
  inputs: number[];
  outputs: number[];
}

/** tfjs deletes no tensor whose id is below 0, so what the recording gives out needs no memory and no care. */
const FIRST_ID = -2;

/**
 * Records every op of `compute` at the addon's boundary, and runs none: what an op gives is a tensor that has a shape and
 * no values. What must not be baked into the recording is given as `inputs`; every other tensor has to be made inside
 * `compute`. Throws Error where the program reads a value, or does something that `resultsOf` does not know.
 */
export function recordGraph(
  native: NativeOps,
  compute: (inputs: Tensor[]) => Tensor[],
  inputs: Tensor[],
): Recording {
  const { kernels } = native;
  const { binding } = kernels;
  const inputIds = kernels.getInputTensorIds(inputs);
  const ops: RecordedOp[] = [];
  const constants = new Map<number, RecordedConstant>();
  const described = new Map<number, Described>();
  inputs.forEach(({ shape, dtype }, i) => {
    described.set(inputIds[i]!, { shape, dtype: dtype === 'int32' ? binding.TF_INT32 : binding.TF_FLOAT });
  });
  let nextId = FIRST_ID;
  const given = (tensor: Described): number => {
    const id = nextId--;
    described.set(id, tensor);
    return id;
  };
  const seen = (id: number): Described => {
    const tensor = described.get(id);
    if (!tensor) throw new Error('the program reads a tensor that was made outside of it');
    return tensor;
  };
  const recorder = Object.create(binding, {
    executeOp: {
      value: ((name, attributes, inputs) => {
        const results = resultsOf({ name, attributes }, inputs.map(seen));
        const outputs = results.map(given);
        ops.push({ name, attributes: [...attributes], inputs: [...inputs], outputs });
        return results.map(({ shape, dtype }, i) => ({ id: outputs[i]!, shape: [...shape], dtype }));
      }) satisfies NativeOpsBinding['executeOp'],
    },
    createTensor: {
      value: ((shape, dtype, values) => {
        const numbers = numbersOf(values);
        const id = given({ shape, dtype, ...(numbers instanceof Int32Array && { constant: [...numbers] }) });
        constants.set(id, { shape: [...shape], dtype, bytes: bytesOf(numbers) });
        return id;
      }) satisfies NativeOpsBinding['createTensor'],
    },
    tensorDataSync: {
      value: () => {
        throw new Error('the program reads a value while it is recorded');
      },
    },
  }) as NativeOpsBinding;
  kernels.binding = recorder;
  try {
    const results = compute(inputs);
    const outputs = kernels.getInputTensorIds(results);
    for (const tensor of results) tensor.dispose();
    return { ops, constants, inputs: inputIds, outputs };
  } finally {
    kernels.binding = binding;
  }
}

function numbersOf(values: unknown): NodeJS.TypedArray {
  if (!ArrayBuffer.isView(values) || values instanceof DataView)
    throw new TypeError('a constant of the program is not a typed array');
  return values as NodeJS.TypedArray;
}

const bytesOf = ({ buffer, byteOffset, byteLength }: NodeJS.TypedArray): Uint8Array =>
  new Uint8Array(buffer, byteOffset, byteLength).slice();
