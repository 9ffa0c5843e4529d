import type { Question } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import { lastHealthy } from '../diagnosis/healthy.ts';
import type { StageDecision } from './stage-policy.ts';
import type { StageInput, StageState } from './stage.ts';

export type StageAnswer = 'continue' | 'rollback' | 'advance' | 'stop';

/** Where a roll-back goes, and what that is. */
export interface RollbackTarget {
  checkpoint: CheckpointRef;
  what: string;
}

/**
 * After an alarm to the last healthy checkpoint, if there is one; otherwise to the best measured one, or where nothing
 * was measured to the stage's first.
 */
export function rollbackTarget(
  input: StageInput,
  { history: { best }, healthy, step }: Pick<StageState, 'history' | 'healthy' | 'step'>,
  why: StageDecision['kind'],
): RollbackTarget {
  const place = why === 'alarm' ? lastHealthy(healthy, step) : null;
  if (place !== null) {
    return {
      checkpoint: place.checkpoint,
      what: `the last healthy checkpoint, that of step ${place.stageStep}`,
    };
  }
  return best === null
    ? { checkpoint: input.checkpoint, what: 'where the stage began' }
    : { checkpoint: best.checkpoint, what: `the best checkpoint, that of step ${best.step}` };
}

/** What a stage asks a person: only what can be done from where it stands. */
export function stageQuestion(
  input: StageInput,
  state: StageState,
  { kind, reason }: Extract<StageDecision, { reason: string }>,
): Question<StageAnswer> {
  const { maxSteps, collapse } = input.stage;
  const { best } = state.history;
  const target = rollbackTarget(input, state, kind);
  const left = maxSteps - state.step;
  const goesBack = target.checkpoint.manifest.key !== state.checkpoint.manifest.key;
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
        effect: `go back to ${target.what}, and train on from there with ${collapse.learningRateFactor} times the learning rate`,
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
