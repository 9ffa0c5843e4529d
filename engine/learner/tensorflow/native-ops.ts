import type { Tensor, Tensor1D, Tensor2D } from '@tensorflow/tfjs';
import type { Tf } from './backend.ts';

/** An attribute of a TensorFlow op, as the addon takes it. */
export interface OpAttribute {
  name: string;
  type: number;
  value: boolean | number | string | object | number[];
  /** Ours, unknown to TensorFlow: the product stays in float32 when a graph computes products in bfloat16. */
  exact?: true;
}

/** The addon's boundary: every kernel of tfjs-node passes through `executeOp` and `createTensor`. */
export interface NativeOpsBinding {
  readonly TF_FLOAT: number;
  readonly TF_INT32: number;
  readonly TF_BOOL: number;
  readonly TF_ATTR_STRING: number;
  readonly TF_ATTR_INT: number;
  readonly TF_ATTR_FLOAT: number;
  readonly TF_ATTR_BOOL: number;
  readonly TF_ATTR_TYPE: number;
  readonly TF_ATTR_SHAPE: number;
  readonly TF_Version: string;
  createTensor(shape: number[], dtype: number, values: unknown): number;
  executeOp(
    name: string,
    attributes: OpAttribute[],
    inputs: number[],
    outputs: number,
  ): { id: number; shape: number[]; dtype: number }[];
}

/** The part of tfjs-node's kernel backend that is used here; `getInputTensorIds` is not public upstream. */
export interface KernelBackend {
  binding: NativeOpsBinding;
  readonly isUsingGpuDevice: boolean;
  getInputTensorIds(tensors: Tensor[]): number[];
  executeSingleOutput(name: string, attributes: OpAttribute[], inputs: Tensor[]): Tensor;
  executeMultipleOutputs(
    name: string,
    attributes: OpAttribute[],
    inputs: Tensor[],
    outputs: number,
  ): Tensor[];
}

/** Variables so far: TensorFlow gives one name one variable in the whole process, whichever learner made it. */
let variables = 0;

/** TensorFlow ops that tfjs does not expose, by the names in TensorFlow's op reference. */
export class NativeOps {
  readonly kernels: KernelBackend;
  private readonly tf: Tf;

  constructor(tf: Tf, kernels: KernelBackend) {
    this.tf = tf;
    this.kernels = kernels;
  }

  /** 2-D MatMul; tfjs itself always uses BatchMatMul, which is slower for one large product. */
  matMul(a: Tensor2D, b: Tensor2D, transposeA: boolean, transposeB: boolean, exact = false): Tensor2D {
    const attributes = [
      { ...this.type('T'), ...(exact && { exact }) },
      this.flag('transpose_a', transposeA),
      this.flag('transpose_b', transposeB),
    ];
    return this.kernels.executeSingleOutput('MatMul', attributes, [a, b]) as Tensor2D;
  }

  /** Negative log-softmax at the labels [N], and softmax(logits) − onehot(labels) [N, V], in one pass. */
  crossEntropy(logits: Tensor2D, labels: Tensor1D): { loss: Tensor1D; backprop: Tensor2D } {
    const { binding } = this.kernels;
    const attributes = [
      this.type('T'),
      { name: 'Tlabels', type: binding.TF_ATTR_TYPE, value: binding.TF_INT32 },
    ];
    const [loss, backprop] = this.kernels.executeMultipleOutputs(
      'SparseSoftmaxCrossEntropyWithLogits',
      attributes,
      [logits, labels],
      2,
    );
    return { loss: loss as Tensor1D, backprop: backprop as Tensor2D };
  }

  /** Rows of x [M, d] at `indices` [K], int32: [K, d]. tfjs itself would read the indices to look at each. */
  gatherRows(x: Tensor2D, indices: Tensor1D): Tensor2D {
    const { binding } = this.kernels;
    const int32 = (name: string) => ({ name, type: binding.TF_ATTR_TYPE, value: binding.TF_INT32 });
    const attributes = [
      { name: 'batch_dims', type: binding.TF_ATTR_INT, value: 0 },
      this.type('Tparams'),
      int32('Tindices'),
      int32('Taxis'),
    ];
    return this.tf.tidy(() => {
      const axis = this.tf.scalar(0, 'int32');
      return this.kernels.executeSingleOutput('GatherV2', attributes, [x, indices, axis]) as Tensor2D;
    });
  }

  /** Half the squared L2 norm. */
  halfSquaredNorm(x: Tensor): Tensor {
    return this.kernels.executeSingleOutput('L2Loss', [this.type('T')], [x]);
  }

  /** A resource variable that holds `initial`; the caller disposes it with `destroyVariable`. */
  createVariable(initial: Tensor): Tensor {
    const { binding } = this.kernels;
    const text = (name: string, value: string) => ({ name, type: binding.TF_ATTR_STRING, value });
    const attributes = [
      text('container', ''),
      text('shared_name', `gradus-${variables++}`),
      this.type('dtype'),
      { name: 'shape', type: binding.TF_ATTR_SHAPE, value: initial.shape },
    ];
    const handle = this.tf.keep(this.kernels.executeSingleOutput('VarHandleOp', attributes, []));
    this.execute('AssignVariableOp', [this.type('dtype')], [handle, initial]);
    return handle;
  }

  /** The variable's value, without a copy. */
  readVariable(handle: Tensor): Tensor {
    return this.kernels.executeSingleOutput('ReadVariableOp', [this.type('dtype')], [handle]);
  }

  destroyVariable(handle: Tensor): void {
    this.execute('DestroyResourceOp', [this.flag('ignore_lookup_error', true)], [handle]);
    handle.dispose();
  }

  /** ResourceApplyAdam: variable, first and second moment change in place. The other tensors are scalars. */
  applyAdam(
    variable: Tensor,
    firstMoment: Tensor,
    secondMoment: Tensor,
    scalars: {
      beta1Power: Tensor;
      beta2Power: Tensor;
      rate: Tensor;
      beta1: Tensor;
      beta2: Tensor;
      epsilon: Tensor;
    },
    gradient: Tensor,
  ): void {
    const { beta1Power, beta2Power, rate, beta1, beta2, epsilon } = scalars;
    this.execute(
      'ResourceApplyAdam',
      [this.type('T'), this.flag('use_locking', false), this.flag('use_nesterov', false)],
      [variable, firstMoment, secondMoment, beta1Power, beta2Power, rate, beta1, beta2, epsilon, gradient],
    );
  }

  private execute(name: string, attributes: OpAttribute[], inputs: Tensor[]): void {
    this.kernels.executeMultipleOutputs(name, attributes, inputs, 0);
  }

  private type(name: string): OpAttribute {
    const { binding } = this.kernels;
    return { name, type: binding.TF_ATTR_TYPE, value: binding.TF_FLOAT };
  }

  private flag(name: string, value: boolean): OpAttribute {
    return { name, type: this.kernels.binding.TF_ATTR_BOOL, value };
  }
}
