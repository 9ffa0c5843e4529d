import type { Question } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import type { StageInput, StageState } from './stage.ts';

export type StageAnswer = 'continue' | 'rollback' | 'advance' | 'stop';

/** Where a roll-back goes: to the best measured checkpoint, or where nothing was measured to the stage's first. */
export const rollbackTarget = (input: StageInput, { history }: StageState): CheckpointRef =>
  history.best?.checkpoint ?? input.checkpoint;

/** What a stage asks a person: only what can be done from where it stands. */
export function stageQuestion(input: StageInput, state: StageState, reason: string): Question<StageAnswer> {
  const { maxSteps, collapse } = input.stage;
  const { best } = state.history;
  const target = rollbackTarget(input, state);
  const left = maxSteps - state.step;
  const goesBack = target.manifest.key !== state.checkpoint.manifest.key;
  const to = best === null ? 'where the stage began' : `the best checkpoint, that of step ${best.step}`;
  const bestOrLast = best === null ? 'its newest checkpoint' : 'its best checkpoint';
  const answers: Question<StageAnswer>['answers'] = [];
  if (left > 0) {
    answers.push({
      answer: 'continue',
      effect: `train on from the newest checkpoint; ${left} of ${maxSteps} steps are left`,
    });
    if (goesBack) {
      answers.push({
        answer: 'rollback',
        effect: `go back to ${to}, and train on from there with ${collapse.learningRateFactor} times the learning rate`,
      });
    }
  }
  answers.push(
    {
      answer: 'advance',
      effect: `end this stage with ${bestOrLast}, and go on to the next one, or after the last to the report`,
    },
    { answer: 'stop', effect: `end the run with ${bestOrLast} of this stage` },
  );
  return { reason, answers };
}
