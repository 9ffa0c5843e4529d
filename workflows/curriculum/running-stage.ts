import { log, startChild } from '@temporalio/workflow';
import type {
  ChildWorkflowHandle,
  SignalDefinition,
  Workflow,
  WorkflowResultType,
} from '@temporalio/workflow';
import { ids } from '../../core/names.ts';
import type { ControlState } from '../control/control.ts';
import { TAKING_OVER } from '../ports.ts';
import { searchAttributes } from '../search-attributes.ts';
import type { reward } from '../training/reward.ts';
import type { stage } from '../training/stage.ts';
import type { supervised } from '../training/supervised.ts';

export type StageWorkflow = typeof supervised | typeof reward | typeof stage;

/** The stage that a run is in, as a workflow of its own that hears of what is asked of the run. */
export class RunningStage {
  private child: Promise<Pick<ChildWorkflowHandle<Workflow>, 'signal'>> | null = null;
  private passed: Promise<void> = Promise.resolve();

  /** Takes a stage to its end. It is given what was asked of the run before. */
  async run<T extends StageWorkflow>(
    type: string,
    input: Parameters<T>[0],
    asked: ControlState,
  ): Promise<WorkflowResultType<T>> {
    const { run } = input.spec;
    const { name } = input.stage;
    const starting = startChild<T>(type, {
      ...TAKING_OVER,
      args: [input, null, asked] as unknown as Parameters<T>,
      workflowId: ids.stage(run, name),
      typedSearchAttributes: searchAttributes({ run, stage: name }),
    });
    this.child = starting;
    try {
      return await (await starting).result();
    } finally {
      this.child = null;
    }
  }

  /** Passes a message on, one after the other: of signals under way together the server keeps no order. */
  pass<Args extends unknown[]>(signal: SignalDefinition<Args>, ...args: Args): Promise<void> {
    this.passed = this.passed.then(() => this.deliver(signal, args));
    return this.passed;
  }

  private async deliver<Args extends unknown[]>(signal: SignalDefinition<Args>, args: Args): Promise<void> {
    if (this.child === null) return;
    try {
      // One that is only just starting was given what was asked before.
      await (await this.child).signal(signal, ...args);
    } catch (error) {
      // The child ended meanwhile; what was asked is kept by the run and holds for the next one.
      log.info('a control message found its stage ended', { reason: String(error) });
    }
  }
}
