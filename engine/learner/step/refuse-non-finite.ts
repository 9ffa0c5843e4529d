import { GradusError } from '../../../core/errors.ts';

/** Throws GradusError('learner', 'diverged'): `values` [total] of tokens are 0 where nothing counts. */
export function refuseNonFinite(values: Float32Array, whose: string, what = 'log-prob'): void {
  const bad = values.findIndex((value) => !Number.isFinite(value));
  if (bad < 0) return;
  throw new GradusError(
    'learner',
    'diverged',
    `the ${what} of token ${bad} of the batch is ${values[bad]} under ${whose}: ` +
      'these weights are broken, or give the sampled token no probability. Go back to an earlier checkpoint, or lower the learning rate.',
  );
}
