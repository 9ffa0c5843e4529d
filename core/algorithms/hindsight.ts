import { z } from 'zod';
import { checkpointName, count } from '../fields.ts';
import { overSamples } from './advantage.ts';
import type { TaskGroup } from './task-group.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method } from './method.ts';
import { passes, planOf } from './surrogate.ts';

/**
 * Hindsight: what an episode that failed can still teach.
 *
 * - *Supervision*: a task that fewer than half of the samples solved is asked again, of the policy itself or of a teacher,
 *   with a hint behind the prompt that is made of what went wrong. A correction that the verifiers confirm is imitated
 *   behind the prompt *without* the hint, so that the policy learns to do at once what it could do when told (context
 *   distillation: Snell et al. 2022, arXiv 2209.15189).
 * - *Relabelling*, where the environment declares it: an episode that failed its task and solved another one is imitated as
 *   that one's success (Andrychowicz et al. 2017, "HER", arXiv 1707.01495; for language Zhang et al. 2023, "HIR",
 *   arXiv 2302.05206).
 *
 *   loss: negative log-likelihood of the sampled tokens, mean over tokens.
 */
const schema = z.strictObject({
  kind: z
    .literal('hindsight')
    .describe(
      'Imitates samples with a hint as if they had none, and samples relabelled with the task that they solved.',
    ),
  corrections: count(4096, 'ask a better teacher instead', 0)
    .default(4)
    .describe('Samples with a hint, of each task that fewer than half of the samples solved; 0: none.'),
  teacher: checkpointName
    .optional()
    .describe(
      'Who is given the hint: the last checkpoint of that run, or RUN@STEP. Default: the policy itself.',
    ),
  relabel: z
    .boolean()
    .default(false)
    .describe(
      'Train on failed episodes as successes of other tasks that they solved, as the environment relabels them.',
    ),
  ownSuccesses: z
    .boolean()
    .default(true)
    .describe('Samples that succeed without a hint are imitated too, as by rft.'),
  mostPerTask: count(4096, 'a group has no more')
    .default(4)
    .describe('Successes of each sort that are imitated of one task, the first ones.'),
  ...passes,
});

export const hindsight: Method<typeof schema> = {
  schema,
  readsTurns: false,
  ignoresScale: () => true,
  whole: true,
  perGroup: false,
  offPolicy: false,
  plan: (spec) =>
    planOf(
      spec,
      { kind: 'supervised' },
      {
        hindsight: {
          corrections: spec.corrections,
          teacher: spec.teacher ?? null,
          relabel: spec.relabel,
        },
        contrast: 'none',
      },
    ),
  advantages: (groups, { ownSuccesses, mostPerTask }) =>
    groups.flatMap((group, g) =>
      group.hindsight || ownSuccesses ? successes(group, g).slice(0, mostPerTask) : [],
    ),
  refuse: ({ corrections, teacher, relabel }, { relabels }) => {
    const refused = (field: string, message: string) => [{ field, message }];
    if (corrections === 0 && teacher !== undefined)
      return refused('teacher', 'has no effect where corrections = 0: leave it out');
    if (corrections === 0 && !relabel)
      return refused('corrections', 'of 0 without relabel is no hindsight: rft imitates successes alone');
    if (relabel && !relabels)
      return refused('relabel', 'no environment of the stage has a relabel(): leave it out');
    return [];
  },
};

const successes = ({ samples }: TaskGroup, group: number): SampleAdvantages[] =>
  overSamples(
    group,
    samples,
    samples.map(({ reward, success }) => (reward !== null && success ? 1 : null)),
  );
