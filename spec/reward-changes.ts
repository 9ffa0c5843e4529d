import { ruleName } from '../core/reward/rules.ts';
import { GradusError } from '../core/errors.ts';
import type { CurriculumSpec } from '../core/schema/curriculum-spec.ts';
import type { RewardSpec, RewardComponentSpec } from '../core/schema/reward.ts';
import type { RewardRule } from '../core/schema/reward-rules.ts';
import { checkReward, rewardSchema } from '../core/schema/reward.ts';
import { didYouMean } from '../core/did-you-mean.ts';
import { parseStrictly } from '../core/schema/strict.ts';

// What of a reward can be other than a spec has it without asking a verifier again.

/** A part of a reward that may be changed, as a form shows it. */
export interface RewardField {
  /** `NAME.weight` of a component, an ensemble or a rule; `truncated` and `normalization` of the whole. */
  name: string;
  value: string;
  /** What it may be, in place of `number`. */
  choices: readonly string[] | null;
}

export interface RewardChange {
  field: string;
  from: string;
  to: string;
}

/** The word for no gate, and for no normalization. */
const NONE = 'none';

/** Constants of rules, by kind: of those that read one sample alone. */
const CONSTANTS: Record<RewardRule['kind'], Record<string, readonly string[] | null>> = {
  'linear-length': { target: null, limit: null },
  'sigmoid-length': { target: null, scale: null },
  overlong: { limit: null, buffer: null },
  process: { by: ['minimum', 'product', 'mean', 'turns'] },
  confidence: {},
  agreement: {},
  diversity: {},
  own: {},
};

/** Everything that may be changed of a reward, as it is. */
export function rewardFields(reward: RewardSpec): RewardField[] {
  const { components, ensembles = [], rules = [], normalization, truncated } = reward;
  const number = (name: string, value: number): RewardField => ({
    name,
    value: String(value),
    choices: null,
  });
  const choice = (name: string, value: string, choices: readonly string[]): RewardField => ({
    name,
    value,
    choices,
  });
  const gates = (own: string) => [
    NONE,
    ...components.flatMap(({ verifier }) => (verifier === own ? [] : [verifier])),
  ];
  return [
    ...components.flatMap(({ verifier, role, weight, gatedBy }) => [
      number(`${verifier}.weight`, weight),
      ...(role === 'outcome'
        ? []
        : [
            choice(`${verifier}.role`, role, ['bonus', 'penalty']),
            choice(`${verifier}.gatedBy`, gatedBy ?? NONE, gates(verifier)),
          ]),
    ]),
    ...ensembles.flatMap(({ name, by, deviations }) => [
      choice(`${name}.by`, by, ['minimum', 'mean-deviation']),
      number(`${name}.deviations`, deviations),
    ]),
    ...rules.flatMap((rule) => {
      const name = ruleName(rule);
      const values = rule as unknown as Record<string, number | string>;
      return [
        number(`${name}.weight`, rule.weight),
        choice(`${name}.gatedBy`, rule.gatedBy ?? NONE, gates('')),
        ...Object.entries(CONSTANTS[rule.kind]).map(([constant, choices]) => ({
          name: `${name}.${constant}`,
          value: String(values[constant]),
          choices,
        })),
      ];
    }),
    choice('truncated', truncated, ['train', 'mask']),
    choice('normalization', normalization ?? NONE, [NONE, 'environment']),
  ];
}

export interface ChangedReward {
  reward: RewardSpec;
  /** What is another one now; what was set to what it is, is none. */
  changes: RewardChange[];
  /** The spec would have to say `shapingMayDominate`: a failure could be worth more than a success. */
  dominates: boolean;
}

/**
 * The reward of a spec with some fields otherwise, by name. A rule of weight 0 is left out. Throws
 * GradusError('spec', 'invalid') for a field that there is not, with the nearest one, and for a reward that no spec
 * may have.
 */
export function changedReward(
  { reward, verification, sampling, stages }: CurriculumSpec,
  set: ReadonlyMap<string, string>,
): ChangedReward {
  const fields = rewardFields(reward);
  const changes: RewardChange[] = [];
  const problems: string[] = [];
  for (const [name, to] of set) {
    const field = fields.find((one) => one.name === name);
    if (!field) {
      const valid = fields.map((one) => one.name);
      problems.push(`${name} cannot be changed without asking a verifier again${didYouMean(name, valid)}`);
    } else if (field.choices !== null && !field.choices.includes(to)) {
      problems.push(`${name} must be one of ${field.choices.join(', ')}, not "${to}"`);
    } else if (field.choices === null && !isNumber(to)) {
      problems.push(`${name} must be a number, not "${to}"`);
    } else if (field.choices === null ? Number(to) !== Number(field.value) : to !== field.value) {
      changes.push({ field: name, from: field.value, to });
    }
  }
  if (problems.length > 0) throw refusal(problems);
  const values = new Map(changes.map(({ field, to }) => [field, to]));
  const changed = apply(reward, values);
  if (changes.length === 0) return { reward, changes, dominates: reward.shapingMayDominate === true };

  const { ladder: _, shapingMayDominate: __, ...written } = changed;
  const refusalsOf = (mayDominate: boolean): string[] => {
    const found: string[] = [];
    const asWritten = parseStrictly(
      rewardSchema,
      { ...written, ...(mayDominate && { shapingMayDominate: true }) },
      WHAT,
    );
    const online = stages.filter((stage) => stage.kind === 'rl');
    const context = { hasLadder: verification !== undefined, sampling, stages: online };
    // Which verifiers environments have was looked at when the run began; no other one can be named here.
    checkReward(
      { ...asWritten, ensembles: asWritten.ensembles?.map(withoutIdle) },
      context,
      [],
      (path, message) => {
        found.push(`${path.join('.')}: ${message}`);
      },
    );
    return found;
  };
  const dominates = refusalsOf(false).length > 0 && refusalsOf(true).length === 0;
  const refused = refusalsOf(dominates);
  if (refused.length > 0) throw refusal(refused);
  return { reward: changed, changes, dominates };
}

const WHAT = 'the changed reward';

const refusal = (problems: readonly string[]): GradusError =>
  new GradusError(
    'spec',
    'invalid',
    `no spec may have this reward:\n${problems.map((one) => `  ${one}`).join('\n')}`,
  );

/** `--set NAME=VALUE`, as it was written. Throws GradusError('spec', 'invalid') for what has no `=`. */
export function readSetting(text: string): [name: string, value: string] {
  const at = text.lastIndexOf('=');
  if (at > 0) return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
  throw new GradusError(
    'spec',
    'invalid',
    `"${text}" sets nothing: write NAME.weight=NUMBER, truncated=mask, or another field of the reward`,
  );
}

function apply(reward: RewardSpec, values: ReadonlyMap<string, string>): RewardSpec {
  const number = (field: string, is: number): number => Number(values.get(field) ?? is);
  const gate = (field: string, is: string | null): string | null => {
    const value = values.get(field);
    return value === undefined ? is : value === NONE ? null : value;
  };
  const components = reward.components.map((one) => ({
    ...one,
    weight: number(`${one.verifier}.weight`, one.weight),
    role: (values.get(`${one.verifier}.role`) ?? one.role) as RewardComponentSpec['role'],
    gatedBy: gate(`${one.verifier}.gatedBy`, one.gatedBy),
  })) as unknown as RewardSpec['components'];
  const rules = (reward.rules ?? []).flatMap((rule): RewardRule[] => {
    const name = ruleName(rule);
    const constants = Object.entries(CONSTANTS[rule.kind]).flatMap(([constant, choices]) => {
      const value = values.get(`${name}.${constant}`);
      return value === undefined ? [] : [[constant, choices === null ? Number(value) : value]];
    });
    const weight = number(`${name}.weight`, rule.weight);
    const gatedBy = gate(`${name}.gatedBy`, rule.gatedBy);
    return weight === 0 ? [] : [{ ...rule, weight, gatedBy, ...(Object.fromEntries(constants) as object) }];
  });
  const { rules: _, ensembles, normalization: __, ...rest } = reward;
  const normalization = values.get('normalization') ?? reward.normalization ?? NONE;
  return {
    ...rest,
    components,
    ...(ensembles && {
      ensembles: ensembles.map((one) => ({
        ...one,
        by: (values.get(`${one.name}.by`) ?? one.by) as typeof one.by,
        deviations: number(`${one.name}.deviations`, one.deviations),
      })),
    }),
    ...(rules.length > 0 && { rules }),
    ...(normalization === 'environment' && { normalization }),
    truncated: (values.get('truncated') ?? reward.truncated) as RewardSpec['truncated'],
  };
}

const isNumber = (text: string): boolean => text !== '' && Number.isFinite(Number(text));

/** The default, which a person need not have written. */
function withoutIdle<E extends { by: string; deviations?: number | undefined }>(ensemble: E): E {
  if (ensemble.by !== 'minimum') return ensemble;
  const { deviations: _, ...rest } = ensemble;
  return rest as unknown as E;
}
