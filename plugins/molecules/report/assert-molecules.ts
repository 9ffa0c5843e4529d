import type { ParsedSpec } from '../../../spec/parse-spec.ts';
import { GradusError } from '../../../core/errors.ts';

const ENVIRONMENT = 'molecules';

/** Throws GradusError('spec', 'no-molecules') for a spec whose answers are none: they would be trained on for nothing. */
export function assertMolecules({ stages, evaluation }: ParsedSpec): void {
  const arms = [...stages, evaluation].flatMap((section) => section.arms);
  const other = arms.find(({ environment }) => environment !== ENVIRONMENT);
  if (other === undefined) return;
  throw new GradusError(
    'spec',
    'no-molecules',
    `the spec has tasks of the environment "${other.environment}", and this demo reports on molecules alone: ` +
      '`npm run demo -- --spec FILE` runs any spec',
  );
}
