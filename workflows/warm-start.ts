import { allHandlersFinished, condition, continueAsNew, workflowInfo } from '@temporalio/workflow';
import { warmStart as train } from '../core/training/warm-start.ts';
import type { WarmStartInput, WarmStartResult, WarmStartState } from '../core/training/warm-start.ts';
import { Control } from './control.ts';
import type { ControlState } from './control.ts';
import { parentOf } from './refuse.ts';
import { allReported, trainingPorts } from './ports.ts';

/** Supervised warm start; one round is a learner step and an evaluation. */
export async function warmStart(
  input: WarmStartInput,
  from: WarmStartState | null = null,
  controlState?: ControlState,
): Promise<WarmStartResult> {
  const { workflowId } = parentOf(from);
  const control = new Control(controlState);
  const ports = trainingPorts(control, workflowId, input.spec.run, 1);
  const result = await train(ports, input, from, async (state) => {
    const verdict = await control.pass();
    if (verdict === 'go' && workflowInfo().continueAsNewSuggested) {
      await control.told;
      await condition(allHandlersFinished);
      await continueAsNew<typeof warmStart>(input, state, control.state);
    }
    return verdict;
  });
  await allReported(control, workflowId);
  return result;
}
