import { causesOf } from '../episode/incidents.ts';
import { countsOf, rewardedCount } from '../episode/outcome.ts';
import { HELD_OUT } from '../names.ts';
import type { TrainingPorts } from '../ports.ts';
import type { CheckpointRef } from '../refs.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { Arm } from '../schema/tasks.ts';
import type { StageInput } from './stage.ts';
import { weighEvaluation } from './stage-policy.ts';
import type { StageDecision, StageHistory } from './stage-policy.ts';

/** A stage looks at held-out success every so many steps, and after its last one. */
export const isMeasured = ({ maxSteps, graduation }: StageInput['stage'], stageStep: number): boolean =>
  stageStep % graduation.everySteps === 0 || stageStep === maxSteps;

/** The arms of held-out success: a stage that trains a proposer alone asks whether what it proposes is a task. */
export const measuredArms = ({ arms, selfPlay }: Pick<StageInput['stage'], 'arms' | 'selfPlay'>): Arm[] =>
  selfPlay?.solver ? selfPlay.arms.map(({ environment, asks }) => ({ environment, level: asks })) : arms;

export const measure = (
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  checkpoint: CheckpointRef,
  stageStep: number,
): Promise<EvaluationResult> =>
  ports.evaluate({
    run: spec.run,
    seed: spec.seed,
    name: `${stage.name}${HELD_OUT}`,
    step: stageStep,
    checkpoint,
    ...(spec.policy && { policy: spec.policy }),
    ...(spec.agent && { agent: spec.agent }),
    arms: measuredArms(stage),
    tasks: stage.graduation.tasks,
    split: 'heldout',
    sampling: spec.sampling,
    reward: spec.reward,
    ...(spec.verification && { verification: spec.verification }),
  });

export const askAbout = (reason: string): StageDecision => ({ kind: 'collapse', action: 'ask', reason });

/** What a stage does after a measurement; `before` is what it would have done without. */
export function decideByEvaluation(
  { stage }: StageInput,
  before: { decision: StageDecision; history: StageHistory },
  evaluation: EvaluationResult,
  at: { checkpoint: CheckpointRef; step: number },
): { decision: StageDecision; history: StageHistory } {
  if (rewardedCount(evaluation.outcomes) === 0) {
    const why = `${countsOf(evaluation.outcomes)}${causesOf(evaluation.incidents ?? [])}`;
    const decision = askAbout(`no held-out episode of step ${at.step} could be judged: ${why}`);
    return { decision, history: before.history };
  }
  const weighed = weighEvaluation({ ...stage, arms: measuredArms(stage) }, before.history, {
    arms: evaluation.arms,
    ...at,
  });
  // A policy that no longer explores is nothing to come back to, however well it does, unless it is done.
  if (before.decision.kind === 'continue' || weighed.decision.kind === 'graduate') return weighed;
  // It might have graduated, though, and that is spent.
  const { error } = weighed.history;
  return { ...before, history: { ...before.history, ...(error && { error }) } };
}
