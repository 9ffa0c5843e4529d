import { needsNoLabel, roleOfRule, ruleName } from '../reward/rules.ts';
import type { ProcessRule, RewardRule } from '../schema/reward-rules.ts';
import type { RewardComponentSpec, RewardSpec } from '../schema/reward.ts';
import { isRewarded, isToolFailure, stepsOf } from './outcome.ts';
import type { MemberVerdict, ModelVerdict, RewardedOutcome, Outcome, RewardComponent } from './outcome.ts';

/** What a verifier said of one episode, as composition needs it. */
export interface VerdictOfVerifier {
  verifier: string;
  version: string;
  /** In [0, 1]; null for an abstention. */
  score: number | null;
  /** What the score counts for, in [0, 1], where it is brought to another scale. */
  worth?: number;
  /** Whether that is a success, where the full score is not asked for. */
  passed?: boolean;
  /** A score in [0, 1] for each turn, of a verifier that judges steps. */
  steps?: number[];
  /** What the answer comes down to: equal for two answers that say the same. */
  canonical?: string;
  /** What an ensemble was made of. */
  members?: MemberVerdict[];
  /** What a reward model said in its place. */
  model?: ModelVerdict;
  /** What a reward model had said before a higher tier of the ladder judged. */
  overruled?: ModelVerdict;
  /** Whether most samples of the task answer the same, where that counts in its place. */
  agreed?: boolean;
  evidence?: string;
}

/** What a reward is composed by. */
export type Composition = Pick<RewardSpec, 'components' | 'rules'>;

/** The full score, with room for rounding. */
const isFull = (score: number | null | undefined): boolean =>
  score !== null && score !== undefined && score >= 1 - 1e-9;

/**
 * Composes verdicts into a reward as the spec says. The outcome verifier decides: where it abstains the episode
 * abstains. An abstention of another verifier leaves its component out, and so does a rule that has not spoken. A gated
 * component counts only where its gate gave the full score.
 *
 * An outcome of weight 0 is only measured: where it abstains, what needs no label may teach all the same. So is one that a
 * reward model has judged.
 */
export function composeReward(
  { components: specs, rules = [] }: Composition,
  verdicts: readonly VerdictOfVerifier[],
): Extract<Outcome, { kind: 'scored' | 'abstained' }> {
  const byName = new Map(verdicts.map((verdict) => [verdict.verifier, verdict]));
  const hasLabel = rules.some((rule) => needsNoLabel(rule) && isKnown(byName.get(ruleName(rule))));
  const components: RewardComponent[] = [];
  let reward = 0;
  const add = (spec: Omit<RewardComponentSpec, 'verifier'>, verdict: VerdictOfVerifier): void => {
    const contribution = contributionOf(spec, verdict, byName);
    reward += contribution;
    components.push({ ...verdict, contribution });
  };
  for (const spec of specs) {
    const verdict = byName.get(spec.verifier);
    if (!verdict) throw new RangeError(`no verdict of ${spec.verifier}`);
    const decides = spec.role === 'outcome' && (spec.weight > 0 || !hasLabel);
    if (decides && verdict.score === null && !verdict.model) {
      return { kind: 'abstained', reason: verdict.evidence ?? `${spec.verifier} abstained` };
    }
    add(spec, verdict);
  }
  for (const rule of rules) {
    const verdict = byName.get(ruleName(rule));
    // What is paid turn by turn is no part of the episode's reward.
    const weight = isOfTurns(rule) ? 0 : rule.weight;
    if (verdict) add({ weight, gatedBy: rule.gatedBy, role: roleOfRule(rule) }, verdict);
  }
  return { kind: 'scored', reward, components };
}

const isKnown = (verdict: VerdictOfVerifier | undefined): boolean =>
  verdict !== undefined && verdict.score !== null;

/** What a verdict adds to the reward. */
function contributionOf(
  { role, weight, gatedBy }: Omit<RewardComponentSpec, 'verifier'>,
  { worth, score, passed, model, agreed }: VerdictOfVerifier,
  byName: ReadonlyMap<string, VerdictOfVerifier>,
): number {
  // Without a ladder a model judges in the verifier's place, whatever that one's score would count for.
  const judgesAlone = model && passed === undefined;
  const said = judgesAlone ? model.score : (worth ?? model?.score ?? score);
  const counted = agreed === undefined ? said : Number(agreed);
  if (counted === null || !isOpen(gatedBy, byName)) return 0;
  return role === 'penalty' ? -weight * (1 - counted) : weight * counted;
}

function isOpen(gatedBy: string | null, byName: ReadonlyMap<string, VerdictOfVerifier>): boolean {
  if (gatedBy === null) return true;
  const gate = byName.get(gatedBy);
  if (gate?.agreed !== undefined) return gate.agreed;
  return gate?.passed ?? (gate?.model ? modelPasses(gate.model) : isFull(gate?.score));
}

/** No probability is the full score: a success is what is likelier than not. */
export const modelPasses = ({ score }: ModelVerdict): boolean => score >= 0.5;

/** The outcome with this verdict in place of the one that it has of the same verifier. */
export function withVerdict(
  reward: Composition,
  outcome: RewardedOutcome,
  verdict: VerdictOfVerifier,
): Outcome {
  const composed = composeReward(
    reward,
    outcome.components.map((component) => (component.verifier === verdict.verifier ? verdict : component)),
  );
  if (composed.kind === 'abstained') return composed;
  return { ...outcome, reward: composed.reward, components: composed.components };
}

/**
 * Whether an episode counts as a success; null where it cannot be said (abstained, pending, failed). Where a call made
 * its tool or its session fail it can: what to call is the policy's choice, and what is not counted would be a place to hide.
 */
export function succeeded(specs: readonly RewardComponentSpec[], outcome: Outcome): boolean | null {
  if (outcome.kind === 'truncated') return false;
  if (outcome.kind === 'abstained' && outcome.ofSubject) return false;
  if (isToolFailure(outcome)) return false;
  if (outcome.kind !== 'scored') return null;
  const decisive = specs.find((spec) => spec.role === 'outcome');
  // Of a spec that cannot be read it is not known what counts.
  if (decisive === undefined) return null;
  const said = outcome.components.find((component) => component.verifier === decisive.verifier);
  // It is only measured, and had nothing to say.
  if (said?.score === null && (decisive.weight === 0 || said.model)) return null;
  return said?.passed ?? isFull(said?.score);
}

/**
 * The same as methods learn from it: where a reward model has judged, or samples have voted, what the verifier said is only
 * measured. On a ladder the model is a tier, and what passed by it has passed.
 */
export function succeededToLearn(specs: readonly RewardComponentSpec[], outcome: Outcome): boolean | null {
  const { verifier } = specs.find((spec) => spec.role === 'outcome') ?? {};
  const said = outcome.kind === 'scored' && outcome.components.find((one) => one.verifier === verifier);
  if (said && said.agreed !== undefined) return said.agreed;
  return said && said.model && said.passed === undefined
    ? modelPasses(said.model)
    : succeeded(specs, outcome);
}

const isOfTurns = (rule: RewardRule): rule is ProcessRule => rule.kind === 'process' && rule.by === 'turns';

/**
 * What each turn of an episode is paid beside the reward of the whole, for methods that give credit by turns: weight ×
 * step score of every rule `process` by `turns`. null where nothing speaks of turns.
 */
export function turnRewards({ rules = [] }: Composition, outcome: Outcome): number[] | null {
  if (!isRewarded(outcome)) return null;
  const byName = new Map(outcome.components.map((component) => [component.verifier, component]));
  let rewards: number[] | null = null;
  for (const rule of rules.filter(isOfTurns)) {
    const component = byName.get(rule.verifier);
    const steps = component && stepsOf(component);
    if (!steps) continue;
    const weight = isOpen(rule.gatedBy, byName) ? rule.weight : 0;
    rewards = steps.map((step, i) => (rewards?.[i] ?? 0) + weight * step);
  }
  return rewards;
}
