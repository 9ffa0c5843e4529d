import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';
import { changedStage } from '../../core/training/changed-stage.ts';
import { trainStage } from '../../core/training/stage.ts';
import type { StageInput, StageResult, StageState } from '../../core/training/stage.ts';
import { Control } from '../control/control.ts';
import type { ControlState } from '../control/control.ts';
import { parentOf } from '../control/refuse.ts';
import { allReported, probingOnce, trainingPorts } from '../ports.ts';

/** The curriculum's history holds about this many reports of a stage, however long it is. */
const REPORTS_PER_STAGE = 1000;

/** One RL stage. Continues as new between steps when its history grows long. */
export async function stage(
  input: StageInput,
  from: StageState | null = null,
  controlState?: ControlState,
): Promise<StageResult> {
  const { workflowId } = parentOf(from);
  const control = new Control(controlState);
  const ports = trainingPorts(
    control,
    workflowId,
    input.spec.run,
    () => Math.ceil(changedStage(input, control.changed).stage.maxSteps / REPORTS_PER_STAGE),
    input.stage.collect.kind === 'asynchronous' ? probingOnce() : undefined,
  );
  const result = await trainStage(ports, input, from, async (_, carried) => {
    const verdict = await control.pass();
    if (verdict === 'go' && workflowInfo().continueAsNewSuggested) {
      const state = await carried();
      await control.told;
      await condition(allHandlersFinished);
      await continueAsNew<typeof stage>(input, state, control.state);
    }
    return verdict;
  });
  await allReported(control, workflowId);
  return result;
}
