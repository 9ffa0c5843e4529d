import { groupStatistics } from '../../core/algorithms/advantage.ts';
import { callAndResult } from '../../core/episode/call-and-result.ts';
import { callByCall } from '../../core/episode/call-by-call.ts';
import { mixesSuccess } from '../../core/algorithms/group-baseline.ts';
import type { Episode, RolloutGroup } from '../../core/episode/episode.ts';
import { reachedTools } from '../../core/episode/facts.ts';
import { observedTokens } from '../../core/episode/paths.ts';
import { isRewarded, trainableReward } from '../../core/episode/outcome.ts';
import type { JudgeCost, ModelVerdict, Outcome, RewardComponent } from '../../core/episode/outcome.ts';
import { succeededToLearn } from '../../core/episode/reward.ts';
import { LADDER } from '../../core/ladder/requests.ts';
import { canonicalJson } from '../../core/json/canonical-json.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { InPieces } from '../../engine/in-pieces.ts';
import { addBehaviour, noBehaviour } from '../../core/training/behaviour.ts';
import type { AgreementSums } from '../../core/reward/self-judge.ts';
import type { BehaviourCounts, ComponentCounts, JudgeCounts } from '../../core/training/step-facts.ts';

/**
 * What the judged episodes of a rollout group did, counted; the samples of each of its tasks are a group of their own.
 * Yields after each episode: one of 32,000 tokens takes 10 ms.
 */
export function* countBehaviour(
  reward: RewardSpec,
  { tasks, episodes, grows }: RolloutGroup,
): InPieces<BehaviourCounts> {
  let counts = noBehaviour();
  for (const episode of episodes) {
    counts = addBehaviour(counts, ofOneEpisode(reward, episode));
    yield;
  }
  for (const task of tasks.keys()) {
    const samples = episodes.filter((episode) => episode.task === task);
    counts = addBehaviour(counts, { ...noBehaviour(), ...ofSamples(reward, samples, grows !== undefined) });
  }
  return counts;
}

/** What is only seen where the samples of a task lie side by side; rewards are not compared where `chosen` ones are. */
function ofSamples(
  { truncated, components }: RewardSpec,
  samples: readonly Episode[],
  chosen: boolean,
): Partial<BehaviourCounts> {
  const answers = samples.flatMap(({ status }) => (status.kind === 'answered' ? [status.answer] : []));
  const calls = samples.flatMap((episode) => [...new Set(callsOf(own(episode)))]);
  const texts = samples.map(({ turns }) => JSON.stringify(turns.map(({ text }) => text)));
  const rewards = samples.map(({ outcome }) => trainableReward(outcome!, truncated));
  const known = rewards.filter((earned) => earned !== null).length;
  const { deviation, degenerate } = groupStatistics(rewards);
  const judged = samples.map(({ outcome }, i) => ({
    reward: rewards[i]!,
    success: succeededToLearn(components, outcome!),
  }));
  return {
    duplicateCalls: repeated(calls),
    answers: answers.length,
    duplicateAnswers: repeated(answers),
    duplicateEpisodes: repeated(texts),
    ...(known >= 2 &&
      !chosen && {
        rewardGroups: 1,
        equalRewards: Number(degenerate),
        mixedGroups: Number(mixesSuccess({ samples: judged })),
        rewardVariance: deviation ** 2,
        rewardDeviation: deviation,
      }),
  };
}

function ofOneEpisode(reward: RewardSpec, episode: Episode): BehaviourCounts {
  const { mask, status } = episode;
  const { turns } = own(episode);
  const outcome = episode.outcome!;
  const sampled = mask.reduce<number>((sum, bit) => sum + bit, 0);
  const answeredWith = (error: string): number =>
    turns.flatMap(callByCall).filter(({ observation }) => observation?.error === error).length;
  const reached = new Map<string, number>();
  for (const turn of turns) {
    for (const tool of reachedTools(turn, status)) reached.set(tool, (reached.get(tool) ?? 0) + 1);
  }
  const fourGrams = fourGramsByTurn(own(episode));
  return {
    ...noBehaviour(),
    episodes: 1,
    truncated: Number(status.kind === 'truncated'),
    longest: sampled,
    mostTurns: episode.turns.length,
    observationTokens: episode.inherited
      ? mask.slice(episode.inherited.tokens).filter((bit) => bit === 0).length
      : observedTokens(episode),
    fourGrams: fourGrams.reduce((sum, { length }) => sum + length, 0),
    repeatedFourGrams: fourGrams.reduce((sum, ofTurn) => sum + repeated(ofTurn), 0),
    calls: Object.fromEntries(reached),
    malformedCalls: answeredWith('malformed-call'),
    unknownTools: answeredWith('unknown-tool'),
    invalidArguments: answeredWith('invalid-arguments'),
    toolErrors: answeredWith('tool-error'),
    repeatedCalls: repeated(answeredCalls(episode)) - repeated(answeredCalls(inherited(episode))),
    failures: outcome.kind === 'failed' ? { [outcome.boundary]: 1 } : {},
    components: isRewarded(outcome)
      ? Object.fromEntries(
          outcome.components.map((component): [string, ComponentCounts] => [
            component.verifier,
            {
              scored: Number(component.score !== null),
              score: component.score ?? 0,
              contribution: component.contribution,
              ...extremesOf(component),
              ...modelCounts(component),
            },
          ]),
        )
      : unjudgedCounts(reward, outcome),
  };
}

/** What it cost to ask a judge that said nothing. */
function unjudgedCounts({ components }: RewardSpec, outcome: Outcome): BehaviourCounts['components'] {
  if (outcome.kind !== 'abstained' || !outcome.judge) return {};
  const { verifier } = components.find(({ role }) => role === 'outcome')!;
  const { samples, tokens } = outcome.judge;
  const model = {
    judged: 0,
    score: 0,
    uncertainty: 0,
    compared: 0,
    excess: 0,
    squaredError: 0,
    judge: { ...NOTHING_COMPARED, unjudged: 1, tooLong: 0, samples, readable: 0, tokens },
  };
  return { [verifier]: { scored: 0, score: 0, contribution: 0, model } };
}

const NOTHING_COMPARED: AgreementSums = {
  score: 0,
  scoreSquared: 0,
  verified: 0,
  verifiedSquared: 0,
  product: 0,
};

/** Of one score both are that score. */
function extremesOf({
  score,
  model,
  overruled,
}: RewardComponent): Pick<ComponentCounts, 'lowest' | 'highest'> {
  const said = (model ?? overruled)?.score ?? score;
  return said === null ? {} : { lowest: said, highest: said };
}

/** What is compared is what both have said; on a ladder, what a higher tier has said, too, on the scale of the highest. */
function modelCounts({
  verifier,
  score: own,
  worth,
  model,
  overruled,
}: RewardComponent): Pick<ComponentCounts, 'model'> {
  const said = model ?? overruled;
  if (!said) return {};
  const score = verifier === LADDER ? (overruled ? (worth ?? own) : null) : own;
  return {
    model: {
      judged: 1,
      score: said.score,
      uncertainty: said.uncertainty,
      compared: Number(score !== null),
      excess: score === null ? 0 : said.score - score,
      squaredError: score === null ? 0 : (said.score - score) ** 2,
      ...(said.judge && { judge: judgeCounts(said, said.judge, score) }),
    },
  };
}

const judgeCounts = (
  { score, members }: ModelVerdict,
  { samples, tokens, tooLong }: JudgeCost,
  verified: number | null,
): JudgeCounts => ({
  unjudged: 0,
  tooLong: Number(tooLong ?? false),
  samples,
  readable: members.length,
  tokens,
  ...(verified === null
    ? NOTHING_COMPARED
    : {
        score,
        scoreSquared: score ** 2,
        verified,
        verifiedSquared: verified ** 2,
        product: score * verified,
      }),
});

/** An episode with those of its turns that another one, which it branched off, has not had. */
const own = (episode: Episode): Episode => ({
  ...episode,
  turns: episode.turns.slice(episode.inherited?.turns ?? 0),
});

/** The others. */
const inherited = (episode: Episode): Episode => ({
  ...episode,
  turns: episode.turns.slice(0, episode.inherited?.turns ?? 0),
});

/** Every call as one text: equal calls, equal texts. */
const callsOf = ({ turns }: Episode): string[] =>
  turns
    .flatMap(callByCall)
    .flatMap(({ action }) =>
      action.kind === 'call' ? [canonicalJson([action.call.name, action.call.arguments])] : [],
    );

/** Likewise, each with what it returned. */
const answeredCalls = ({ turns }: Episode): string[] =>
  turns.flatMap(callByCall).flatMap((turn) => callAndResult(turn) ?? []);

/** Of how many an equal one stands before. */
const repeated = (all: readonly (string | number)[]): number => all.length - new Set(all).size;

/** More than there are pairs of tokens in any episode, and than there are tokens in any vocabulary. */
const MOST = 2 ** 26;

/** A number for each run of four tokens within a turn; equal numbers, equal runs. */
function fourGramsByTurn({ tokens, turns }: Episode): number[][] {
  const numbers = new Map<number, number>();
  const numberOfPair = (at: number): number => {
    const pair = tokens[at]! * MOST + tokens[at + 1]!;
    const number = numbers.get(pair) ?? numbers.size;
    numbers.set(pair, number);
    return number;
  };
  return turns.map(({ start, end }) => {
    const pairs = Array.from({ length: Math.max(0, end - start - 1) }, (_, i) => numberOfPair(start + i));
    return pairs.slice(0, -2).map((pair, i) => pair * MOST + pairs[i + 2]!);
  });
}
