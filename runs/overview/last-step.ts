import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import type { HeldOutFacts, StepFacts } from '../../core/training/step-facts.ts';
import { stepFactsKey, stepsPrefix } from '../../store/keys.ts';
import type { CallOptions, ObjectStore } from '../../store/objects/object-store.ts';
import { readStep } from '../../store/training/step-facts.ts';

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
  const known = spec?.stages.map(({ name }) => name).filter((name) => begun.includes(name)) ?? [];
  const stages = known.length > 0 ? known : begun.slice(-1);
  let last: StepFacts | null = null;
  // A stage that has not been measured yet goes on from what the one before it came to.
  for (const stage of stages.toReversed()) {
    const { keys } = await store.listFolder(`${above}${stage}/`, options);
    const key = keys
      .filter((one) => !one.endsWith('.answer.json'))
      .toSorted()
      .at(-1);
    const step = key === undefined ? null : await readStep(store, { key, answerKey: null }, options);
    if (step === null) continue;
    last ??= step;
    const heldOut = step.heldOut ?? (await measuredBefore(step));
    if (heldOut !== null) return { step: last, heldOut };
  }
  return last && { step: last, heldOut: null };

  async function measuredBefore({ stage, stageStep }: StepFacts): Promise<HeldOutFacts | null> {
    const every = everySteps(spec, stage);
    const at = every === null ? 0 : Math.floor(stageStep / every) * every;
    if (at === 0 || at === stageStep) return null;
    const earlier = await readStep(store, { key: stepFactsKey(run, stage, at), answerKey: null }, options);
    return earlier?.heldOut ?? null;
  }
}

function everySteps(spec: CurriculumSpec | null, name: string): number | null {
  const stage = spec?.stages.find((one) => one.name === name);
  return stage?.kind === 'rl' ? stage.graduation.everySteps : null;
}
