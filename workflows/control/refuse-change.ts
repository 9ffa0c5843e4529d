import { amount, between, natural, nullable, optional } from '../../core/json/shape.ts';
import type { Shape } from '../../core/json/shape.ts';
import type { BudgetChange, Changed, RunChange } from '../../core/run-change.ts';
import type { CurriculumSpec } from '../../core/schema/curriculum-spec.ts';
import { looksAfter, partAfter } from '../../core/training/shared-error.ts';
import { mostThatCanBeShown } from '../../core/training/stage-policy.ts';
import { nearest } from './nearest.ts';

const FIELDS = ['budgets', 'maxSteps', 'reason'];
const LONGEST_REASON = 1000;

/** Bounds as the spec has them (core/fields.ts). */
const LIMITS: { [Limit in keyof Required<BudgetChange>]: Shape<number> } = {
  count: (value, at) => natural(value, at) ?? between(0, 1e9)(value, at),
  seconds: (value, at) => amount(value, at) ?? between(0, 1e9)(value, at),
  usd: (value, at) => amount(value, at) ?? between(0, 1e9)(value, at),
  perStep: (value, at) => natural(value, at) ?? between(1, 1e6)(value, at),
};
const steps: Shape<number> = (value, at) => natural(value, at) ?? between(1, 1e6)(value, at);

/** How a run stands that is to be changed. */
export interface RunToChange {
  /** Stages that have ended. */
  over: ReadonlySet<string>;
  /** What holds already. */
  changed: Changed;
  /** The latest evaluation that a stage's rules have judged, and what is left of their error. */
  looked: { stage: string; step: number; errorLeft: number; errorPart: number } | null;
}

/** Why something is no change of a run that goes on, or null. */
export function refuseChange(
  wanted: unknown,
  { stages, verification }: Pick<CurriculumSpec, 'stages' | 'verification'>,
  { over, changed, looked }: RunToChange,
): string | null {
  const malformed = refuseForm(wanted);
  if (malformed !== null) return malformed;
  const { budgets = {}, maxSteps = {} } = wanted as Record<'budgets' | 'maxSteps', object | undefined>;
  const left = stages.filter(({ name }) => !over.has(name));
  for (const verifier of Object.keys(budgets)) {
    if (verification === undefined)
      return 'the run has no ladder, and so no budgets: its spec has no "verification"';
    const [lowest, ...tiers] = verification.rungs.map((tier) => tier.verifier);
    if (verifier === lowest)
      return `"${verifier}" is the lowest tier, which judges every candidate: a budget for it limits nothing`;
    if (!tiers.includes(verifier)) return `there is no tier ${nearest(verifier, tiers)}`;
    if (!left.some(({ kind }) => kind === 'rl')) return 'no stage is left that could spend anything';
  }
  for (const [name, most] of Object.entries<number>(maxSteps as Record<string, number>)) {
    const stage = stages.find((one) => one.name === name);
    if (!stage)
      return `there is no stage ${nearest(
        name,
        stages.map((one) => one.name),
      )}`;
    if (stage.kind !== 'rl')
      return `"${name}" is a ${stage.kind} stage: when its rounds are used up it asks, and "more-rounds" gives it more`;
    if (over.has(name)) return `"${name}" is over`;
    if (most <= (changed.maxSteps[name] ?? stage.maxSteps)) continue;
    const before = looked?.stage === name ? looked : null;
    const left = before?.errorLeft ?? 1;
    const looks = looksAfter({ ...stage, maxSteps: most }, before?.step ?? 0);
    const part = before ? partAfter({ left, part: before.errorPart }, looks) : 1 / looks;
    const { successAtLeast, tasks } = stage.graduation;
    const shown = mostThatCanBeShown(stage, part);
    if (shown >= successAtLeast) continue;
    const cannot = `"${name}" could not graduate any more`;
    if (left === 0)
      return `${cannot}: its planned evaluations have been made, and its error is spent on them. Write another stage`;
    const spent = left === 1 ? '' : ` with ${(100 * left).toFixed(1)} % of its error left`;
    return `${cannot}: in ${looks} evaluations${spent} ${tasks} tasks show at most ${shown.toFixed(4)}, and its goal is ${successAtLeast}. Choose fewer steps`;
  }
  return null;
}

/** Whether a change is one, where `changed` holds already. */
export function isNews(
  { budgets = {}, maxSteps = {} }: RunChange,
  { stages, verification }: Pick<CurriculumSpec, 'stages' | 'verification'>,
  changed: Changed,
): boolean {
  const stepsOf = (name: string): number | undefined => {
    const stage = stages.find((one) => one.name === name);
    return changed.maxSteps[name] ?? (stage?.kind === 'rl' ? stage.maxSteps : undefined);
  };
  const limitsOf = (verifier: string) => ({
    ...verification?.rungs.find((tier) => tier.verifier === verifier)?.budget,
    ...changed.budgets[verifier],
  });
  return (
    Object.entries(maxSteps).some(([name, most]) => most !== stepsOf(name)) ||
    Object.entries(budgets).some(([verifier, limits]) => {
      const now = limitsOf(verifier);
      return (Object.keys(limits) as (keyof BudgetChange)[]).some(
        (limit) => (limits[limit] ?? null) !== (now[limit] ?? null),
      );
    })
  );
}

/** The same, of what can be said without knowing the run. */
export function refuseForm(wanted: unknown): string | null {
  if (!isObject(wanted))
    return 'a change is an object, like {"budgets": {"VERIFIER": {"count": 100}}, "maxSteps": {"STAGE": 300}}';
  const field = Object.keys(wanted).find((one) => !FIELDS.includes(one));
  if (field !== undefined) return `a change has no field ${nearest(field, FIELDS)}`;
  const { budgets = {}, maxSteps = {}, reason = '' } = wanted;
  if (!isObject(budgets)) return 'budgets: must be an object of budgets by verifier';
  if (!isObject(maxSteps)) return 'maxSteps: must be an object of numbers by stage';
  if (typeof reason !== 'string' || reason.length > LONGEST_REASON)
    return `reason: must be a text of at most ${LONGEST_REASON} characters`;
  if (Object.keys(budgets).length + Object.keys(maxSteps).length === 0)
    return 'this changes nothing: give budgets or maxSteps';
  for (const [verifier, limits] of Object.entries(budgets)) {
    const problem = refuseLimits(limits, `budgets.${verifier}`);
    if (problem !== null) return problem;
  }
  for (const [stage, most] of Object.entries(maxSteps)) {
    const problem = steps(most, `maxSteps.${stage}`);
    if (problem !== null) return problem;
  }
  return null;
}

function refuseLimits(limits: unknown, at: string): string | null {
  if (!isObject(limits) || Object.keys(limits).length === 0)
    return `${at}: must name limits, like {"count": 100}; null takes one away`;
  const unknown = Object.keys(limits).find((one) => !Object.hasOwn(LIMITS, one));
  if (unknown !== undefined) return `${at} has no limit ${nearest(unknown, Object.keys(LIMITS))}`;
  for (const [limit, shape] of Object.entries(LIMITS)) {
    const problem = optional(nullable(shape))(limits[limit], `${at}.${limit}`);
    if (problem !== null) return problem;
  }
  return null;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
