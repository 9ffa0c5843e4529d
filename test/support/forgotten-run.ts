import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { builtInEnvironments } from '../../environments/families/index.ts';
import { parseSpec } from '../../spec/parse-spec.ts';
import { runKey } from '../../store/keys.ts';
import type { ObjectStore } from '../../store/objects/object-store.ts';
import { runClaims } from '../../store/run/run-claim.ts';
import { putStepFacts } from '../../store/training/step-facts.ts';
import { someHeldOut, someStep } from './some-step.ts';
import { tinySpec } from './tiny-spec.ts';

const environments = new Map(builtInEnvironments.map((environment) => [environment.name, environment]));

export type Forgotten = [run: string, steps: number, more?: Partial<CurriculumSpec>, execution?: string];

/** A run that only the store knows, after `steps` steps; `execution` is whose the name is. */
export async function keepForgottenRun(
  store: ObjectStore,
  ...[run, steps, more = {}, execution = run]: Forgotten
): Promise<void> {
  const { model: _, ...spec } = parseSpec(tinySpec(), run, environments);
  const claim = { execution, spec: { ...spec, model: { kind: 'scratch' }, ...more } as never };
  await store.putIfAbsent(runKey(run), runClaims, claim);
  for (let step = 1; step <= steps; step++) {
    const heldOut = step % 2 === 0 ? someHeldOut(step, 32) : null;
    await putStepFacts(store, run, someStep({ stageStep: step, step: step + 2, heldOut }));
  }
}
