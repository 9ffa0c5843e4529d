import { z } from 'zod';
import { checkpointName, givenName, positive } from '../fields.ts';
import { overSamples } from './advantage.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method, MethodContext } from './method.ts';
import type { Divergence } from './objective.ts';
import { ofSamples, passes, planOf, tokenMean } from './surrogate.ts';

/** The gradient is as small as β near 0, and as 1 − β near 1: nearer than this little of it is left beside the ε of Adam. */
const LEAST_JSD_BETA = 1e-3;
const NO_MIXTURE = `must be from ${LEAST_JSD_BETA} to ${1 - LEAST_JSD_BETA}: choose forward-kl below and reverse-kl above`;

/**
 * OPD, on-policy distillation (Agarwal et al. 2024, "GKD", arXiv 2306.13649, eq. 1 and algorithm 1 with λ = 1; Lu and
 * Thinking Machines Lab 2025): the student q samples, and learns at each of its tokens from the distribution of a teacher p
 * over the whole vocabulary.
 *
 *   loss: D(q, p), mean over sampled tokens, where D is KL(q ‖ p), KL(p ‖ q), or β KL(p ‖ m) + (1 − β) KL(q ‖ m) with
 *   m = β p + (1 − β) q. Of several teachers p = Σ w p_teacher / Σ w; or D is Σ w KL(q ‖ p_teacher) / Σ w; or each task has
 *   the teacher of its environment.
 *
 * Rewards are no part of the loss; they say what an episode was worth, and infrastructure outcomes teach nothing.
 */
const schema = z.strictObject({
  kind: z
    .literal('opd')
    .describe('On-policy distillation: teachers grade each token of the student (Agarwal et al. 2024).'),
  teachers: z
    .array(
      z.strictObject({
        from: checkpointName.describe(
          "The last checkpoint of that run, or RUN@STEP; of the same tokenizer and vocabulary as the stage's model.",
        ),
        weight: positive(1e6, 'weigh the others less')
          .optional()
          .describe('Weight of its distribution among those of all teachers. Default 1.'),
        environments: z
          .array(givenName)
          .nonempty()
          .optional()
          .describe('It teaches the tasks of these alone; then every teacher names its own.'),
      }),
    )
    .nonempty()
    .max(16, 'has at most 16 teachers: each of them is in memory with the student')
    .describe('Checkpoints whose distributions the student follows.'),
  divergence: z
    .enum(['reverse-kl', 'reverse-kl-each', 'forward-kl', 'jsd'])
    .default('reverse-kl')
    .describe(
      'reverse-kl: KL(student ‖ teachers), which seeks a mode of their mixture. reverse-kl-each: the weighted sum of KL(student ‖ teacher), which seeks what all teachers hold for likely. forward-kl: KL(teachers ‖ student). jsd: generalized Jensen–Shannon.',
    ),
  beta: z
    .number()
    .min(LEAST_JSD_BETA, NO_MIXTURE)
    .max(1 - LEAST_JSD_BETA, NO_MIXTURE)
    .optional()
    .describe(
      "Of jsd: the teacher's part of the mixture; near 0 as forward-kl, near 1 as reverse-kl. Default 0.5.",
    ),
  ...tokenMean,
  ...passes,
});

type Spec = z.output<typeof schema>;

export const opd: Method<typeof schema> = {
  schema,
  perGroup: false,
  readsTurns: false,
  branches: true,
  ignoresScale: () => true,
  offPolicy: true,
  plan: (spec, sampling) => {
    const { temperature, maxCompletionTokens } = ofSamples(sampling);
    return planOf(
      spec,
      {
        kind: 'distill',
        temperature,
        maxCompletionTokens,
        aggregation: spec.aggregation,
        divergence: divergenceOf(spec),
        teacherWeights: weightsOf(spec),
      },
      { movesAll: true, teachers: spec.teachers.map(({ from }) => from), contrast: 'none' },
    );
  },
  advantages: (groups, { teachers }) =>
    groups.flatMap(({ samples, ref }, group) => {
      const teacher = teachers.findIndex(({ environments }) => environments?.includes(ref.environment));
      return overSamples(
        group,
        samples,
        samples.map(({ reward }) => (reward === null ? null : 1)),
      ).map((one): SampleAdvantages => ({ ...one, ...(teacher >= 0 && { teacher }) }));
    }),
  refuse: (spec, context) => [
    ...refuseTeachers(spec, context),
    ...(spec.divergence === 'reverse-kl-each' && !areMerged(spec)
      ? [{ field: 'divergence', message: 'is reverse-kl where each task has one teacher: write that' }]
      : []),
    ...(spec.beta !== undefined && spec.divergence !== 'jsd'
      ? [{ field: 'beta', message: `does nothing for ${spec.divergence}: leave it out, or choose jsd` }]
      : []),
  ],
};

const divergenceOf = ({ divergence, beta = 0.5 }: Spec): Divergence =>
  divergence === 'jsd' ? { kind: divergence, beta } : { kind: divergence };

/** Whether a token may follow several teachers. */
const areMerged = ({ teachers }: Spec): boolean =>
  teachers.length > 1 && teachers.every(({ environments }) => environments === undefined);

function weightsOf({ teachers }: Spec): number[] {
  const total = teachers.reduce((sum, { weight = 1 }) => sum + weight, 0);
  return teachers.map(({ weight = 1 }) => weight / total);
}

/** Teachers are merged, or each has environments of its own, all that the stage has. */
function refuseTeachers({ teachers }: Spec, { environments: used, beginsWith }: MethodContext) {
  const refused = (message: string) => [{ field: 'teachers', message }];
  const names = teachers.map(({ from }) => from);
  const again = names.find((name, i) => names.indexOf(name) !== i);
  if (again !== undefined)
    return refused(
      `${again} is named twice, and would be in memory twice: name it once, with its weight or with all of its environments`,
    );
  if (names.every((name) => name === beginsWith))
    return refused(
      `${beginsWith} is what the stage begins with (model.from), and a student learns nothing from a teacher that is the same: name another checkpoint`,
    );
  const named = teachers.flatMap(({ environments }) => environments ?? []);
  if (named.length === 0) return [];
  if (teachers.some(({ environments }) => !environments))
    return refused('either every teacher names its environments, or none does and all are merged by weight');
  if (teachers.some(({ weight }) => weight !== undefined))
    return refused('a task of an environment has one teacher, for which a weight does nothing: leave it out');
  const twice = named.find((name, i) => named.indexOf(name) !== i);
  if (twice !== undefined) return refused(`${twice} has two teachers: name it once`);
  const unused = named.find((name) => !used.includes(name));
  if (unused !== undefined) return refused(`the stage draws no tasks of ${unused}: leave it out`);
  const without = used.find((name) => !named.includes(name));
  return without === undefined ? [] : refused(`no teacher names ${without}, which the stage draws tasks of`);
}
