import type { RolloutDtype } from '../../core/schema/policy.ts';

/** By which weights are known that were rounded: the digest of the float32 ones, and what they were rounded to. */
export const roundedVersion = (digest: string, dtype: RolloutDtype | undefined): string =>
  dtype === undefined || dtype === 'float32' ? digest : `${digest}-${dtype}`;
