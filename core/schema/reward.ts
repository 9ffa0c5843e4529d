import { z } from 'zod';
import { LADDER } from '../ladder/requests.ts';
import type { LearnedTier } from '../ladder/learned-tier.ts';
import type { LadderTier } from '../ladder/policy.ts';
import type { Refuse, SpecEnvironment } from './check.ts';
import { ignoresScale } from '../algorithms/index.ts';
import type { AlgorithmSpec } from '../algorithms/index.ts';
import { amount, count, fraction, givenName, positive } from '../fields.ts';
import { RUBRIC } from '../reward/self-judge.ts';
import { didYouMean } from '../did-you-mean.ts';
import { checkRules, rewardRuleSchema, ruleOf, weightOfRules } from './reward-rules.ts';
import type { RewardRule } from './reward-rules.ts';
import type { SamplingSpec } from './sampling.ts';
import type { VerificationSpec } from './verification.ts';

/** Of a reward model on the ladder, where the spec does not say. */
const ESCALATE = { uncertaintyAtLeast: 0.4, audit: 0.05 };

export const rewardSchema = z
  .strictObject({
    components: z
      .array(
        z.strictObject({
          verifier: givenName.describe('A verifier of the environment, an ensemble, or "ladder".'),
          role: z
            .enum(['outcome', 'bonus', 'penalty'])
            .describe(
              'outcome: decides success, exactly one. bonus: adds weight × score. penalty: subtracts weight × (1 − score).',
            ),
          weight: amount(1000, 'weigh the others less')
            .default(1)
            .describe('What its score is multiplied by.'),
          gatedBy: givenName
            .nullable()
            .default(null)
            .describe('Counts only where this verifier gave the full score.'),
        }),
      )
      .nonempty()
      .max(32, 'has at most 32 components')
      .describe('Verdicts that the reward is a weighted sum of.'),
    ensembles: z
      .array(
        z.strictObject({
          name: givenName.describe('The name by which a component refers to it.'),
          verifiers: z
            .array(givenName)
            .min(2)
            .max(16, 'has at most 16 verifiers')
            .describe('Fast verifiers of the environment.'),
          by: z
            .enum(['minimum', 'mean-deviation'])
            .default('minimum')
            .describe('minimum of the scores, or mean − deviations × their standard deviation, not below 0.'),
          deviations: positive(100, 'nothing would be left')
            .optional()
            .describe('Of mean-deviation; default 1.'),
        }),
      )
      .max(16, 'has at most 16 ensembles')
      .optional()
      .describe(
        'Several fast verifiers that give one score; where one of them abstains, the ensemble abstains.',
      ),
    rules: z
      .array(rewardRuleSchema)
      .max(16, 'has at most 16 rules')
      .optional()
      .describe('Rules that add to or take from the reward, in training only.'),
    model: z
      .strictObject({
        stage: givenName.describe('A reward stage of this run.'),
        by: z
          .enum(['minimum', 'mean-deviation'])
          .default('mean-deviation')
          .describe('minimum of its models, or mean − deviations × their standard deviation, not below 0.'),
        deviations: positive(100, 'nothing would be left')
          .optional()
          .describe('Of mean-deviation; default 1.'),
        escalate: z
          .strictObject({
            uncertaintyAtLeast: amount(1, 'of a score in [0, 1]; more is impossible')
              .default(ESCALATE.uncertaintyAtLeast)
              .describe(
                'The standard deviation of what the next tier is expected to say, and of its models, from which on that tier is asked.',
              ),
            audit: fraction
              .default(ESCALATE.audit)
              .describe('Part of the other candidates, drawn by the seed, that is escalated all the same.'),
          })
          .optional()
          .describe('With verification: which of its verdicts are escalated to the next tier.'),
      })
      .optional()
      .describe(
        'After its stage, a reward model judges training episodes in the place of the verifier that decides. That one still says what a success is, in training and on held-out tasks. With verification it speaks for the lowest tier, of what that has passed.',
      ),
    judge: z
      .strictObject({
        by: z
          .enum(['policy', 'reference'])
          .default('policy')
          .describe(
            'policy: the checkpoint that the episodes of a group began with judges them. reference: what the first stage that is not supervised began with judges all of them.',
          ),
        rubric: z
          .string()
          .trim()
          .min(1)
          .max(8000, 'has at most 8000 characters')
          .optional()
          .describe(
            'What each of up to five points is given for. Absent: five points for relevance, progress, the core, sound steps and a right result.',
          ),
        samples: count(16, 'the mean of a few is steady enough')
          .default(3)
          .describe('Samples of the judge for each episode; the mean of those that give points counts.'),
        temperature: amount(2, 'what is sampled at more is noise')
          .default(0.7)
          .describe('Of these samples. 0 draws the likeliest tokens, which is one sample.'),
        maxTokens: count(8192, 'a judgement is a few sentences and a score')
          .default(256)
          .describe('Tokens of one sample at most; what is cut off gives no points.'),
        stages: z
          .array(givenName)
          .nonempty()
          .max(64, 'has at most 64 stages')
          .optional()
          .describe('The rl stages that are judged so. Absent: all that sample.'),
      })
      .optional()
      .describe(
        'The policy judges its own training episodes by a rubric, 0 to 5 points, in the place of the verifier that decides. That one still says what a success is, in training and on held-out tasks.',
      ),
    normalization: z
      .literal('environment')
      .optional()
      .describe(
        'environment: advantages are of (reward − mean) / deviation over the step within each environment. Absent: of the rewards as they are.',
      ),
    shapingMayDominate: z
      .boolean()
      .optional()
      .describe(
        'Everything but the outcome may together weigh more than it. Without this, such weights are refused: a failure could be worth more than a success.',
      ),
    truncated: z
      .enum(['train', 'mask'])
      .default('train')
      .describe('Episodes cut by a limit: trained on with their reward, or left out of loss and statistics.'),
  })
  .describe('How verdicts become the reward of an episode.');

export type WrittenReward = z.output<typeof rewardSchema>;

type WrittenEnsemble = NonNullable<WrittenReward['ensembles']>[number];
export type EnsembleSpec = WrittenEnsemble & { deviations: number };

/** How verdicts become a reward: a weighted sum of components, each of them data. */
export interface RewardSpec extends Pick<WrittenReward, 'components' | 'truncated'> {
  ensembles?: EnsembleSpec[];
  rules?: RewardRule[];
  /** A reward stage whose models judge training episodes once it has ended. */
  model?: RewardModelSpec;
  /** The policy judges its own training episodes. */
  judge?: JudgeSpec;
  normalization?: 'environment';
  /** What is not the outcome weighs more than it; whoever judges the model should know. */
  shapingMayDominate?: true;
  /** The lowest tier, which stands for the component `ladder` until a higher one has spoken. */
  ladder?: Pick<LadderTier, 'verifier' | 'passAtLeast'>;
}
/** Who judges in the place of the verifier that decides. */
export type RewardModelSpec = Omit<NonNullable<WrittenReward['model']>, 'escalate'> & { deviations: number };

/** The policy as its own judge; `stages`: the rl stages that it judges in, absent: all that sample. */
export type JudgeSpec = NonNullable<WrittenReward['judge']> & { rubric: string };

export type RewardComponentSpec = WrittenReward['components'][number];

/** A reward model as a tier of the ladder. */
export const learnedTierOf = (
  { stage, escalate }: NonNullable<WrittenReward['model']>,
  seed: number,
  learntFrom?: string,
): LearnedTier => ({
  stage,
  ...(escalate ?? ESCALATE),
  seed,
  ...(learntFrom !== undefined && { learntFrom }),
});

export function rewardSpecOf(
  { components, ensembles, rules, model, judge, normalization, shapingMayDominate, truncated }: WrittenReward,
  sampling: SamplingSpec,
  verification: VerificationSpec | undefined,
): RewardSpec {
  const outcome = components.find(({ role }) => role === 'outcome')!.verifier;
  const lowest = verification?.rungs[0];
  return {
    components,
    truncated,
    ...(ensembles && { ensembles: ensembles.map((one) => ({ ...one, deviations: one.deviations ?? 1 })) }),
    ...(rules && { rules: rules.map((rule) => ruleOf(rule, outcome, sampling)) }),
    ...(model && { model: { stage: model.stage, by: model.by, deviations: model.deviations ?? 1 } }),
    ...(judge && { judge: { ...judge, rubric: judge.rubric ?? RUBRIC } }),
    ...(normalization && { normalization }),
    ...(shapingMayDominate && { shapingMayDominate }),
    ...(lowest && { ladder: { verifier: lowest.verifier, passAtLeast: lowest.passAtLeast } }),
  };
}

/** What the rest of the spec says that a reward must go with. */
export interface RewardContext {
  hasLadder: boolean;
  sampling: SamplingSpec;
  stages: readonly {
    numGenerations: number;
    algorithm: AlgorithmSpec;
    selfPlay?: { labels: string } | undefined;
  }[];
}

/** `environments`: those that the run uses. */
export function checkReward(
  reward: WrittenReward,
  { hasLadder, sampling, stages }: RewardContext,
  environments: readonly SpecEnvironment[],
  refuse: Refuse,
): void {
  const { components, ensembles = [], rules = [], shapingMayDominate = false } = reward;
  const outcomes = components.filter((component) => component.role === 'outcome').length;
  if (outcomes !== 1) {
    refuse(['reward', 'components'], `exactly one component must have role "outcome"; ${outcomes} have`);
  }
  const validIn = (environment: SpecEnvironment): string[] => [
    ...fastVerifiers(environment),
    ...ensembles.map(({ name }) => name),
    ...(hasLadder ? [LADDER] : []),
  ];
  // A component of a name that there is not may be any that there is: what calls it rightly is not refused as well.
  const meant = ({ verifier }: RewardComponentSpec): string[] => {
    const missing = environments.map(validIn).filter((valid) => !valid.includes(verifier));
    return missing.length === 0 ? [verifier] : [...new Set(missing.flat())];
  };
  components.forEach((component, i) => {
    const at = ['reward', 'components', i];
    for (const environment of environments) {
      const valid = validIn(environment);
      if (!valid.includes(component.verifier)) {
        refuse(
          [...at, 'verifier'],
          `environment "${environment.name}" has no verifier "${component.verifier}"${didYouMean(component.verifier, valid)}`,
        );
      }
    }
    if (components.findIndex((other) => other.verifier === component.verifier) !== i) {
      refuse([...at, 'verifier'], `"${component.verifier}" is already a component`);
    }
    if (component.gatedBy !== null) {
      const valid = components.filter((other) => other.verifier !== component.verifier).flatMap(meant);
      if (!valid.includes(component.gatedBy)) {
        refuse(
          [...at, 'gatedBy'],
          `"${component.gatedBy}" is no other component${didYouMean(component.gatedBy, valid)}`,
        );
      }
      if (component.role === 'outcome') refuse([...at, 'gatedBy'], 'the outcome cannot be gated: it decides');
    }
    if (component.role === 'outcome' && component.weight === 0) {
      if (!shapingMayDominate)
        refuse([...at, 'weight'], 'the outcome would be worth nothing: give it a weight above 0');
      else if (stages.some(({ selfPlay }) => selfPlay?.labels === 'majority'))
        refuse(
          [...at, 'weight'],
          'is what agreeing with the majority is worth, where selfPlay.labels is majority: give it a weight above 0',
        );
    }
  });
  const names = components.flatMap(meant);
  checkEnsembles(reward, names, environments, refuse);
  const single = (name: string): boolean =>
    name !== LADDER && !ensembles.some((ensemble) => ensemble.name === name);
  const context = { verifiers: names.filter(single), components: names, sampling, stages };
  checkRules(rules, context, ['reward', 'rules'], refuse);
  checkBalance(reward, sampling, refuse);
  const decides = components.find(({ role }) => role === 'outcome')?.verifier;
  rules.forEach((rule, i) => {
    if (rule.kind !== 'process' || rule.verifier !== decides) return;
    if (stages.some(({ selfPlay }) => selfPlay?.labels === 'majority'))
      refuse(
        ['reward', 'rules', i, 'verifier'],
        'would pay by what the deciding verifier says, and selfPlay.labels is majority: leave the rule out, or set labels to verifier',
      );
  });
  if (reward.normalization && stages.every(({ algorithm }) => ignoresScale(algorithm))) {
    refuse(
      ['reward', 'normalization'],
      'does nothing where all stages divide by the deviation of the group, or only compare which sample is better: leave it out, or set algorithm.scaleRewards to "none"',
    );
  }
}

const fastVerifiers = ({ verifiers }: SpecEnvironment): string[] =>
  verifiers.filter(({ tier }) => tier === 'fast').map(({ name }) => name);

function checkEnsembles(
  { ensembles = [] }: WrittenReward,
  /** Names that components may have meant. */
  components: readonly string[],
  environments: readonly SpecEnvironment[],
  refuse: Refuse,
): void {
  ensembles.forEach(({ name, verifiers, by, deviations }, i) => {
    const at = ['reward', 'ensembles', i];
    const taken = [
      LADDER,
      ...environments.flatMap((environment) => environment.verifiers.map(({ name }) => name)),
    ];
    if (taken.includes(name)) refuse([...at, 'name'], `"${name}" is the name of a verifier; choose another`);
    if (ensembles.findIndex((other) => other.name === name) !== i)
      refuse([...at, 'name'], `"${name}" is already an ensemble`);
    if (!components.includes(name))
      refuse([...at, 'name'], `does nothing unless reward.components has { "verifier": "${name}" }`);
    if (by === 'minimum' && deviations !== undefined)
      refuse([...at, 'deviations'], 'does nothing for minimum; mean-deviation reads it');
    verifiers.forEach((verifier, v) => {
      if (verifiers.indexOf(verifier) !== v) refuse([...at, 'verifiers', v], `"${verifier}" is named twice`);
      for (const environment of environments) {
        const valid = fastVerifiers(environment);
        if (!valid.includes(verifier)) {
          refuse(
            [...at, 'verifiers', v],
            `environment "${environment.name}" has no fast verifier "${verifier}"${didYouMean(verifier, valid)}`,
          );
        }
      }
    });
  });
}

/** What a reward model must go with: its stage, rollouts after it, and a verifier that is asked about every episode. */
export function checkRewardModel(
  { model }: WrittenReward,
  {
    stages,
    hasLadder,
    branches,
  }: {
    stages: readonly { kind: string; name: string; models?: number; selfPlay?: unknown }[];
    hasLadder: boolean;
    branches: boolean;
  },
  refuse: Refuse,
): void {
  if (!model) return;
  const at = ['reward', 'model'];
  const names = stages.filter(({ kind }) => kind === 'reward').map(({ name }) => name);
  const place = stages.findIndex(({ kind, name }) => kind === 'reward' && name === model.stage);
  if (place < 0)
    refuse(
      [...at, 'stage'],
      `"${model.stage}" is no stage of the kind reward${didYouMean(model.stage, names)}`,
    );
  const after = place < 0 ? [] : stages.slice(place + 1).filter(({ kind }) => kind === 'rl');
  if (place >= 0 && after.length === 0)
    refuse([...at, 'stage'], `no rl stage comes after "${model.stage}": nothing would be judged by it`);
  if (after.some(({ selfPlay }) => selfPlay !== undefined))
    refuse(at, 'proposals of self-play are paid by verified success: leave out the one or the other');
  if (model.by === 'minimum' && model.deviations !== undefined)
    refuse([...at, 'deviations'], 'does nothing for minimum; mean-deviation reads it');
  else if (stages[place]?.models === 1 && (model.by === 'minimum' || model.deviations !== undefined))
    refuse(
      [...at, model.by === 'minimum' ? 'by' : 'deviations'],
      `does nothing: models of "${model.stage}" is 1, and one model says what it says`,
    );
  if (hasLadder && stages[place]?.models === 1)
    refuse(
      at,
      `models of "${model.stage}" is 1, and one model disagrees with nobody: with verification there must be several`,
    );
  if (!hasLadder && model.escalate)
    refuse([...at, 'escalate'], 'does nothing without verification: there is no tier to escalate to');
  if (branches)
    refuse(at, 'a reward model reads one sequence: set agent.branches to "fail", or leave out the model');
}

/** What a judge must go with: rollouts of the local decoder, and a verifier that is asked about every episode. */
export function checkJudge(
  { judge, model, components, rules = [] }: WrittenReward,
  {
    stages,
    hasLadder,
    branches,
    policy,
    maxPositions,
  }: {
    stages: readonly { kind: string; name: string; collect?: { kind: string }; selfPlay?: unknown }[];
    hasLadder: boolean;
    branches: boolean;
    policy: { kind: string } | undefined;
    /** Of a model from scratch. */
    maxPositions: number | undefined;
  },
  refuse: Refuse,
): void {
  if (!judge) return;
  const at = ['reward', 'judge'];
  const sampling = stages.filter(({ kind, collect }) => kind === 'rl' && collect?.kind !== 'stored');
  const names = sampling.map(({ name }) => name);
  judge.stages?.forEach((name, i) => {
    if (!names.includes(name))
      refuse([...at, 'stages', i], `"${name}" is no rl stage that samples${didYouMean(name, names)}`);
    if (judge.stages!.indexOf(name) !== i) refuse([...at, 'stages', i], `"${name}" is named twice`);
  });
  const judged = sampling.filter(({ name }) => judge.stages?.includes(name) ?? true);
  if (sampling.length === 0) refuse(at, 'no rl stage samples: nothing would be judged');
  if (judged.some(({ selfPlay }) => selfPlay !== undefined))
    refuse(
      at,
      'proposals of self-play are paid by verified success: leave out the one or the other, or name the other stages in judge.stages',
    );
  if (model) refuse(at, 'a reward model judges already: leave out reward.model or reward.judge');
  if (hasLadder)
    refuse(at, 'does not go with verification, whose tiers decide: leave out the one or the other');
  if (branches)
    refuse(at, 'a judge reads one transcript: set agent.branches to "fail", or leave out the judge');
  if (policy && policy.kind !== 'onnx')
    refuse(
      at,
      'the decoder of rollout workers judges, and policy names servers or what they have sampled: leave out policy or the judge',
    );
  if (maxPositions !== undefined && judge.maxTokens >= maxPositions)
    refuse(
      [...at, 'maxTokens'],
      `the model holds ${maxPositions} tokens, rubric and transcript among them: lower it, or raise model.maxPositions`,
    );
  if (judge.temperature === 0 && judge.samples > 1)
    refuse([...at, 'samples'], `at temperature 0 all ${judge.samples} say the same: set it to 1`);
  const decisive = components.find(({ role }) => role === 'outcome')?.verifier;
  rules.forEach((rule, i) => {
    if (rule.kind === 'process' && rule.verifier === decisive)
      refuse(
        ['reward', 'rules', i, 'verifier'],
        `the judge speaks for "${decisive}", and scores no single steps: name another component`,
      );
  });
}

/**
 * The outcome keeps at least half: with weights of at most its own beside it, a success is worth no less than a
 * failure, whatever else is paid and taken off.
 */
function checkBalance(
  { components, rules = [], shapingMayDominate = false }: WrittenReward,
  sampling: SamplingSpec,
  refuse: Refuse,
): void {
  const outcome = components.find(({ role }) => role === 'outcome');
  // Of weight 0 it has been refused already, unless that was meant.
  if (!outcome || (outcome.weight === 0 && !shapingMayDominate)) return;
  const others = components.filter(({ role }) => role !== 'outcome');
  const shaping = others.reduce((sum, { weight }) => sum + weight, 0) + weightOfRules(rules, sampling);
  const dominates = shaping > outcome.weight + ROUNDING;
  if (dominates && !shapingMayDominate) {
    refuse(
      ['reward'],
      `all other components and rules weigh ${shown(shaping)}, more than its ${shown(outcome.weight)}: a failure could be worth more than a success; lower the weights, or set "shapingMayDominate": true`,
    );
  }
  if (!dominates && shapingMayDominate) {
    refuse(
      ['reward', 'shapingMayDominate'],
      'does nothing: the outcome weighs as much as all the others together',
    );
  }
}

/** Of a sum of weights such as 0.1 + 0.2. */
const ROUNDING = 1e-9;
const shown = (weight: number): string => String(Number(weight.toPrecision(6)));
