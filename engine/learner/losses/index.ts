import { GradusError } from '../../../core/errors.ts';
import type { Objective } from '../../../core/algorithms/objective.ts';
import { cispoLoss } from './cispo.ts';
import { clipped } from './clipped.ts';
import { distillationLoss } from './distill.ts';
import { dpoLoss } from './dpo.ts';
import { gspoLoss } from './gspo.ts';
import { ktoLoss } from './kto.ts';
import type { Loss } from './loss.ts';
import { reinforceLoss } from './reinforce.ts';
import { supervised } from './supervised.ts';

const LOSSES: { [Kind in Objective['kind']]: (objective: Extract<Objective, { kind: Kind }>) => Loss } = {
  supervised: () => supervised,
  clipped,
  gspo: gspoLoss,
  cispo: cispoLoss,
  reinforce: reinforceLoss,
  dpo: dpoLoss,
  kto: ktoLoss,
  distill: distillationLoss,
  own: ({ name }) => {
    throw new GradusError(
      'learner',
      'settings',
      `the learner of TypeScript has no loss "${name}": losses of a project are computed by the one in PyTorch (docs/extend.md)`,
    );
  },
};

/** Throws GradusError('learner', 'settings') for a loss of a project. */
export const lossOf = (objective: Objective): Loss =>
  (LOSSES[objective.kind] as (objective: Objective) => Loss)(objective);
