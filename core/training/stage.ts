import { rate } from '../statistics/intervals.ts';
import { stopOrThrow } from '../question.ts';
import type { StepClimbed, StepReport, TrainingPorts } from '../ports.ts';
import type { CheckpointRef, TaskRef } from '../refs.ts';
import type { EvaluationResult, GroupResult, Span, TrainResult } from '../requests.ts';
import type { CurriculumSpec, RlStageSpec } from '../spec.ts';
import { sampledEntropy, shareOut, summarize } from './evaluation.ts';
import { HELD_OUT } from '../names.ts';
import { addIncidents, causesOf } from '../episode/incidents.ts';
import type { Incident } from '../episode/incidents.ts';
import { countsOf, rewardedCount } from '../episode/outcome.ts';
import { rollbackTarget, stageQuestion } from './stage-question.ts';
import { entropyCollapse, weighEvaluation, noHistory, total } from './stage-policy.ts';
import type { StageDecision, StageHistory } from './stage-policy.ts';
import { drawTasks, updateEstimates } from './task-draw.ts';
import { updateSeed } from './update-seed.ts';
import type { ArmEstimates } from './task-draw.ts';
import { splitTime } from '../time/time-split.ts';

export interface StageInput {
  spec: Pick<
    CurriculumSpec,
    'run' | 'seed' | 'lora' | 'learner' | 'sampling' | 'reward' | 'verification' | 'retention'
  >;
  stage: RlStageSpec;
  checkpoint: CheckpointRef;
  /** What the KL is measured against: what the first stage that is not supervised began with. */
  reference: CheckpointRef;
  /** Steps that the run did before this stage. */
  stepsBefore: number;
  /** Indexes of training tasks that earlier stages have for themselves. */
  tasksBefore: number;
}

/** Everything that a stage carries from step to step, compact enough for continue-as-new. */
export interface StageState {
  /** Steps done. */
  step: number;
  checkpoint: CheckpointRef;
  /** The next learner step starts with empty moments. */
  resetOptimizer: boolean;
  learningRateFactor: number;
  estimates: ArmEstimates;
  failures: TaskRef[];
  history: StageHistory;
}

export type StageEnd = 'graduated' | 'exhausted' | 'plateau' | 'stopped';

export interface StageResult {
  end: StageEnd;
  reason: string;
  checkpoint: CheckpointRef;
  /** Steps of the run, this stage included. */
  steps: number;
}

/** How many failed tasks wait to be tried again. */
const FAILURES_KEPT = 64;

export const initialStageState = (input: StageInput): StageState => ({
  step: 0,
  checkpoint: input.checkpoint,
  resetOptimizer: true,
  learningRateFactor: 1,
  estimates: {},
  failures: [],
  history: noHistory(),
});

/**
 * Trains one RL stage: draw tasks, roll out, learn, and every so often measure and decide. `gate` is passed before
 * each step and may wait, stop, or carry the state elsewhere (continue-as-new).
 */
export async function trainStage(
  ports: TrainingPorts,
  input: StageInput,
  from: StageState | null,
  gate: (state: StageState) => Promise<'go' | 'stop'>,
): Promise<StageResult> {
  let state = from ?? initialStageState(input);
  const end = (kind: StageEnd, reason: string, checkpoint = state.checkpoint): StageResult => ({
    end: kind,
    reason,
    checkpoint,
    steps: input.stepsBefore + state.step,
  });
  const bestOrLast = (): CheckpointRef => state.history.best?.checkpoint ?? state.checkpoint;

  while (state.step < input.stage.maxSteps) {
    if ((await gate(state)) === 'stop') return end('stopped', 'stopped by a person');
    const stepped = await stageStep(ports, input, state).catch(stopOrThrow);
    if (stepped === 'stop') return end('stopped', 'stopped by a person in the middle of a step');
    const { decision, report } = stepped;
    state = stepped.state;
    const { best } = state.history;
    const rollbacksLeft = state.history.rollbacks < input.stage.collapse.maxRollbacks;
    await ports.report({
      ...report,
      note: decision.kind === 'continue' ? null : `${decision.kind}: ${decision.reason}`,
    });
    if (report.heldOut !== null) {
      await ports.retain({
        run: input.spec.run,
        retention: input.spec.retention,
        // What a roll-back goes to stays, measured or not.
        pinned: [input.reference, state.checkpoint, best?.checkpoint ?? input.checkpoint],
        scores: best === null ? [] : [{ checkpoint: best.checkpoint, score: best.success }],
      });
    }

    switch (decision.kind) {
      case 'continue':
        break;
      case 'graduate':
        return end('graduated', decision.reason);
      case 'plateau':
      case 'collapse': {
        const asked =
          decision.action === 'ask' || (decision.action === 'rollback' && !rollbacksLeft)
            ? await ports.ask(stageQuestion(input, state, decision.reason))
            : decision.action;
        if (asked === 'stop') return end('stopped', decision.reason, bestOrLast());
        if (asked === 'advance') return end('plateau', decision.reason, bestOrLast());
        if (asked === 'rollback') state = rollBack(input, state);
        else state = { ...state, history: { ...state.history, recent: [] } };
        break;
      }
    }
  }
  return end('exhausted', `${input.stage.maxSteps} steps are done`, bestOrLast());
}

/** Back to the best measured checkpoint, more carefully: cold moments and a smaller learning rate. */
export function rollBack(input: StageInput, state: StageState): StageState {
  return {
    ...state,
    checkpoint: rollbackTarget(input, state),
    resetOptimizer: true,
    learningRateFactor: state.learningRateFactor * input.stage.collapse.learningRateFactor,
    history: { ...state.history, recent: [], rollbacks: state.history.rollbacks + 1 },
  };
}

const askAbout = (reason: string): StageDecision => ({ kind: 'collapse', action: 'ask', reason });

async function stageStep(
  ports: TrainingPorts,
  input: StageInput,
  state: StageState,
): Promise<{ decision: StageDecision; state: StageState; report: StepReport }> {
  const { run, seed, sampling, reward } = input.spec;
  const { stage } = input;
  const start = ports.now();
  const stageStep = state.step + 1;
  const runStep = input.stepsBefore + stageStep;

  const drawn = drawTasks({
    seed,
    stage: stage.name,
    step: stageStep,
    arms: stage.arms,
    count: stage.groupsPerStep,
    tasksBefore: input.tasksBefore,
    estimates: state.estimates,
    failures: state.failures,
    retryFailures: stage.retryFailures,
  });
  const rolledOut = await ports.rollout(
    shareOut(
      drawn.tasks,
      stage.groupsPerWorkflow,
      {
        run,
        seed,
        stage: stage.name,
        step: stageStep,
        samples: stage.numGenerations,
        checkpoint: state.checkpoint,
        sampling,
        reward,
      },
      drawn.retries,
    ),
  );
  const climbed = input.spec.verification ? await climb(ports, input, stageStep, rolledOut) : null;
  const groups = climbed?.groups ?? rolledOut;
  const summary = summarize(groups);
  summary.incidents = addIncidents(climbed?.incidents ?? [], summary.incidents);
  const spans: Span[] = [...rolledOut.flatMap((group) => group.spans), ...(climbed?.spans ?? [])];
  const whole = groups.flatMap((group) => (group.trajectories === null ? [] : [group.trajectories]));
  const offered = climbed?.offered ?? [];
  const estimates = updateEstimates(state.estimates, summary.arms, {
    moves: climbed?.moves ?? [],
    stage: stage.name,
    step: stageStep,
  });
  if (rewardedCount(summary.outcomes) === 0 && offered.length === 0) {
    // An agent that cannot act must not give silent empty steps: a person decides, and nothing is lost.
    const what =
      whole.length === 0
        ? `every rollout group of step ${stageStep} failed: ${summary.failures[0] ?? 'no reason given'}`
        : `no episode of step ${stageStep} could be judged: ${countsOf(summary.outcomes)}${causesOf(summary.incidents)}`;
    return {
      decision: askAbout(what),
      state: { ...state, step: stageStep, estimates },
      report: reportOf(null, null, 0),
    };
  }

  const batch = await ports.batch({
    run,
    stage: stage.name,
    step: stageStep,
    groups: [...whole, ...offered],
    algorithm: stage.algorithm,
    plan: { movesAll: stage.plan.movesAll },
    reward,
    updates: {
      minibatch: stage.plan.minibatch,
      epochs: stage.plan.epochs,
      seed: updateSeed(seed, stage.name, runStep),
    },
  });
  spans.push(...batch.spans);

  let trained: TrainResult | null = null;
  if (batch.batch !== null) {
    const { plan } = stage;
    trained = await ports.train({
      run,
      stage: stage.name,
      stageStep,
      step: runStep,
      parent: state.checkpoint,
      batch: batch.batch,
      objective: plan.objective,
      optimizer: {
        ...stage.optimizer,
        learningRate: stage.optimizer.learningRate * state.learningRateFactor,
      },
      resetOptimizer: state.resetOptimizer,
      seed,
      reference: plan.reference ? input.reference : null,
      lora: input.spec.lora,
      compute: input.spec.learner,
    });
    spans.push(...trained.spans);
  }
  const checkpoint = trained?.checkpoint ?? state.checkpoint;

  let evaluation: EvaluationResult | null = null;
  let history = state.history;
  // Of all that was sampled: where no group has variance, as when all have collapsed, the learner sees nothing.
  let decision: StageDecision = entropyCollapse(stage, sampledEntropy(summary));
  if (stageStep % stage.graduation.everySteps === 0 || stageStep === stage.maxSteps) {
    evaluation = await ports.evaluate({
      run,
      seed,
      name: `${stage.name}${HELD_OUT}`,
      step: stageStep,
      checkpoint,
      arms: stage.arms,
      tasks: stage.graduation.tasks,
      split: 'heldout',
      sampling,
      reward,
      ...(input.spec.verification && { verification: input.spec.verification }),
    });
    spans.push(...evaluation.spans);
    if (rewardedCount(evaluation.outcomes) === 0) {
      decision = askAbout(
        `no held-out episode of step ${stageStep} could be judged: ${countsOf(evaluation.outcomes)}${causesOf(evaluation.incidents ?? [])}`,
      );
    } else {
      const judged = weighEvaluation(stage, history, { arms: evaluation.arms, checkpoint, step: stageStep });
      // A policy that no longer explores is nothing to come back to, however well it does, unless it is done.
      if (decision.kind === 'continue' || judged.decision.kind === 'graduate') {
        ({ decision, history } = judged);
      }
    }
  }

  return {
    decision,
    state: {
      step: stageStep,
      checkpoint,
      resetOptimizer: trained === null ? state.resetOptimizer : false,
      learningRateFactor: state.learningRateFactor,
      estimates,
      failures: [...drawn.failures, ...summary.failedTasks].slice(-FAILURES_KEPT),
      history,
    },
    report: reportOf(trained, evaluation, batch.degenerateGroups),
  };

  function reportOf(
    trained: TrainResult | null,
    evaluation: EvaluationResult | null,
    degenerateGroups: number,
  ): StepReport {
    return {
      stage: stage.name,
      stageStep,
      maxSteps: stage.maxSteps,
      step: runStep,
      environment: [...new Set(stage.arms.map((arm) => arm.environment))].join(','),
      checkpoint: trained?.checkpoint ?? state.checkpoint,
      meanReward: summary.rewardCount === 0 ? null : summary.rewardSum / summary.rewardCount,
      trainSuccess: summary.arms.length === 0 ? null : rate(total(summary.arms)),
      heldOut: evaluation === null ? null : { arms: evaluation.arms, step: stageStep },
      metrics: trained?.metrics ?? null,
      backend: trained?.backend ?? null,
      outcomes: summary.outcomes,
      estimates,
      degenerateGroups,
      sampledTokens: summary.sampledTokens,
      entropy: sampledEntropy(summary),
      turns: summary.turns,
      seconds: splitTime(start, ports.now(), spans),
      incidents: addIncidents(summary.incidents, evaluation?.incidents ?? []),
      note: null,
    };
  }
}

/** Groups that failed as a whole have nothing to climb with. `incidents` are of the rollout of those that climb. */
async function climb(
  ports: TrainingPorts,
  { spec, stage }: StageInput,
  step: number,
  groups: readonly GroupResult[],
): Promise<StepClimbed & { incidents: Incident[] }> {
  const rolledOut = groups.filter(({ trajectories }) => trajectories !== null);
  const failed = groups.filter(({ trajectories }) => trajectories === null);
  const climbed = await ports.climb({
    stage: stage.name,
    step,
    groups: rolledOut.map(({ trajectories }) => trajectories!),
    budgets: stage.budgets ?? {},
    reward: spec.reward,
  });
  const { incidents } = summarize(rolledOut);
  return { ...climbed, groups: [...climbed.groups, ...failed], incidents };
}
