import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';

/** A step of a stage, as a report or the facts of a step have it. */
export interface StepOfStage {
  stage: string;
  /** Of the stage, from 1. */
  stageStep: number;
  maxSteps: number;
}

/**
 * What a run is at, in words: `rl, step 3 of 12`; of a stage none of whose steps has ended what came before it, too. `phase`
 * is what the run says that it is at, null where it says nothing; `last` is the last step that has ended.
 */
export function stageText(
  phase: string | null,
  last: StepOfStage | null,
  spec: Pick<CurriculumSpec, 'stages'> | null,
): string {
  const stage = phase ?? last?.stage ?? null;
  if (stage === null) return '–';
  if (stage === last?.stage) return stepText(last);
  const of = stepsOf(spec, stage);
  const first = of === null ? '' : `, its first step of ${of}`;
  return `${stage}${first}${last === null ? '' : `; the last step was ${stepText(last)}`}`;
}

const stepText = ({ stage, stageStep, maxSteps }: StepOfStage): string =>
  `${stage}, step ${stageStep} of ${maxSteps}`;

/** null of what is no stage, such as the report. */
function stepsOf(spec: Pick<CurriculumSpec, 'stages'> | null, name: string): number | null {
  const stage = spec?.stages.find((one) => one.name === name);
  if (stage === undefined) return null;
  if (stage.kind === 'rl') return stage.maxSteps;
  return stage.kind === 'reward' ? stage.maxRounds * stage.models : stage.maxRounds;
}
