import { z } from 'zod';
import { count, fraction, name } from '../../fields.ts';
import type { Refuse, SpecEnvironments } from '../check.ts';
import type { EarlierStage } from '../collect.ts';
import { didYouMean } from '../../did-you-mean.ts';
import { armName } from '../../names.ts';
import { USUAL_VALUES, variedPerStep } from '../../training/from-failures.ts';
import type { Path } from '../strict.ts';
import { armsOf } from '../tasks.ts';
import type { WrittenTasks } from '../tasks.ts';
import type { EarlierPolicy } from './earlier-policy.ts';

/** What a stage makes at most: each has an episode of its reference solution, and all of them are in one object. */
const MOST_VARIATIONS = 4096;

const value = z.number().min(-1000).max(1000);

/** Tasks made of what an earlier stage failed: the curriculum of WebRL (Qi et al. 2024, arXiv 2411.02337, section 2.2). */
export const fromFailuresSchema = z
  .strictObject({
    stage: name.describe('The earlier stage of this run whose failed tasks are varied.'),
    part: fraction
      .default(0.5)
      .describe(
        'Part of the tasks of a step that are such variations, rounded down, as far as there are any.',
      ),
    variations: count(64, 'they would resemble each other')
      .default(4)
      .describe('Other tasks that the environment makes of each failed one.'),
    mostFailures: count(1024, 'a worker looks at all of them')
      .default(128)
      .describe('Failed tasks that are varied, at most: those of the latest steps.'),
    values: z
      .strictObject({
        from: value
          .default(USUAL_VALUES.from)
          .describe('Value below which a variation is left out: the policy would not solve it.'),
        to: value
          .default(USUAL_VALUES.to)
          .describe('Value above which it is left out: the policy can solve it already.'),
      })
      .nullable()
      .optional()
      .describe(
        'Bounds of the value that the critic of the stage gone on with gives the first state of a variation. null: no filter. Default: from 0.05 to 0.75 where that stage has a critic, else no filter.',
      ),
  })
  .optional()
  .describe(
    'Some tasks are made of those that an earlier stage failed: varied by the environment, shown to be solvable, and filtered by a critic; see docs/failures.md.',
  );

export type FromFailuresSpec = NonNullable<z.output<typeof fromFailuresSchema>>;

/** What tasks from failures do not go with. `at` is the path of the stage, after the `earlier` ones. */
export function checkFromFailures(
  stage: {
    tasks: WrittenTasks;
    groupsPerStep: number;
    collect: { kind: string };
    selfPlay?: object | undefined;
    from?: EarlierPolicy | undefined;
    fromFailures?: FromFailuresSpec | undefined;
  },
  earlier: readonly (EarlierStage & { algorithm?: { kind?: string; critic?: object } | undefined })[],
  at: Path,
  environments: SpecEnvironments,
  refuse: Refuse,
): void {
  const { fromFailures, groupsPerStep, collect, tasks, from } = stage;
  if (!fromFailures) return;
  const path = [...at, 'fromFailures'];
  const sources = earlier.filter(({ kind }) => kind === 'rl');
  const source = sources.find((one) => one.name === fromFailures.stage);
  const names = sources.map((one) => one.name);
  if (!source)
    refuse(
      [...path, 'stage'],
      `"${fromFailures.stage}" is no earlier stage that collects rollouts${didYouMean(fromFailures.stage, names)}`,
    );
  else {
    const there = new Set(armsOf(source.tasks).map(armName));
    if (!armsOf(tasks).some((arm) => there.has(armName(arm))))
      refuse(
        [...path, 'stage'],
        `"${source.name}" rolls out none of the tasks of this stage, but ${[...there].join(', ')}: name tasks that it has`,
      );
  }
  tasks.forEach(({ environment }, i) => {
    const known = environments.get(environment);
    if (!known || (known.varies !== false && known.demonstrates !== false)) return;
    const lacks = known.varies !== false ? 'demonstrate(), which shows that a task can be solved' : 'vary()';
    refuse(
      [...at, 'tasks', i, 'environment'],
      `no tasks are made of failed ones of "${environment}": it has no ${lacks}`,
    );
  });
  const { variations, mostFailures, values } = fromFailures;
  if (variations * mostFailures > MOST_VARIATIONS)
    refuse(
      [...path, 'mostFailures'],
      `makes up to ${variations * mostFailures} variations, at most ${MOST_VARIATIONS}: lower it, or variations`,
    );
  if (variedPerStep(fromFailures, groupsPerStep) === 0)
    refuse([...path, 'part'], `is none of the ${groupsPerStep} tasks of a step: raise it`);
  if (values && values.from >= values.to)
    refuse([...path, 'values', 'from'], `leaves nothing: it must be below to = ${values.to}`);
  const before = from ? earlier.find(({ name }) => name === from.stage) : earlier.at(-1);
  if (values && before?.algorithm?.critic === undefined)
    refuse(
      [...path, 'values'],
      'are of the critic of the stage that this one goes on with, which has none: give that stage a method with a critic, such as ppo, or set it to null',
    );
  if (stage.selfPlay) refuse(path, 'does not go with selfPlay, whose tasks the policy makes: leave one out');
  if (collect.kind === 'stored')
    refuse(path, 'draws tasks to sample, and stored episodes are of others: leave out collect');
}
