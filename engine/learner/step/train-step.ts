import type { TensorflowBackend } from '../tensorflow/backend.ts';
import type { TrainBatch, TrainMetrics, TrainSettings, TrainState } from '../contract.ts';
import { criticUpdates } from './critic-updates.ts';
import { lengthOf } from '../batch/sequences.ts';
import type { DeviceState } from './device-state.ts';
import type { PolicyInputs } from './policy-updates.ts';
import { NO_POLICY, policyUpdates } from './policy-updates.ts';
import type { Runner } from '../tensorflow/runner.ts';

export interface StepArguments {
  parent: TrainState;
  /** Holds what the parent does, and afterwards the new state. */
  device: DeviceState;
  batch: TrainBatch;
  settings: TrainSettings;
  others: PolicyInputs;
  /** Counts micro-batches, with and without backward pass. */
  onProgress: ((done: number, total: number) => void) | undefined;
}

/** The updates of one network, which follow each other. */
export interface NetworkUpdates<Metrics> {
  /** Micro-batches of all of them. */
  readonly passes: number;
  /** What is computed before the first. */
  begin(): Promise<void>;
  update(index: number): Promise<void>;
  metrics(): Metrics;
}

/**
 * All updates of a step on arguments that were checked: each of the policy, then of the critic on the same sequences.
 * Throws GradusError('learner', 'diverged'), after which `device` holds nothing of use.
 */
export async function trainStep(
  backend: TensorflowBackend,
  runner: Runner,
  { parent, device, batch, settings, others, onProgress }: StepArguments,
): Promise<TrainMetrics> {
  const started = performance.now();
  let done = 0;
  const advance = (): void => onProgress?.(++done, total);
  const context = { backend, runner, parent, batch, compute: settings.compute, advance };
  const { objective, critic: criticSettings } = settings;
  const policy = objective && policyUpdates(context, { ...settings, objective }, device, others);
  const critic = criticSettings && criticUpdates(context, criticSettings, device.critic!);
  const total = (policy?.passes ?? 0) + (critic?.passes ?? 0);
  await policy?.begin();
  await critic?.begin();
  for (const update of batch.updates.keys()) {
    await policy?.update(update);
    await critic?.update(update);
  }
  return {
    ...(policy?.metrics() ?? {
      ...NO_POLICY,
      tokens: batch.updates.reduce((sum, update) => sum + lengthOf(batch, [...update]), 0),
    }),
    ...(critic && { critic: critic.metrics() }),
    updates: batch.updates.length,
    seconds: (performance.now() - started) / 1000,
  };
}
