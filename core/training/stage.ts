import { collect } from './collect-rollouts.ts';
import { episodeSource } from './episode-source.ts';
import type { EpisodeSource } from './episode-source.ts';
import { FollowedToTheEnd } from './groups-in-flight.ts';
import type { CarriedGroups } from './groups-in-flight.ts';
import { notReplayed } from './replay-buffer.ts';
import type { CarriedReplay } from './replay-buffer.ts';
import type { CarriedStep } from './steps-begun.ts';
import { updatePolicy } from './update-policy.ts';
import type { PolicyUpdate } from './update-policy.ts';
import { askAbout, decideByEvaluation, isMeasured, measure } from './measure.ts';
import { stopOrThrow } from '../question.ts';
import { LogprobGapError } from '../ports.ts';
import type { TrainingPorts } from '../ports.ts';
import { asSpecified, mayGoBack } from '../diagnosis/act.ts';
import type { Adjusted } from '../diagnosis/act.ts';
import { rolledBack, undiagnosed } from '../diagnosis/diagnose.ts';
import type { Diagnosed } from '../diagnosis/diagnose.ts';
import { afterRollback, noneHealthy, placesOf } from '../diagnosis/healthy.ts';
import type { Healthy } from '../diagnosis/healthy.ts';
import { nothingChanged } from '../run-change.ts';
import type { CheckpointRef } from '../refs.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { Span } from '../requests/span.ts';
import type { ServedRewardModel } from '../reward/reward-model.ts';
import type { CurriculumSpec } from '../schema/curriculum-spec.ts';
import type { RlStageSpec } from '../schema/stages/rl.ts';
import { changedStage } from './changed-stage.ts';
import { sampledEntropy } from './evaluation.ts';
import { addIncidents, causesOf } from '../episode/incidents.ts';
import type { MovingMeans } from '../algorithms/moving-means.ts';
import { countsOf, rewardedCount } from '../episode/outcome.ts';
import { actOnAlarms } from './act-on-alarms.ts';
import { rollbackTarget, stageQuestion } from './stage-question.ts';
import { collapseDecision, noHistory } from './stage-policy.ts';
import type { StageDecision, StageHistory } from './stage-policy.ts';
import type { SharedError } from './shared-error.ts';
import { updateEstimates } from './task-draw.ts';
import type { ArmEstimates } from './task-draw.ts';
import { whyNothingLearnt } from './labels.ts';
import { varyFailures } from './from-failures.ts';
import type { VariedTasks } from './from-failures.ts';
import { leagueAfter } from './league.ts';
import type { LeagueRecord } from './league.ts';
import type { MadeTasks } from './task-source.ts';
import { waitAgain, withoutTasks } from './tasks-again.ts';
import type { WaitingTask } from './tasks-again.ts';
import { batchFacts, decisionFacts, heldOutFacts, learnerFacts, rolloutFacts } from './facts-of.ts';
import type { StepFacts } from './step-facts.ts';
import { splitTime } from '../time/time-split.ts';

export interface StageInput {
  spec: Pick<
    CurriculumSpec,
    | 'run'
    | 'seed'
    | 'checkpoints'
    | 'lora'
    | 'learner'
    | 'policy'
    | 'agent'
    | 'sampling'
    | 'reward'
    | 'verification'
    | 'retention'
  >;
  /** Judges what is sampled for training; absent: the reward's own verifiers do. */
  rewardModel?: ServedRewardModel;
  stage: RlStageSpec;
  checkpoint: CheckpointRef;
  /** One of them plays the other role of self-play in each step, and they stay as they are; absent: the policy plays both. */
  opponents?: readonly { stage: string; checkpoint: CheckpointRef }[];
  /** Policies of earlier stages that this one or later ones name; absent where there are none. */
  policies?: CheckpointRef[];
  /** What the KL is measured against: what the first stage that is not supervised began with. */
  reference: CheckpointRef;
  /** Steps that the run did before this stage. */
  stepsBefore: number;
  /** Indexes of training tasks that earlier stages have for themselves. */
  tasksBefore: number;
  /** Number of the newest change of the run that holds; absent where there is none. */
  change?: number;
  /** Tasks that the stage has made of failed ones; absent where it makes none, and before its first step. */
  varied?: VariedTasks;
}

/** Everything that a stage carries from step to step, compact enough for continue-as-new. */
export interface StageState {
  /** Steps done. */
  step: number;
  checkpoint: CheckpointRef;
  /** The next learner step starts with empty moments. */
  resetOptimizer: boolean;
  /** By what the stage differs from its spec, after roll-backs and alarms. */
  adjusted: Adjusted;
  diagnosed: Diagnosed;
  healthy: Healthy;
  estimates: ArmEstimates;
  failures: WaitingTask[];
  /** Rewards of its steps so far, where the method compares with them; absent before the first of them. */
  movingMeans?: MovingMeans;
  history: StageHistory;
  /** Steps that were begun before their turn, with the next one; absent where there is none. */
  begun?: CarriedStep[];
  /** Groups that an asynchronous stage has begun; absent where there are none. */
  inFlight?: CarriedGroups;
  /** Groups of earlier steps that may be trained once more; absent where a stage replays none. */
  replay?: CarriedReplay;
  /** Tasks that the policy has made, where the stage plays both roles. */
  selfPlay?: MadeTasks;
  /** How the policy fared against the opponents of its league; absent where the stage has none that it draws by that. */
  league?: LeagueRecord;
  /** Tasks that were made of failed ones, where the stage has such. */
  varied?: VariedTasks;
}

/** `no-success`: its steps are done, and nothing that it sampled or measured ever was a success. */
export type StageEnd = 'graduated' | 'exhausted' | 'no-success' | 'plateau' | 'stopped';

export interface StageResult {
  end: StageEnd;
  reason: string;
  checkpoint: CheckpointRef;
  /** Steps of the run, this stage included. */
  steps: number;
  /** Of a reward stage. */
  rewardModels?: CheckpointRef[];
}

export const initialStageState = (input: StageInput): StageState => ({
  step: 0,
  checkpoint: input.checkpoint,
  resetOptimizer: true,
  adjusted: asSpecified(),
  diagnosed: undiagnosed(),
  healthy: noneHealthy(),
  estimates: {},
  failures: [],
  history: noHistory(),
});

/**
 * Trains one RL stage: draw tasks, roll out, learn, and every so often measure and decide. `gate` is passed before
 * each step and may wait, stop, or carry the state elsewhere (continue-as-new): what `carried` gives it then, which waits
 * for the episodes of steps that were begun. What a person has changed by then holds for the whole step.
 */
export async function trainStage(
  ports: TrainingPorts,
  written: StageInput,
  from: StageState | null,
  gate: (state: StageState, carried: () => Promise<StageState>) => Promise<'go' | 'stop'>,
): Promise<StageResult> {
  const { begun, inFlight, replay, ...rest } = from ?? initialStageState(written);
  let state: StageState = rest;
  const source = episodeSource(ports, written, {
    ...(begun && { begun }),
    ...(inFlight && { inFlight }),
    ...(replay && { replay }),
  });
  const carried = async (): Promise<StageState> => ({ ...state, ...(await source.settled()) });
  const end = (kind: StageEnd, reason: string, checkpoint = state.checkpoint): StageResult => ({
    end: kind,
    reason,
    checkpoint,
    steps: written.stepsBefore + state.step,
  });
  const bestOrLast = (): CheckpointRef => state.history.best?.checkpoint ?? state.checkpoint;
  /** The stage as it is from the next step on. */
  const asChanged = (): StageInput => changedStage(written, ports.changed?.() ?? nothingChanged());

  while (state.step < asChanged().stage.maxSteps) {
    if ((await gate(state, carried).catch(stopOrThrow)) === 'stop')
      return end('stopped', 'stopped by a person');
    const input = asChanged();
    // It may have been cut short while it waited.
    if (state.step >= input.stage.maxSteps) break;
    const stepped = await stageStep(ports, input, state, source).catch(endedOrThrow);
    if (stepped instanceof FollowedToTheEnd) return end('stopped', stepped.message);
    if (stepped === 'stop') return end('stopped', 'stopped by a person in the middle of a step');
    const { decision, facts } = stepped;
    state = stepped.state;
    source.done(facts.learner?.updates ?? null);
    const { best } = state.history;
    const question = mustAsk(input, state, decision) ? stageQuestion(input, state, decision) : null;
    await ports.report({ ...facts, decision: decisionFacts(decision, question) });
    if (facts.heldOut !== null) {
      await ports.retain({
        run: input.spec.run,
        retention: input.spec.retention,
        // What a roll-back goes to stays, measured or not.
        pinned: [
          input.reference,
          state.checkpoint,
          ...source.checkpoints(),
          ...(input.rewardModel?.models ?? []),
          ...(input.policies ?? []),
          best?.checkpoint ?? input.checkpoint,
          ...(mayGoBack(input.stage.diagnosis) ? placesOf(state.healthy) : []),
        ],
        scores: best === null ? [] : [{ checkpoint: best.checkpoint, score: best.success }],
      });
    }

    switch (decision.kind) {
      case 'continue':
        break;
      case 'graduate':
        return end('graduated', decision.reason);
      case 'plateau':
      case 'collapse':
      case 'alarm': {
        const asked =
          question === null
            ? decision.action
            : await ports.ask(question, { stage: input.stage.name, stageStep: state.step });
        if (asked === 'stop') return end('stopped', decision.reason, bestOrLast());
        if (asked === 'advance') return end('plateau', decision.reason, bestOrLast());
        if (asked === 'rollback') {
          state = rollBack(input, state, decision.kind);
          source.rolledBack();
        } else state = { ...state, history: { ...state.history, recent: [] } };
        break;
      }
    }
  }
  const done = `${state.step} steps are done`;
  if (succeededOnce(state)) return end('exhausted', done, bestOrLast());
  const why = `${done} and no episode of them succeeded: what is never sampled is never reinforced. Begin with an easier level, with demonstrations or stored successes, or with a reward for parts`;
  return end('no-success', why, bestOrLast());
}

/** Estimates forget successes by halves, and never to nothing. */
const succeededOnce = ({ estimates, history }: StageState): boolean =>
  (history.best?.success ?? 0) > 0 || Object.values(estimates).some(({ successes }) => successes > 0);

/** Back to an earlier checkpoint, more carefully: cold moments and a smaller learning rate. */
function rollBack(input: StageInput, state: StageState, why: StageDecision['kind']): StageState {
  const { checkpoint } = rollbackTarget(input, state, why);
  const learningRateFactor = state.adjusted.learningRateFactor * input.stage.collapse.learningRateFactor;
  // Its rewards were those of the policy that is given up.
  const { movingMeans: _, ...rest } = state;
  return {
    ...rest,
    checkpoint,
    resetOptimizer: true,
    adjusted: { ...state.adjusted, learningRateFactor },
    diagnosed: rolledBack(state.diagnosed),
    healthy: afterRollback(state.healthy, checkpoint),
    history: { ...state.history, recent: [], rollbacks: state.history.rollbacks + 1 },
  };
}

/** A step that goes on says why its solver has learnt nothing. */
const toldWhy = (decision: StageDecision, why: string | null): StageDecision =>
  decision.kind === 'continue' && why !== null ? { ...decision, reason: why } : decision;

/** For `catch`: also where there is nothing more to follow. */
const endedOrThrow = (error: unknown): 'stop' | FollowedToTheEnd =>
  error instanceof FollowedToTheEnd ? error : stopOrThrow(error);

/** For `catch`: whatever else went wrong is thrown on. */
function gapOrThrow(error: unknown): LogprobGapError {
  if (error instanceof LogprobGapError) return error;
  throw error;
}

/** One step: collect what was begun, learn, measure, diagnose, decide. */
async function stageStep(
  ports: TrainingPorts,
  written: StageInput,
  before: StageState,
  source: Pick<EpisodeSource, 'next' | 'keep'>,
): Promise<{ decision: StageDecision; state: StageState; facts: Omit<StepFacts, 'decision'> }> {
  const { stage } = written;
  const start = ports.now();
  const stageStep = before.step + 1;

  const making =
    stage.fromFailures && !before.varied ? await varyFailures(ports, written, before) : undefined;
  const varied = making?.varied ?? before.varied;
  const input: StageInput = varied ? { ...written, varied } : written;
  const state: StageState = varied ? { ...before, varied } : before;

  const { gathered, ...begun } = await source.next(input, state);
  const { verification: _, ...unverified } = input.spec;
  const to = begun.givenUp ? { ...input, spec: unverified } : input;
  const collected = await collect(ports, to, stageStep, gathered);
  const { summary } = collected;
  const { moves, played } = collected;
  const left: Pick<StageState, 'selfPlay' | 'league'> = played
    ? { selfPlay: played.made, ...leagueAfter(stage, state, played.facts) }
    : {};
  const estimates = begun.givenUp
    ? state.estimates
    : updateEstimates(state.estimates, summary.arms, { moves, stage: stage.name, step: stageStep });
  if (begun.givenUp) return passOver();
  // Until an opponent has proposed a task there is nothing to solve.
  const waits = stage.selfPlay?.proposer && played?.made.source === null && played.facts.proposals > 0;
  const unlabelled = played?.facts.labels ? whyNothingLearnt(played.facts.labels) : null;
  const nothing =
    !waits && unlabelled === null && rewardedCount(summary.outcomes) === 0 && collected.offered.length === 0;
  if (nothing || collected.greedyFailure !== undefined) {
    // An agent that cannot act must not give silent empty steps: a person decides, and nothing is lost.
    const what = !nothing
      ? `every greedy sample of step ${stageStep} failed, which the others are compared with: ${collected.greedyFailure}`
      : collected.groups.length === 0
        ? `every rollout group of step ${stageStep} failed: ${summary.failures[0] ?? 'no reason given'}`
        : `no episode of step ${stageStep} could be judged: ${countsOf(summary.outcomes)}${causesOf(summary.incidents)}`;
    return {
      decision: askAbout(what),
      state: { ...state, step: stageStep, estimates, ...left },
      facts: { ...factsOf(null, null), alarms: [] },
    };
  }

  const toLearnFrom = {
    ...collected,
    sampledAs: begun.adjusted,
    ...(begun.stepsAhead && { stepsAhead: begun.stepsAhead }),
    ...(begun.replayed && { replayed: begun.replayed.groups }),
  };
  const updated = await updatePolicy(ports, input, state, toLearnFrom, stageStep).catch(gapOrThrow);
  if (updated instanceof LogprobGapError) {
    return {
      decision: askAbout(`step ${stageStep} was not trained: ${updated.message}`),
      state: { ...state, step: stageStep, estimates, ...left },
      facts: { ...factsOf(null, null), alarms: [] },
    };
  }
  source.keep?.(collected.groups, updated.batch.moving ?? []);
  const checkpoint = updated.trained?.checkpoint ?? state.checkpoint;
  const movingMeans = updated.batch.movingMeans ?? state.movingMeans;

  const evaluation = isMeasured(stage, stageStep) ? await measure(ports, input, checkpoint, stageStep) : null;
  // Of all that was sampled: where no group has variance, as when all have collapsed, the learner sees nothing.
  const unmeasured = { decision: collapseDecision(stage, sampledEntropy(summary)), history: state.history };
  const decided =
    evaluation === null
      ? unmeasured
      : decideByEvaluation(input, unmeasured, evaluation, { checkpoint, step: stageStep });
  const facts = factsOf(updated, evaluation, decided.history.error);
  const heeded = actOnAlarms(input, state, facts, decided);

  return {
    decision: toldWhy(heeded.decision, unlabelled),
    state: {
      step: stageStep,
      checkpoint,
      resetOptimizer: updated.trained === null ? state.resetOptimizer : false,
      ...heeded.state,
      estimates,
      ...left,
      ...(varied && { varied }),
      ...(movingMeans && { movingMeans }),
      // Made tasks are drawn from their source.
      failures: left.selfPlay
        ? []
        : waitAgain(
            {
              waiting: withoutTasks(state.failures, begun.again),
              again: begun.again,
              failed: summary.failedTasks,
              tried: summary.tried ?? [],
              step: stageStep,
            },
            stage.mostTries,
          ),
      history: decided.history,
    },
    facts: {
      ...facts,
      alarms: heeded.alarms,
      ...(heeded.standing.length > 0 && { standing: heeded.standing }),
    },
  };

  /** Counts what was sampled, and measures where it is time to: neither estimates nor alarms are about these weights. */
  async function passOver() {
    const { checkpoint, history } = state;
    const evaluation = isMeasured(stage, stageStep)
      ? await measure(ports, input, checkpoint, stageStep)
      : null;
    const before = { decision: { kind: 'continue' } as const, history };
    const decided =
      evaluation === null
        ? before
        : decideByEvaluation(input, before, evaluation, { checkpoint, step: stageStep });
    return {
      decision: decided.decision,
      state: { ...state, step: stageStep, history: decided.history },
      facts: { ...factsOf(null, evaluation, decided.history.error), alarms: [] },
    };
  }

  function factsOf(
    updated: PolicyUpdate | null,
    evaluation: EvaluationResult | null,
    error?: SharedError,
  ): Omit<StepFacts, 'decision' | 'alarms'> {
    const trained = updated?.trained ?? null;
    const spans = [
      ...(making?.spans ?? []),
      ...(begun.spans ?? []),
      ...collected.spans,
      ...(updated?.spans ?? []),
      ...(evaluation?.spans ?? []),
    ];
    const endedAt = ports.now();
    const secondsWithout = (some: readonly Span[]): number => splitTime(start, endedAt, some).orchestration;
    return {
      stage: stage.name,
      stageStep,
      maxSteps: stage.maxSteps,
      step: input.stepsBefore + stageStep,
      environment: [...new Set(stage.arms.map((arm) => arm.environment))].join(','),
      checkpoint: trained?.checkpoint ?? state.checkpoint,
      rollout: {
        ...rolloutFacts(summary, collected),
        ...(played && { selfPlay: played.facts }),
        ...(varied && { fromFailures: varied.facts }),
        ...begun.staleness,
        ...(begun.updatesBehind !== undefined && {
          staleUpdates: begun.updatesBehind + Math.max(0, (trained?.metrics.updates ?? 0) - 1),
        }),
        ...(begun.replayed &&
          (trained === null ? notReplayed(begun.replayed.facts) : { replayed: begun.replayed.facts })),
        ...(begun.givenUp && { givenUp: true as const }),
      },
      batch: batchFacts(updated?.batch ?? null),
      heldOut: heldOutFacts(evaluation, error),
      estimates,
      adjusted: state.adjusted,
      ...(state.movingMeans && { movingMeans: state.movingMeans }),
      ...(left.league && { league: left.league }),
      ...(input.change !== undefined && { change: input.change }),
      ...learnerFacts(trained, {
        endedAt,
        seconds: splitTime(start, endedAt, spans),
        incidents: addIncidents(
          addIncidents(making?.incidents ?? [], summary.incidents),
          evaluation?.incidents ?? [],
        ),
        ...(begun.waitedForOldest !== undefined && { waitedForOldest: begun.waitedForOldest }),
        ...(begun.underWay !== undefined && {
          idle: {
            rollout: secondsWithout([...begun.underWay(start), ...(evaluation?.spans ?? [])]),
            learner: secondsWithout(spans.filter(({ part }) => part === 'learner')),
          },
        }),
      }),
    };
  }
}

/** Whether a person is to say what follows: the rule says so, or there is no roll-back left. */
const mustAsk = (
  { stage }: StageInput,
  { history }: StageState,
  decision: StageDecision,
): decision is Extract<StageDecision, { action: unknown }> =>
  'action' in decision &&
  (decision.action === 'ask' ||
    (decision.action === 'rollback' && history.rollbacks >= stage.collapse.maxRollbacks));
