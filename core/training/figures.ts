import { armName } from '../names.ts';
import { rewardedCount } from '../episode/outcome.ts';
import { rate } from '../statistics/intervals.ts';
import type { Proportion } from '../statistics/intervals.ts';
import type { GapBin } from '../requests/learner.ts';
import type { ArmTally } from '../requests/verification.ts';
import { total } from './stage-policy.ts';
import { correlationOf } from '../reward/self-judge.ts';
import { judgeTokens } from './behaviour.ts';
import type { BatchFacts, LabelFacts, ModelCounts, RolloutFacts, StepFacts } from './step-facts.ts';

/** Numbers by name, as a chart has them; what a step does not know has no entry. */
export type Figures = Record<string, number>;

/**
 * Every figure of a step. Names are of two parts, so that charts stand together by the first; shares are of 1, lengths
 * are in tokens, times in seconds, log-probs in nats.
 */
export function figuresOf(step: StepFacts): Figures {
  const { rollout, batch, learner, heldOut, estimates, adjusted, circumstances } = step;
  const figures: [name: string, value: number | null][] = [
    ...(rollout === null ? [] : ofRollout(rollout, batch)),
    ...(heldOut === null
      ? []
      : [
          ...ofSuccess('held-out', heldOut.arms),
          figure('reward/held-out', share(heldOut.meanReward, Number(rewardedCount(heldOut.outcomes) > 0))),
          figure('graduation/error-left', heldOut.errorLeft ?? null),
        ]),
    ...numbersOf('reward-model/held-out-', step.rewardModel ?? {}),
    ...numbersOf('learner/', learner ?? {}),
    ...ofBins('learner/logprob-gap-at-position', learner?.logprobGapByPosition),
    ...ofBins('learner/logprob-gap-at-length', learner?.logprobGapByLength),
    ...(learner?.logprobGapByStaleness ?? []).map(({ staleness, mean }) =>
      figure(`learner/logprob-gap-at-staleness-${staleness}`, mean),
    ),
    figure('learner/seconds', circumstances.learnerSeconds),
    ...Object.entries(estimates).map(([arm, { successes, trials }]) =>
      figure(`estimate/${arm}`, share(successes, trials)),
    ),
    ...numbersOf('adjusted/', adjusted ?? {}),
    ...(batch === null
      ? []
      : [
          figure('batch/sequences', batch.sequences),
          figure('batch/tokens', batch.tokens),
          figure('batch/trained-share', share(batch.maskedTokens, batch.tokens)),
          figure('batch/groups-without-contrast', batch.degenerateGroups),
        ]),
    figure('episodes/taught-share', trainedShare(trainedTokensOf(step))),
    figure('alarms/count', step.alarms.length),
    figure('alarms/standing', step.standing?.length ?? step.alarms.length),
    ...Object.entries(circumstances.seconds).map(([part, seconds]) => figure(`seconds/${part}`, seconds)),
    ...numbersOf('idle/', circumstances.idle ?? {}),
    figure('idle/waited-for-oldest', circumstances.waitedForOldest ?? null),
  ];
  return Object.fromEntries(
    figures.filter(([, value]) => value !== null && Number.isFinite(value)),
  ) as Figures;
}

/** Tokens that a step has sampled to learn from: baselines, corrections and judgements are among them, evaluations are not. */
export const sampledToLearn = ({ rollout }: Pick<StepFacts, 'rollout'>): number =>
  (rollout?.sampledTokens ?? 0) + (rollout?.otherTokens ?? 0) + (rollout ? judgeTokens(rollout) : 0);

/** Tokens that were sampled to learn from, and those of them that something was learnt from. */
export interface TrainedTokens {
  sampled: number;
  taught: number;
}

/** Of a step; null where nothing was sampled, or nobody counted. */
export function trainedTokensOf({
  rollout,
  batch,
}: Pick<StepFacts, 'rollout' | 'batch'>): TrainedTokens | null {
  // A step that learns nothing has taught nothing; an older one has not counted it.
  const taught = batch === null ? 0 : batch.taughtTokens;
  return rollout === null || taught === undefined ? null : { sampled: sampledToLearn({ rollout }), taught };
}

export const addTokens = (a: TrainedTokens | null, b: TrainedTokens | null): TrainedTokens | null =>
  a && b ? { sampled: a.sampled + b.sampled, taught: a.taught + b.taught } : (a ?? b);

export const trainedShare = (tokens: TrainedTokens | null): number | null =>
  tokens && share(tokens.taught, tokens.sampled);

/** Of the policy as its own judge; nothing of reward models. */
function ofJudge({ judged, compared, judge }: ModelCounts): [string, number | null][] {
  if (!judge) return [];
  return [
    figure('judge/correlation', correlationOf(compared, judge)),
    figure('judge/unjudged', share(judge.unjudged, judged + judge.unjudged)),
    figure('judge/too-long', share(judge.tooLong, judged + judge.unjudged)),
    figure('judge/readable', share(judge.readable, judge.samples)),
    figure('judge/tokens', judge.tokens),
  ];
}

function ofRollout(rollout: RolloutFacts, batch: BatchFacts | null): [string, number | null][] {
  const { episodes, turns, rewardGroups, answers, outcomes } = rollout;
  const reached = Object.values(rollout.calls).reduce((sum, count) => sum + count, 0);
  const calls = reached + rollout.unknownTools;
  const every = Object.values(outcomes).reduce((sum, count) => sum + count, 0);
  return [
    figure('reward/mean', share(rollout.rewardSum, rollout.rewardCount)),
    // Groups of a tree are its rounds, and what is compared is the tree.
    ...(batch?.trees === undefined
      ? [
          figure('reward/deviation-in-groups', share(rollout.rewardDeviation, rewardGroups)),
          figure('reward/variance-in-groups', share(rollout.rewardVariance, rewardGroups)),
        ]
      : []),
    figure('reward/equal-groups', equalGroups({ rollout, batch })),
    ...Object.entries(rollout.components).flatMap(([verifier, { scored, score, contribution, model }]) => [
      ...(model
        ? [
            figure('reward-model/score', share(model.score, model.judged)),
            figure('reward-model/uncertainty', share(model.uncertainty, model.judged)),
            // By how much it gives more than the verifier that it stands for, and how far off it is.
            figure('reward-model/excess', share(model.excess, model.compared)),
            figure('reward-model/squared-error', share(model.squaredError, model.compared)),
            ...ofJudge(model),
          ]
        : []),
      figure(`score/${verifier}`, share(score, scored)),
      // Of those that have a reward, as the sum is, whether or not the cut off ones among them are trained on.
      figure(`contribution/${verifier}`, share(contribution, rewardedCount(outcomes))),
    ]),
    ...ofSuccess('train', rollout.arms),
    figure('success/hinted', rollout.hinted ? share(rollout.hinted.successes, rollout.hinted.trials) : null),
    figure('policy/entropy', share(-rollout.sampledLogprob, rollout.sampledTokens)),
    ...ofStaleness(rollout),
    ...ofRoles(rollout),
    ...ofFailures(rollout),
    figure('episodes/count', episodes || null),
    figure('episodes/sampled-tokens', sampledToLearn({ rollout }) || null),
    // Of stored episodes nothing was sampled here.
    figure('episodes/tokens', rollout.sampledTokens === 0 ? null : share(rollout.sampledTokens, episodes)),
    figure('episodes/longest', episodes === 0 ? null : rollout.longest),
    figure('episodes/turns', share(turns, episodes)),
    figure('episodes/truncated', share(rollout.truncated, episodes)),
    figure('episodes/observation-tokens', share(rollout.observationTokens, episodes)),
    ...Object.entries(outcomes).map(([kind, count]) => figure(`outcomes/${kind}`, share(count, every))),
    ...Object.entries(rollout.failures).map(([boundary, count]) =>
      figure(`failures/${boundary}`, share(count, every)),
    ),
    figure('calls/per-episode', share(calls, episodes)),
    ...Object.entries(rollout.calls).map(([tool, count]) => figure(`calls/of-${tool}`, share(count, calls))),
    figure('calls/malformed', share(rollout.malformedCalls, turns)),
    figure('calls/unknown-tool', share(rollout.unknownTools, calls)),
    figure('calls/invalid-arguments', share(rollout.invalidArguments, calls)),
    figure('calls/tool-error', share(rollout.toolErrors, calls)),
    figure('repetition/calls-in-episode', share(rollout.repeatedCalls, calls)),
    figure('repetition/calls-in-group', share(rollout.duplicateCalls, calls)),
    figure('repetition/four-grams', share(rollout.repeatedFourGrams, rollout.fourGrams)),
    figure('repetition/answers-in-group', share(rollout.duplicateAnswers, answers)),
    figure('repetition/episodes-in-group', share(rollout.duplicateEpisodes, episodes)),
  ];
}

/** How old the tokens were that a step trained on, in learner steps; nothing of a step that passed them over. */
function ofStaleness(rollout: RolloutFacts): [string, number | null][] {
  const { staleness, staleUpdates, givenUp } = rollout;
  if (staleness === undefined || givenUp) return [];
  const tokens = tokensByStaleness(rollout);
  const all = tokens.reduce((sum, count) => sum + count, 0);
  return [
    figure('staleness/mean', meanStaleness(rollout)),
    figure('staleness/most', staleness),
    figure('staleness/most-updates', staleUpdates ?? null),
    ...tokens.map((count, age) => figure(`staleness/share-of-${age}`, share(count, all))),
  ];
}

/** What the roles of a step of self-play came to. */
function ofRoles({ selfPlay }: RolloutFacts): [string, number | null][] {
  if (selfPlay === undefined) return [];
  const { proposer, solver, proposals, made, repeated, kinds, known, successes, trials, kept, labels } =
    selfPlay;
  return [
    figure('self-play/proposer-reward', share(proposer.rewardSum, proposer.rewardCount)),
    figure('self-play/solver-reward', share(solver.rewardSum, solver.rewardCount)),
    figure('self-play/valid', share(made + known, proposals)),
    figure('self-play/duplicates', share(repeated + known, proposals)),
    figure('self-play/kinds', kinds === undefined ? null : share(kinds, proposals)),
    figure('self-play/success-of-new-tasks', share(successes, trials)),
    figure('self-play/tasks', kept),
    ...(labels ? ofLabels(labels) : []),
  ];
}

/** How far the labels that a solver gave its own tasks can be trusted, and how many tasks it learnt from. */
const ofLabels = (labels: LabelFacts): [string, number | null][] => [
  figure('self-play/label-accuracy', share(labels.right, labels.checked)),
  figure('self-play/learnt-label-accuracy', share(labels.rightLearnt ?? 0, labels.checkedLearnt ?? 0)),
  figure('self-play/majority-share', share(labels.shareSum, labels.tasks - labels.tooFew)),
  figure('self-play/without-label', share(labels.tooFew + labels.undecided, labels.tasks)),
  figure('self-play/filtered', share(labels.tooHard + labels.tooEasy, labels.tasks)),
];

/** What a stage draws of that was made of failed tasks; the same in all of its steps. */
const ofFailures = ({ fromFailures }: RolloutFacts): [string, number | null][] =>
  fromFailures === undefined
    ? []
    : [
        figure('from-failures/variations', fromFailures.variations),
        figure('from-failures/kept', fromFailures.kept),
      ];

type Ages = Pick<RolloutFacts, 'staleness' | 'sampledByStaleness' | 'sampledTokens' | 'replayed'>;

/** Sampled and replayed tokens by learner steps, from 0; none where nothing is sampled ahead, or nobody counted. */
function tokensByStaleness({ staleness, sampledByStaleness, sampledTokens, replayed }: Ages): number[] {
  if (staleness === undefined) return [];
  // What is sampled beside groups that are replayed is fresh.
  if (replayed)
    return (replayed.tokensByStaleness ?? []).map((tokens, age) => (age === 0 ? sampledTokens : tokens));
  return sampledByStaleness ?? [...Array<number>(staleness).fill(0), sampledTokens];
}

/** Learner steps by which the weights that learn were ahead of those that sampled a token; null where nobody is. */
export function meanStaleness(rollout: Ages): number | null {
  const tokens = tokensByStaleness(rollout);
  return share(
    tokens.reduce((sum, count, age) => sum + age * count, 0),
    tokens.reduce((sum, count) => sum + count, 0),
  );
}

/** All numbers of an object, by the names that they have in code. */
const numbersOf = (before: string, measured: object): [string, number | null][] =>
  Object.entries(measured).flatMap(([name, value]: [string, unknown]) =>
    typeof value === 'number'
      ? [figure(`${before}${kebab(name)}`, value)]
      : typeof value === 'object' && value !== null && !Array.isArray(value)
        ? numbersOf(`${before}${kebab(name)}-`, value)
        : [],
  );

/** One figure a bin, by where it begins. */
const ofBins = (name: string, bins: readonly GapBin[] = []): [string, number | null][] =>
  bins.map(({ from, mean }) => figure(`${name}-${from}`, mean));

/** Of all, and of each arm where there are several. */
function ofSuccess(name: string, arms: readonly ArmTally[]): [string, number | null][] {
  if (arms.length === 0) return [];
  const one = (of: Proportion): number | null => (of.trials === 0 ? null : rate(of));
  return [
    figure(`success/${name}`, one(total(arms))),
    ...(arms.length === 1
      ? []
      : arms.map((tally) => figure(`success/${name}-${armName(tally.arm)}`, one(tally)))),
  ];
}

const figure = (name: string, value: number | null): [string, number | null] => [name, value];

/** Part of the groups whose rewards are all equal; of trees as they are when they have grown, where that is known. */
export const equalGroups = ({ rollout, batch }: Pick<StepFacts, 'rollout' | 'batch'>): number | null =>
  batch?.trees !== undefined
    ? share(batch.degenerateGroups, batch.trees)
    : rollout && share(rollout.equalRewards, rollout.rewardGroups);

const share = (part: number, whole: number): number | null => (whole === 0 ? null : part / whole);

const kebab = (name: string): string => name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
