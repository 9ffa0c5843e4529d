import { z } from 'zod';
import { count, givenName, positive } from '../fields.ts';
import { MOST_COMPARED } from '../reward/diversity.ts';
import { refuseExtension } from '../extensions/registry.ts';
import { ruleName } from '../reward/rules.ts';
import type { Refuse } from './check.ts';
import { didYouMean } from '../did-you-mean.ts';
import type { Path } from './strict.ts';
import type { SamplingSpec } from './sampling.ts';

// What may be added to a reward besides verdicts; each is computed by the file of its name in `core/reward/`.

const weight = positive(1000, 'weigh the others less').describe('The most that it adds or takes off.');
const GATE = 'Counts only where this verifier gave the full score.';
const gatedBy = givenName.nullable().default(null).describe(GATE);
const tokens = (what: string) => count(1e6, 'no episode has so many tokens').describe(what);

const linearLength = z
  .strictObject({
    kind: z.literal('linear-length').describe('A penalty that grows linearly with the length.'),
    target: tokens('Sampled tokens up to which nothing is taken off.'),
    limit: tokens('Sampled tokens from which on the whole weight is taken off.'),
    weight,
    gatedBy,
  })
  .describe('Takes off more and more from target to limit.');

const sigmoidLength = z
  .strictObject({
    kind: z.literal('sigmoid-length').describe('A penalty that grows with the length along a sigmoid.'),
    target: tokens('Sampled tokens at which half of the weight is taken off.'),
    scale: positive(1e6, 'no episode has so many tokens').describe(
      'Tokens around the target over which it rises.',
    ),
    weight,
    gatedBy,
  })
  .describe('Takes off weight × σ((tokens − target) / scale).');

const overlong = z
  .strictObject({
    kind: z.literal('overlong').describe('A penalty for episodes near the limit of tokens.'),
    limit: tokens('Tokens after the prompt; default sampling.maxCompletionTokens.').optional(),
    buffer: tokens('Tokens before the limit over which the penalty rises.'),
    weight,
    gatedBy,
  })
  .describe('The soft overlong punishment of DAPO (Yu et al. 2025, eq. 13).');

const agreement = z
  .strictObject({
    kind: z.literal('agreement').describe('A reward for the answer that most samples give.'),
    by: z
      .enum(['majority', 'share'])
      .default('majority')
      .describe(
        "majority: 1 for the answer that most samples of a task give (TTRL). share: the part of the task's other samples that answer the same.",
      ),
    weight,
    gatedBy,
  })
  .describe('Pays for answering as the other samples of the task do, without a label.');

const confidence = z
  .strictObject({
    kind: z.literal('confidence').describe('A reward for tokens that the policy finds likely.'),
    weight,
    gatedBy,
  })
  .describe('Pays exp of the mean log-prob of the sampled tokens, without a label.');

const diversity = z
  .strictObject({
    kind: z.literal('diversity').describe('A reward for what other samples do not do.'),
    of: z
      .enum(['answer', 'calls'])
      .default('answer')
      .describe('What is compared among the samples of a task.'),
    by: z
      .enum(['count', 'similarity'])
      .default('count')
      .describe('count: 1/√n where n samples do the same. similarity: 1 − mean similarity to the others.'),
    weight,
    gatedBy: givenName.nullable().optional().describe(`${GATE} Default: the outcome's; null: always.`),
  })
  .describe('Pays for doing what the other samples of the task do not.');

const process = z
  .strictObject({
    kind: z.literal('process').describe('A reward for single steps that a verifier has scored.'),
    verifier: givenName.describe('A component whose verifier scores steps.'),
    by: z
      .enum(['minimum', 'product', 'mean', 'turns'])
      .default('minimum')
      .describe(
        'How the scores of its turns are combined. turns: each turn has a reward of its own, weight × its score, for methods that give credit by turns; the reward of the episode stays.',
      ),
    weight,
    gatedBy,
  })
  .describe('Pays for the steps that a verifier has scored.');

const own = z
  .strictObject({
    kind: z.literal('own').describe('A rule that a module of the project brings (docs/extend.md).'),
    name: givenName.describe('As its module calls it.'),
    role: z
      .enum(['bonus', 'penalty'])
      .default('bonus')
      .describe('bonus: adds weight × its score. penalty: takes off weight × (1 − its score).'),
    options: z.record(z.string(), z.json()).default({}).describe('What the rule itself reads.'),
    weight,
    gatedBy,
  })
  .describe('Pays, or takes off, by a rule of the project.');

export const rewardRuleSchema = z.discriminatedUnion('kind', [
  linearLength,
  sigmoidLength,
  overlong,
  agreement,
  confidence,
  diversity,
  process,
  own,
]);

export type WrittenRule = z.output<typeof rewardRuleSchema>;
export type LinearLength = z.output<typeof linearLength>;
export type SigmoidLength = z.output<typeof sigmoidLength>;
export type Overlong = z.output<typeof overlong> & { limit: number };
export type AgreementRule = z.output<typeof agreement>;
type ConfidenceRule = z.output<typeof confidence>;
export type DiversityRule = z.output<typeof diversity> & { gatedBy: string | null };
export type ProcessRule = z.output<typeof process>;
export type OwnRule = z.output<typeof own>;

/** A rule, with what a person has left out filled in. */
export type RewardRule =
  | LinearLength
  | SigmoidLength
  | Overlong
  | AgreementRule
  | ConfidenceRule
  | DiversityRule
  | ProcessRule
  | OwnRule;

/** What the rest of the spec says that rules must go with. */
export interface RulesContext {
  /** Names of the components, without ladder and ensembles. */
  verifiers: readonly string[];
  components: readonly string[];
  sampling: Pick<SamplingSpec, 'maxCompletionTokens'>;
  stages: readonly { numGenerations: number }[];
}

export function ruleOf(
  rule: WrittenRule,
  outcome: string,
  { maxCompletionTokens }: Pick<SamplingSpec, 'maxCompletionTokens'>,
): RewardRule {
  if (rule.kind === 'overlong') return { ...rule, limit: rule.limit ?? maxCompletionTokens };
  // What is new and wrong is no discovery.
  if (rule.kind === 'diversity')
    return { ...rule, gatedBy: rule.gatedBy === undefined ? outcome : rule.gatedBy };
  return rule;
}

/** `at` is the path of the rules. */
export function checkRules(
  rules: readonly WrittenRule[],
  { verifiers, components, sampling, stages }: RulesContext,
  at: Path,
  refuse: Refuse,
): void {
  const most = sampling.maxCompletionTokens;
  const needsRoom = (field: Path, from: number): void => {
    if (from >= most)
      refuse(field, `is never reached: an episode has at most sampling.maxCompletionTokens = ${most} tokens`);
  };
  rules.forEach((rule, i) => {
    const path = [...at, i];
    if (rules.findIndex((other) => ruleName(other) === ruleName(rule)) !== i) {
      refuse([...path, 'kind'], `${ruleName(rule)} is already a rule`);
    }
    if (rule.gatedBy && !components.includes(rule.gatedBy)) {
      refuse(
        [...path, 'gatedBy'],
        `"${rule.gatedBy}" is no component${didYouMean(rule.gatedBy, components)}`,
      );
    }
    switch (rule.kind) {
      case 'linear-length':
        if (rule.limit <= rule.target) refuse([...path, 'limit'], `must be above target = ${rule.target}`);
        needsRoom([...path, 'target'], rule.target);
        break;
      case 'overlong': {
        const limit = rule.limit ?? most;
        if (rule.buffer > limit) refuse([...path, 'buffer'], `is more than the limit of ${limit} tokens`);
        else needsRoom([...path, 'limit'], limit - rule.buffer);
        break;
      }
      case 'process':
        if (!verifiers.includes(rule.verifier)) {
          refuse(
            [...path, 'verifier'],
            `"${rule.verifier}" is no component of one verifier${didYouMean(rule.verifier, verifiers)}; give it a weight of 0 if it should only score steps`,
          );
        }
        break;
      case 'diversity':
        if (rule.by === 'similarity' && stages.some(({ numGenerations }) => numGenerations > MOST_COMPARED)) {
          refuse(
            [...path, 'by'],
            `compares at most ${MOST_COMPARED} samples of a task with each other: choose count`,
          );
        }
        break;
      case 'own':
        for (const { field, message } of refuseExtension('reward-rule', rule))
          refuse([...path, ...field.split('.')], message);
        break;
      default:
    }
  });
}

/** What the rules can come to in one episode, in units of reward. */
export const weightOfRules = (
  rules: readonly WrittenRule[],
  { maxTurns }: Pick<SamplingSpec, 'maxTurns'>,
): number =>
  rules.reduce(
    (sum, rule) => sum + rule.weight * (rule.kind === 'process' && rule.by === 'turns' ? maxTurns : 1),
    0,
  );
