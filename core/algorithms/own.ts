import { z } from 'zod';
import { GradusError, messageOf } from '../errors.ts';
import { extensionOf } from '../extensions/registry.ts';
import type { OwnMethod } from '../extensions/extension.ts';
import { givenName } from '../fields.ts';
import type { SampleAdvantages } from './advantage.ts';
import type { Method, Plan } from './method.ts';
import { OBJECTIVE_KINDS } from './objective.ts';
import type { TaskGroup } from './task-group.ts';

const schema = z.strictObject({
  kind: z.literal('own').describe('A method that a module of the project brings (docs/extend.md).'),
  name: givenName.describe('As its module calls it.'),
  options: z.record(z.string(), z.json()).default({}).describe('What the method itself reads.'),
});

export const ownAlgorithmSchema = schema;
export type OwnAlgorithm = z.output<typeof schema>;

/**
 * The method of a project, as those of Gradus are. Throws GradusError('spec', 'extension') for one that is not known here,
 * and GradusError('learner', 'method') where what it says is no plan, or are no advantages.
 */
export function ownMethod(named: OwnAlgorithm): Method<typeof schema> {
  const own = extensionOf('method', named.name);
  const options = own.options.parse(named.options);
  const { ignoresScale, refuse } = own;
  return {
    ...own,
    schema,
    ...(ignoresScale && { ignoresScale: () => ignoresScale(options) }),
    ...(refuse && { refuse: (_, context) => refuse(options, context) }),
    plan: (_, sampling) =>
      planned(
        own,
        calling(own, 'plan', () => own.plan(options, sampling)),
      ),
    advantages: (groups) => {
      // Lists of its own: one that sorts them would give the advantages of a sample to another.
      const lists = groups.map((group) => ({ ...group, samples: [...group.samples] }));
      const found = calling(own, 'advantages', () => own.advantages(lists, options));
      check(own, groups, found);
      return found;
    },
  };
}

function calling<T>({ name }: OwnMethod, what: string, call: () => T): T {
  try {
    return call();
  } catch (error) {
    if (error instanceof GradusError) throw error;
    throw broken(name, `its ${what}() threw: ${messageOf(error)}`, error);
  }
}

const natural = z.int().min(0);
const finite = z.number();
const plan = z.strictObject({
  objective: z
    .looseObject({ kind: z.enum(OBJECTIVE_KINDS) })
    .refine(allFinite, 'has a number that is not finite'),
  scores: z.array(z.enum(['values', 'reference', 'policy'])),
  greedy: z.boolean(),
  critic: z
    .strictObject({ valueClip: finite.min(0), learningRate: finite.min(0), pretrainingSteps: natural })
    .nullable(),
  reference: z.boolean(),
  teachers: z.array(z.string().min(1)),
  movesAll: z.boolean(),
  minibatch: natural.min(1),
  epochs: natural.min(1),
  hindsight: z
    .strictObject({ corrections: natural, teacher: z.string().nullable(), relabel: z.boolean() })
    .nullable(),
  refills: natural,
  refillBy: z.literal('correctness').optional(),
  contrast: z.enum(['step', 'none']).optional(),
});

/** The plan, if it is one: a run would go by what is wrong in it for as long as the stage lasts. */
function planned({ name }: OwnMethod, made: Plan): Plan {
  const { error } = plan.safeParse(made);
  if (!error) return made;
  const { path, message } = error.issues[0]!;
  throw broken(name, `"${path.join('.') || 'it'}" of its plan(): ${message}; planOf makes a whole plan`);
}

/** Whether no number in it is NaN or infinite, however deep it is. */
function allFinite(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value !== 'object' || value === null || Object.values(value).every(allFinite);
}

/** What is no number would be learnt. */
function check({ name }: OwnMethod, groups: readonly TaskGroup[], all: readonly SampleAdvantages[]): void {
  if (!Array.isArray(all)) throw broken(name, 'its advantages() gave no list');
  for (const { group, sample, advantages, mask, returns } of all) {
    const place = `sample ${sample} of group ${group}`;
    const sampled = groups[group]?.samples[sample]?.mask;
    if (sampled === undefined) throw broken(name, `it was given no ${place}`);
    const tokens = sampled.length;
    for (const [what, values] of Object.entries({ advantages, mask, returns })) {
      if (values === undefined) continue;
      if (!Array.isArray(values) || values.length !== tokens)
        throw broken(name, `"${what}" of ${place} must have ${tokens} numbers, one for each token`);
      const wrong = values.findIndex((value) => !Number.isFinite(value));
      if (wrong >= 0) throw broken(name, `"${what}" of ${place} is ${values[wrong]} at token ${wrong}`);
    }
    const ones: readonly number[] = mask ?? [];
    const foreign = ones.findIndex((bit, at) => bit !== 0 && (bit !== 1 || sampled[at] !== 1));
    if (foreign >= 0)
      throw broken(
        name,
        `"mask" of ${place} is ${ones[foreign]} at token ${foreign}: it is 1 or 0, and 0 where nothing was sampled`,
      );
  }
}

const broken = (name: string, why: string, cause?: unknown): GradusError =>
  new GradusError('learner', 'method', `the method "${name}" of the project cannot be used: ${why}`, {
    cause,
  });
