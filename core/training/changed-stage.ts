import { changedBudget } from '../run-change.ts';
import type { Changed } from '../run-change.ts';
import type { StageInput } from './stage.ts';

/** A stage as it goes on from its next step, with what a person has changed of it since it was written. */
export function changedStage(input: StageInput, { newest, budgets, maxSteps }: Changed): StageInput {
  if (newest === 0) return input;
  const { stage, spec } = input;
  const tiers = spec.verification?.rungs.filter(({ verifier }) => budgets[verifier] !== undefined) ?? [];
  const changed = tiers.map(({ verifier, budget }) => [
    verifier,
    changedBudget(stage.budgets?.[verifier] ?? budget, budgets[verifier]!),
  ]);
  return {
    ...input,
    change: newest,
    stage: {
      ...stage,
      maxSteps: maxSteps[stage.name] ?? stage.maxSteps,
      ...(changed.length > 0 && { budgets: { ...stage.budgets, ...Object.fromEntries(changed) } }),
    },
  };
}
