import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';
import { trainRewardStage } from '../../core/training/reward-stage.ts';
import type { RewardStageInput, RewardStageState } from '../../core/training/reward-stage.ts';
import type { StageResult } from '../../core/training/stage.ts';
import { Control } from '../control/control.ts';
import type { ControlState } from '../control/control.ts';
import { parentOf } from '../control/refuse.ts';
import { allReported, trainingPorts } from '../ports.ts';

/** One reward stage; a step is an epoch of one of its models. */
export async function reward(
  input: RewardStageInput,
  from: RewardStageState | null = null,
  controlState?: ControlState,
): Promise<StageResult> {
  const { workflowId } = parentOf(from);
  const control = new Control(controlState);
  const ports = trainingPorts(control, workflowId, input.spec.run, () => 1);
  const result = await trainRewardStage(ports, input, from, async (state) => {
    const verdict = await control.pass();
    if (verdict === 'go' && workflowInfo().continueAsNewSuggested) {
      await control.told;
      await condition(allHandlersFinished);
      await continueAsNew<typeof reward>(input, state, control.state);
    }
    return verdict;
  });
  await allReported(control, workflowId);
  return result;
}
