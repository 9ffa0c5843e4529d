import { inParallel } from '../../store/in-parallel.ts';
import { runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { putStepFacts } from '../../store/training/step-facts.ts';
import { putTrajectories } from '../../store/rollout/trajectories.ts';
import {
  MADE_EVALUATION,
  MADE_STAGE,
  madeEvaluation,
  madeGroup,
  madeSpec,
  madeStep,
  MEASURED_EVERY,
} from './made-run.ts';
import type { MadeSize } from './made-run.ts';

/** Steps that are made at a time. */
const STEPS_AT_ONCE = 4;

/** Puts a made run into a store, as a run would: claim, trajectories, and the facts of every step, which come last. */
export async function keepMadeRun(
  store: ObjectStore,
  run: string,
  size: MadeSize,
  {
    from = 1,
    execution = 'made',
    said = () => {},
  }: { from?: number; execution?: string; said?: (steps: number) => void } = {},
): Promise<void> {
  await store.putIfAbsent(runKey(run), runClaims, { execution, spec: madeSpec(run) });
  const steps = Array.from({ length: size.steps - from + 1 }, (_, i) => from + i);
  await inParallel(
    steps,
    async (step) => {
      const numbers = Array.from({ length: size.groups }, (_, group) => group);
      const groups = numbers.map((group) => madeGroup(size, step, group));
      const measured = step % MEASURED_EVERY === 0 ? madeEvaluation(size, step) : null;
      const place = { run, stage: MADE_STAGE, step };
      await inParallel(groups, (group) => putTrajectories(store, place, group), 8);
      if (measured) await putTrajectories(store, { ...place, stage: MADE_EVALUATION }, measured);
      await putStepFacts(store, run, await madeStep(size, step, groups, measured));
      said(step);
    },
    STEPS_AT_ONCE,
  );
}
