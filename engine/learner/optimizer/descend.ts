import type { Tensor } from '@tensorflow/tfjs';
import { GradusError } from '../../../core/errors.ts';
import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { OptimizerSettings } from '../contract.ts';
import { dispose } from '../batch/micro-batches.ts';
import type { Runner } from '../tensorflow/runner.ts';
import { rateAt, type Adam } from './adam.ts';
import { clipProgram } from './clip-program.ts';
import { momentumProgram } from './momentum-program.ts';

export interface Descent {
  /** In the order of the weights; this disposes them. None: nothing teaches, and moments decay by a gradient of zero. */
  gradients: Tensor[];
  loss: number;
  settings: OptimizerSettings;
  /** Updates of these weights before this one. */
  before: number;
  /** `update 7`, say. */
  name: string;
}

/** Of the gradients as they came. */
export interface Descended {
  /** L2, before clipping. */
  norm: number;
  /** Their cosine with Adam's first moments before the update; null where one of the two is zero. */
  momentumCosine: number | null;
}

/**
 * One update of Adam by gradients that are clipped first. Throws GradusError('learner', 'diverged')
 * where loss or norm is not finite, with the weights as they were.
 */
export async function descend(
  backend: TensorflowBackend,
  runner: Runner,
  adam: Adam,
  { gradients, loss, settings, before, name }: Descent,
): Promise<Descended> {
  // What teaches nothing has a gradient of zero, and Adam's moments decay by it as by any other.
  const whole =
    gradients.length > 0 ? gradients : adam.weights().map((weight) => backend.tf.zerosLike(weight));
  const along = await alongMomentum(backend, runner, whole, adam);
  const { norm, clipped } = await clip(backend, runner, whole, settings.maxGradientNorm);
  try {
    if (!Number.isFinite(loss) || !Number.isFinite(norm)) {
      throw new GradusError(
        'learner',
        'diverged',
        `${name}: loss ${loss}, gradient norm ${norm}. ` +
          'Lower the learning rate, clip the gradient norm, or look at the advantages of this batch.',
      );
    }
    adam.update(clipped, rateAt(settings, before), before + 1, settings);
  } finally {
    dispose(clipped);
  }
  const length = norm * Math.sqrt(along.squares);
  // Rounding may lead a little beyond.
  const momentumCosine = length > 0 ? Math.max(-1, Math.min(1, along.product / length)) : null;
  return { norm, momentumCosine };
}

/** Read before clipping disposes the gradients, and before an update changes the moments in place. */
async function alongMomentum(backend: TensorflowBackend, runner: Runner, gradients: Tensor[], adam: Adam) {
  const { first, second } = adam.moments();
  try {
    const given = [...gradients, ...first];
    const compute = await runner.prepare(momentumProgram(backend), given);
    const [product, squares] = backend.tf.tidy(() => compute(given).map((value) => value.dataSync()[0]!));
    return { product: product!, squares: squares! };
  } finally {
    dispose([...first, ...second]);
  }
}

async function clip(backend: TensorflowBackend, runner: Runner, given: Tensor[], largest: number) {
  const compute = await runner.prepare(clipProgram(backend, largest), given);
  const [norm, ...scaled] = backend.tf.tidy(() => compute(given));
  const [value] = norm!.dataSync();
  norm!.dispose();
  if (scaled.length === 0) return { norm: value!, clipped: given };
  dispose(given);
  return { norm: value!, clipped: scaled };
}
