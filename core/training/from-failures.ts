import type { Incident } from '../episode/incidents.ts';
import { armName } from '../names.ts';
import type { TrainingPorts } from '../ports.ts';
import { RandomStream } from '../random.ts';
import type { MadeTaskRef, TaskRef } from '../refs.ts';
import type { Span } from '../requests/span.ts';
import type { Json } from '../json/json.ts';
import type { Arm } from '../schema/tasks.ts';
import type { StageInput } from './stage.ts';
import type { FailureFacts } from './step-facts.ts';
import { countsOf, withTasks } from './task-source.ts';
import type { MadeTasks, NewTask, TaskSource } from './task-source.ts';

// Tasks from failures (WebRL, arXiv 2411.02337): before its first step a stage has the environment vary the tasks that an
// earlier stage failed. A variation counts where it is of no other split, new, and solved by the environment's own expert.
// The critic that the stage begins with says of the rest which are neither out of reach nor known. What is left is a task
// source, of which each step draws a part of its tasks.

/** The bounds of WebRL, and of its code. */
export const USUAL_VALUES = { from: 0.05, to: 0.75 } as const;

/** Tasks of a step that are variations, as far as there are any; 0.29 · 100 is a hair below 29 in doubles. */
export const variedPerStep = ({ part }: { part: number }, tasks: number): number =>
  Math.floor(part * tasks + 1e-9);

/** Tasks that a stage has made before its first step; small enough to be carried along. */
export interface VariedTasks extends MadeTasks {
  facts: FailureFacts;
}

/** What became of one variation. */
export type Variation =
  /** A task that its expert solves; `reference` is its place among such. */
  | { kind: 'task'; reference: number }
  /** Another one is the same task. */
  | { kind: 'known' }
  /** Its problem, or its prompt, is that of a task which measures. */
  | { kind: 'set-aside'; reason: string }
  /** The environment made none. */
  | { kind: 'none'; reason: string }
  /** The verifiers did not pass what its expert did, or an episode has no room for it. */
  | { kind: 'unsolved'; reason: string };

/** What the environment and the verifiers say of all variations. */
export interface CheckedVariations {
  /** Newest failure first, each with its variations in order. */
  failed: { ref: MadeTaskRef; successes: number; trials: number; variations: Variation[] }[];
  /** By `reference`. */
  tasks: { arm: Arm; of: TaskRef; proposal: Json; canonical: string }[];
  /** The checkpoint that the stage begins with has a critic. */
  critic: boolean;
}

/** Makes the tasks that a stage has of failures, before its first step. */
export async function varyFailures(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  { checkpoint }: Pick<StageInput, 'checkpoint'>,
): Promise<{ varied: VariedTasks; spans: Span[]; incidents: Incident[] }> {
  const how = stage.fromFailures!;
  const { temperature, topK, maxTurns, maxCompletionTokens } = spec.sampling;
  const place = { run: spec.run, stage: stage.name };
  const checked = await ports.varyFailures({
    ...place,
    seed: spec.seed,
    from: how.stage,
    arms: stage.arms,
    variations: how.variations,
    mostFailures: how.mostFailures,
    checkpoint,
    reward: spec.reward,
    limits: { maxTurns, maxCompletionTokens },
    temperature,
  });
  const values = checked.critic && how.values !== null ? (how.values ?? USUAL_VALUES) : null;
  const scored =
    values === null || checked.references === null
      ? null
      : await ports.score({
          run: spec.run,
          // Under no name that a stage can have.
          stage: `${stage.name}.variations`,
          step: 0,
          groups: [checked.references],
          reward: spec.reward,
          scores: ['values'],
          from: { temperature, topK },
          policy: checkpoint,
          reference: null,
          compute: spec.learner,
        });
  const { spans, ...varied } = await ports.keepVariations({
    ...place,
    checked: checked.checked,
    ...(scored && { references: checked.references!, scores: scored.scores, values: values! }),
  });
  return {
    varied,
    spans: [...checked.spans, ...(scored?.spans ?? []), ...spans],
    incidents: checked.incidents,
  };
}

/** What of the variations is kept: `values` [references] is of their first states, null where nobody filters. */
export function keptVariations(
  { failed, tasks }: CheckedVariations,
  values: readonly number[] | null,
  bounds: { from: number; to: number } = USUAL_VALUES,
): Pick<VariedTasks, 'counts'> & { source: TaskSource; facts: Omit<FailureFacts, 'source'> } {
  const within = (at: number): boolean =>
    values === null || (values[at]! >= bounds.from && values[at]! <= bounds.to);
  const added = tasks.flatMap(({ arm, of, proposal, canonical }, at): NewTask[] =>
    within(at) ? [{ arm, of, proposal, canonical, step: 0, ...(values && { value: values[at]! }) }] : [],
  );
  const all = failed.flatMap(({ variations }) => variations);
  const count = (kind: Variation['kind']): number => all.filter((one) => one.kind === kind).length;
  const source = withTasks({ arms: {} }, added, added.length + 1);
  const counts = countsOf(source);
  return {
    source,
    counts,
    facts: {
      failed: failed.length,
      variations: all.length,
      none: count('none'),
      setAside: count('set-aside'),
      known: count('known'),
      unsolved: count('unsolved'),
      tooHard: values?.filter((value) => value < bounds.from).length ?? null,
      tooEasy: values?.filter((value) => value > bounds.to).length ?? null,
      kept: added.length,
    },
  };
}

/** What of a step is drawn from variations. */
export interface VariedDraw {
  seed: number;
  stage: string;
  step: number;
  arms: readonly Arm[];
  varied: MadeTasks;
  part: number;
  /** Tasks of a whole step of the stage, and of this one where others are replayed. */
  groupsPerStep: number;
  count: number;
}

/**
 * The variations that a step draws: all are shuffled and gone through step by step, and shuffled anew when all have been
 * had. No step has one twice.
 */
export function drawVaried(draw: VariedDraw): MadeTaskRef[] {
  const { source, counts } = draw.varied;
  const all = draw.arms.flatMap((arm) =>
    Array.from({ length: counts[armName(arm)] ?? 0 }, (_, index) => ({ ...arm, index })),
  );
  const perStep = Math.min(variedPerStep(draw, draw.groupsPerStep), all.length);
  if (source === null || perStep === 0) return [];
  const stepsPerPass = Math.floor(all.length / perStep);
  const pass = Math.floor((draw.step - 1) / stepsPerPass);
  const first = ((draw.step - 1) % stepsPerPass) * perStep;
  const order = new RandomStream(draw.seed, 'variations', draw.stage, pass).shuffle(all);
  const count = Math.min(perStep, variedPerStep(draw, draw.count));
  return order.slice(first, first + count).map((place) => ({ ...place, split: 'train', source }));
}
