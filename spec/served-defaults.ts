import type { WrittenSpec } from '../core/schema/curriculum.ts';
import { isExact, SERVED_IMPORTANCE_CAP } from '../core/schema/policy.ts';
import { inside } from '../core/schema/strict.ts';
import type { Path } from '../core/schema/strict.ts';

/**
 * The spec of a policy that is served, or of rounded weights: its log-probs are others than the learner's, so methods that can
 * weigh tokens by importance do so, with a cap, unless the spec says otherwise.
 */
export function withServedDefaults(written: unknown, spec: WrittenSpec): WrittenSpec {
  if (spec.policy === undefined || isExact(spec.policy)) return spec;
  const stages = spec.stages.map((stage, s): WrittenSpec['stages'][number] => {
    if (stage.kind !== 'rl' || !('importanceCap' in stage.algorithm)) return stage;
    const at: Path = ['stages', s, 'algorithm', 'importanceCap'];
    if (at.reduce(inside, written) !== undefined) return stage;
    return { ...stage, algorithm: { ...stage.algorithm, importanceCap: SERVED_IMPORTANCE_CAP } };
  });
  return { ...spec, stages };
}
