import type { BehaviourCounts, ComponentCounts, JudgeCounts, ModelCounts } from './step-facts.ts';

export const noBehaviour = (): BehaviourCounts => ({
  episodes: 0,
  truncated: 0,
  longest: 0,
  mostTurns: 0,
  observationTokens: 0,
  fourGrams: 0,
  repeatedFourGrams: 0,
  calls: {},
  malformedCalls: 0,
  unknownTools: 0,
  invalidArguments: 0,
  toolErrors: 0,
  repeatedCalls: 0,
  duplicateCalls: 0,
  answers: 0,
  duplicateAnswers: 0,
  duplicateEpisodes: 0,
  failures: {},
  components: {},
  rewardGroups: 0,
  equalRewards: 0,
  mixedGroups: 0,
  rewardVariance: 0,
  rewardDeviation: 0,
});

/** Both together; a record has the keys of the first in their order, then those that only the second has. */
export function addBehaviour(a: BehaviourCounts, b: BehaviourCounts): BehaviourCounts {
  const sum = { ...a };
  for (const name of Object.keys(a) as (keyof BehaviourCounts)[]) {
    switch (name) {
      case 'longest':
      case 'mostTurns':
        sum[name] = Math.max(a[name], b[name]);
        break;
      case 'calls':
      case 'failures':
        sum[name] = addByName<number>(a[name], b[name], (x, y) => x + y);
        break;
      case 'components':
        sum[name] = addByName(a[name], b[name], addComponents);
        break;
      default:
        sum[name] = (a[name] ?? 0) + (b[name] ?? 0);
    }
  }
  return sum;
}

const addComponents = (a: ComponentCounts, b: ComponentCounts): ComponentCounts => {
  const model = a.model && b.model ? addModels(a.model, b.model) : (a.model ?? b.model);
  return {
    scored: a.scored + b.scored,
    score: a.score + b.score,
    contribution: a.contribution + b.contribution,
    ...extremes(a, b),
    ...(model && { model }),
  };
};

/** Of an older one they are unknown, and so of both together, unless it has scored nothing. */
function extremes(a: ComponentCounts, b: ComponentCounts): Pick<ComponentCounts, 'lowest' | 'highest'> {
  const [first, second] = [a, b].map(({ lowest, highest }) =>
    lowest === undefined || highest === undefined ? null : { lowest, highest },
  );
  if (!first || !second) {
    const [known, other] = first ? [first, b] : [second, a];
    return known && other.scored === 0 && !other.model?.judged ? known : {};
  }
  return {
    lowest: Math.min(first.lowest, second.lowest),
    highest: Math.max(first.highest, second.highest),
  };
}

const addModels = (a: ModelCounts, b: ModelCounts): ModelCounts => {
  const judge = a.judge && b.judge ? addJudges(a.judge, b.judge) : (a.judge ?? b.judge);
  return { ...addSums(a, b), ...(judge && { judge }) };
};

const addSums = (a: ModelCounts, b: ModelCounts): ModelCounts => ({
  judged: a.judged + b.judged,
  score: a.score + b.score,
  uncertainty: a.uncertainty + b.uncertainty,
  compared: a.compared + b.compared,
  excess: a.excess + b.excess,
  squaredError: a.squaredError + b.squaredError,
});

const addJudges = (a: JudgeCounts, b: JudgeCounts): JudgeCounts => ({
  unjudged: a.unjudged + b.unjudged,
  tooLong: a.tooLong + b.tooLong,
  samples: a.samples + b.samples,
  readable: a.readable + b.readable,
  tokens: a.tokens + b.tokens,
  score: a.score + b.score,
  scoreSquared: a.scoreSquared + b.scoreSquared,
  verified: a.verified + b.verified,
  verifiedSquared: a.verifiedSquared + b.verifiedSquared,
  product: a.product + b.product,
});

/** Tokens that the policy has sampled as its own judge. */
export const judgeTokens = ({ components }: Pick<BehaviourCounts, 'components'>): number =>
  Object.values(components).reduce((sum, { model }) => sum + (model?.judge?.tokens ?? 0), 0);

function addByName<T>(a: Record<string, T>, b: Record<string, T>, add: (x: T, y: T) => T): Record<string, T> {
  const sum = new Map(Object.entries(a));
  for (const [name, value] of Object.entries(b)) {
    const before = sum.get(name);
    sum.set(name, before === undefined ? value : add(before, value));
  }
  return Object.fromEntries(sum);
}
