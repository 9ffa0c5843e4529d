import { z } from 'zod';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { jsonCodec } from '../codec.ts';

/** What a run's name belongs to: an execution of a curriculum, or an evaluation, with its spec, or a model that was imported. */
export interface RunClaim {
  /** The first execution of the workflow. */
  execution?: string;
  spec: CurriculumSpec | null;
  /** SHA-256 of an imported model. */
  import?: string;
  /** The workflow id of an evaluation: another execution of it goes on with what is stored. */
  evaluation?: string;
}

export const runClaims = jsonCodec<RunClaim>(
  'the claim of a run to its name',
  z.looseObject({
    execution: z.string().optional(),
    import: z.string().optional(),
    evaluation: z.string().optional(),
    // Only a spec that was parsed is written here.
    spec: z.looseObject({ run: z.string() }).nullable(),
  }),
);
