import { grpo } from './grpo.ts';
import type { GrpoSettings } from './grpo.ts';
import type { Loss } from './loss.ts';
import { supervised } from './supervised.ts';
import type { SupervisedSettings } from './supervised.ts';

/** What a step asks the learner for. */
export type Objective = SupervisedSettings | GrpoSettings;

export function lossOf(objective: Objective): Loss {
  return objective.kind === 'grpo' ? grpo(objective) : supervised;
}
