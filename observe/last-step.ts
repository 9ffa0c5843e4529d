import type { CurriculumSpec } from '../core/spec.ts';
import type { HeldOutFacts, StepFacts } from '../core/training/step-facts.ts';
import { stepFactsKey, stepsPrefix } from '../store/keys.ts';
import type { CallOptions, ObjectStore } from '../store/object-store.ts';
import { readStep } from '../store/step-facts.ts';

export interface LastStep {
  step: StepFacts;
  /** Of the newest step that was measured, as far as the spec says which that is. */
  heldOut: HeldOutFacts | null;
}

/**
 * The last step of a run that has left facts, without reading all of them; null where there is none. Throws what the
 * store throws.
 */
export async function lastStep(
  store: ObjectStore,
  run: string,
  spec: CurriculumSpec | null,
  options: CallOptions = {},
): Promise<LastStep | null> {
  const above = stepsPrefix(run);
  const { folders } = await store.listFolder(above, options);
  const begun = folders.map((folder) => folder.slice(above.length, -1));
  const stages = spec?.stages.map(({ name }) => name) ?? [];
  const stage = stages.findLast((name) => begun.includes(name)) ?? begun.at(-1);
  if (stage === undefined) return null;
  const { keys } = await store.listFolder(`${above}${stage}/`, options);
  const last = keys
    .filter((key) => !key.endsWith('.answer.json'))
    .toSorted()
    .at(-1);
  const step = last === undefined ? null : await readStep(store, { key: last, answerKey: null }, options);
  if (step === null) return null;
  if (step.heldOut !== null) return { step, heldOut: step.heldOut };
  const every = everySteps(spec, stage);
  const measuredAt = every === null ? 0 : Math.floor(step.stageStep / every) * every;
  const earlier =
    measuredAt === 0
      ? null
      : await readStep(store, { key: stepFactsKey(run, stage, measuredAt), answerKey: null }, options);
  return { step, heldOut: earlier?.heldOut ?? null };
}

function everySteps(spec: CurriculumSpec | null, name: string): number | null {
  const stage = spec?.stages.find((one) => one.name === name);
  return stage?.kind === 'rl' ? stage.graduation.everySteps : null;
}
