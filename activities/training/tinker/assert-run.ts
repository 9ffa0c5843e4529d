import { GradusError } from '../../../core/errors.ts';
import type { CurriculumSpec } from '../../../core/schema/curriculum-spec.ts';
import type { StageSpec } from '../../../core/schema/stages/stages.ts';
import { objectiveAt } from '../../../core/training/exploration.ts';
import { assertTinkerCan, lacks } from './capabilities.ts';
import type { TinkerServer, TinkerStep } from './capabilities.ts';

type Run = Pick<CurriculumSpec, 'stages' | 'lora' | 'learner' | 'sampling'>;

/**
 * What a stage of the run will ask for and the server does not have, before anything is spent: a later stage would ask when
 * those before it are trained. Throws GradusError('learner', 'settings'), which names the stage.
 */
export function assertTinkerTrains(run: Run, server: TinkerServer): void {
  for (const stage of run.stages)
    try {
      assertTinkerCan(stepOf(run, stage), server);
    } catch (error) {
      if (!(error instanceof GradusError)) throw error;
      throw new GradusError(error.boundary, error.type, `stage ${stage.name}: ${error.message}`, {
        cause: error,
      });
    }
}

/** What the learner is asked for in a step of a stage. Throws GradusError('learner', 'settings'). */
function stepOf({ lora, learner: compute, sampling }: Run, stage: StageSpec): TinkerStep {
  const common = { lora, compute, reference: null };
  if (stage.kind === 'reward') throw lacks('reward models', 'leave out the stage');
  const { optimizer } = stage;
  if (stage.kind === 'supervised')
    return { ...common, optimizer, objective: stage.objective ?? { kind: 'supervised' } };
  const { plan, exploration } = stage;
  if (plan.scores.length > 0)
    throw lacks('scores of tokens before their advantages', 'choose a method that needs none');
  const schedule = exploration?.temperature;
  if (schedule && (schedule.from !== 1 || schedule.to !== 1))
    throw lacks(`log-probs at temperatures from ${schedule.from} to ${schedule.to}`, 'sample at 1');
  return {
    ...common,
    optimizer,
    objective: objectiveAt(plan.objective, sampling),
    critic: plan.critic,
    teachers: plan.teachers,
    reference: plan.reference ? stage : null,
  };
}
