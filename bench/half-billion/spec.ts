import type { LearnerSpec } from '../../core/schema/learner.ts';
import type { LoraSpec } from '../../core/schema/lora.ts';
import { LORA_MODULES } from '../../core/names.ts';
import { hardestGoal } from '../../test/support/tiny-spec.ts';

/** What the model is called in the store. */
export const MODEL = 'half-billion';

export const LORA: LoraSpec = { rank: 8, alpha: 16, targetModules: [...LORA_MODULES], rsLora: false };
export const LEARNER: LearnerSpec = {
  precision: 'bfloat16',
  gradientCheckpointing: true,
  microBatchTokens: 512,
};

export const STEPS = 3;

/** A few steps of small groups: what matters is the model's size. */
export function halfBillionSpec() {
  const tasks = [{ environment: 'babble', levels: [1] }];
  return {
    seed: 41,
    model: { from: MODEL, lora: LORA },
    learner: LEARNER,
    sampling: { maxTurns: 1, maxCompletionTokens: 32 },
    reward: { components: [{ verifier: 'plain-text', role: 'outcome' }] },
    stages: [
      {
        name: 'rl',
        tasks,
        groupsPerStep: 2,
        groupsPerWorkflow: 2,
        numGenerations: 4,
        maxSteps: STEPS,
        algorithm: { minibatch: 8 },
        optimizer: { learningRate: 1e-3, warmupUpdates: 0 },
        graduation: { successAtLeast: hardestGoal(4, 1), tasks: 4, everySteps: STEPS },
      },
    ],
    evaluation: { tasks, count: 2 },
  };
}
