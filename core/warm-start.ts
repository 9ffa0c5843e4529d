import { countsOf, noOutcomes } from './outcome.ts';
import type { TrainingPorts } from './ports.ts';
import type { CheckpointRef } from './refs.ts';
import type { ArmTally } from './requests.ts';
import type { CurriculumSpec, WarmStartSpec } from './spec.ts';
import { total, warmStartGraduates } from './stage-policy.ts';
import { splitTime } from './time-split.ts';

export interface WarmStartInput {
  spec: Pick<CurriculumSpec, 'run' | 'seed' | 'lora' | 'learner' | 'sampling' | 'reward' | 'retention'> & {
    warmStart: WarmStartSpec;
  };
  checkpoint: CheckpointRef;
}

export interface WarmStartState {
  /** Rounds done. */
  round: number;
  checkpoint: CheckpointRef;
}

export interface WarmStartResult {
  checkpoint: CheckpointRef;
  graduated: boolean;
  stopped: boolean;
  rounds: number;
}

export const WARM_START = 'warm-start';

/**
 * Supervised rounds on freshly generated demonstrations until every arm succeeds now and then. `gate` is passed
 * before each round and may wait, stop, or carry the state elsewhere.
 */
export async function warmStart(
  ports: TrainingPorts,
  input: WarmStartInput,
  from: WarmStartState | null,
  gate: (state: WarmStartState) => Promise<'go' | 'stop'>,
): Promise<WarmStartResult> {
  const { run, seed, sampling, reward, warmStart: spec } = input.spec;
  let state: WarmStartState = from ?? { round: 0, checkpoint: input.checkpoint };
  const ended = (graduated: boolean, stopped: boolean): WarmStartResult => ({
    checkpoint: state.checkpoint,
    graduated,
    stopped,
    rounds: state.round,
  });

  while (state.round < spec.maxRounds) {
    if ((await gate(state)) === 'stop') return ended(false, true);
    const start = ports.now();
    const round = state.round + 1;
    const demonstrations = await ports.demonstrations({
      run,
      seed,
      stage: WARM_START,
      round,
      arms: spec.arms,
      count: spec.updatesPerRound * spec.minibatch,
      checkpoint: state.checkpoint,
    });
    if (demonstrations.batch === null) throw new Error('an environment gave no demonstrations');
    const trained = await ports.train({
      run,
      stage: WARM_START,
      stageStep: round,
      step: round,
      parent: state.checkpoint,
      batch: demonstrations.batch,
      objective: { kind: 'supervised' },
      optimizer: spec.optimizer,
      resetOptimizer: round === 1,
      minibatch: spec.minibatch,
      epochs: 1,
      seed,
      reference: null,
      lora: input.spec.lora,
      compute: input.spec.learner,
    });
    const evaluation = await ports.evaluate({
      run,
      seed,
      name: WARM_START,
      step: round,
      checkpoint: trained.checkpoint,
      arms: spec.arms,
      tasks: spec.graduation.tasksPerArm * spec.arms.length,
      split: 'heldout',
      sampling,
      reward,
    });
    state = { round, checkpoint: trained.checkpoint };
    const graduated = warmStartGraduates(spec, evaluation.arms);
    const unjudged = total(evaluation.arms).trials === 0;
    await ports.report({
      stage: WARM_START,
      stageStep: round,
      maxSteps: spec.maxRounds,
      step: round,
      environment: environmentsOf(evaluation.arms),
      checkpoint: state.checkpoint,
      meanReward: evaluation.meanReward,
      trainSuccess: null,
      heldOut: { arms: evaluation.arms, step: round },
      metrics: trained.metrics,
      backend: trained.backend,
      outcomes: noOutcomes(),
      estimates: {},
      degenerateGroups: 0,
      sampledTokens: evaluation.sampledTokens,
      turns: 0,
      seconds: splitTime(start, ports.now(), [
        ...demonstrations.spans,
        ...trained.spans,
        ...evaluation.spans,
      ]),
      note: graduated
        ? `every level succeeds at least ${100 * spec.graduation.successAtLeast} % of the time`
        : null,
    });
    await ports.retain({ run, retention: input.spec.retention, pinned: [state.checkpoint], scores: [] });
    if (graduated) return ended(true, false);
    if (unjudged) {
      const decision = await ports.ask(
        `no held-out episode of round ${round} could be judged: ${countsOf(evaluation.outcomes)}`,
      );
      if (decision === 'stop') return ended(false, true);
    }
  }
  return ended(false, false);
}

const environmentsOf = (tallies: readonly ArmTally[]): string =>
  [...new Set(tallies.map((tally) => tally.arm.environment))].join(',');
