import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';
import type { StageResult } from '../../core/training/stage.ts';
import { superviseStage } from '../../core/training/supervised-stage.ts';
import type { SupervisedInput, SupervisedState } from '../../core/training/supervised-stage.ts';
import { Control } from '../control/control.ts';
import type { ControlState } from '../control/control.ts';
import { parentOf } from '../control/refuse.ts';
import { allReported, trainingPorts } from '../ports.ts';

/** One supervised stage; a round is a learner step and an evaluation. */
export async function supervised(
  input: SupervisedInput,
  from: SupervisedState | null = null,
  controlState?: ControlState,
): Promise<StageResult> {
  const { workflowId } = parentOf(from);
  const control = new Control(controlState);
  const ports = trainingPorts(control, workflowId, input.spec.run, () => 1);
  const result = await superviseStage(ports, input, from, async (state) => {
    const verdict = await control.pass();
    if (verdict === 'go' && workflowInfo().continueAsNewSuggested) {
      await control.told;
      await condition(allHandlersFinished);
      await continueAsNew<typeof supervised>(input, state, control.state);
    }
    return verdict;
  });
  await allReported(control, workflowId);
  return result;
}
