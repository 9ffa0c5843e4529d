import type { Objective } from '../../../core/algorithms/objective.ts';
import { cispo } from './cispo.ts';
import { clipped } from './clipped.ts';
import { distill } from './distill.ts';
import { dpo } from './dpo.ts';
import { gspo } from './gspo.ts';
import { kto } from './kto.ts';
import type { Loss } from './loss.ts';
import { reinforce } from './reinforce.ts';
import { supervised } from './supervised.ts';

const LOSSES: { [Kind in Objective['kind']]: (objective: Extract<Objective, { kind: Kind }>) => Loss } = {
  supervised: () => supervised,
  clipped,
  gspo,
  cispo,
  reinforce,
  dpo,
  kto,
  distill,
};

export const lossOf = (objective: Objective): Loss =>
  (LOSSES[objective.kind] as (objective: Objective) => Loss)(objective);
