import { causesOf } from '../episode/incidents.ts';
import { countsOf, rewardedCount, noOutcomes } from '../episode/outcome.ts';
import type { TrainingPorts } from '../ports.ts';
import { STOP, stopOrThrow } from '../question.ts';
import type { Question } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import type { CurriculumSpec, WarmStartSpec } from '../spec.ts';
import { warmStartGraduates } from './stage-policy.ts';
import { splitTime } from '../time/time-split.ts';
import { updateSeed } from './update-seed.ts';

export interface WarmStartInput {
  spec: Pick<CurriculumSpec, 'run' | 'seed' | 'lora' | 'learner' | 'sampling' | 'reward' | 'retention'> & {
    warmStart: WarmStartSpec;
  };
  checkpoint: CheckpointRef;
}

export interface WarmStartState {
  /** Rounds done. */
  round: number;
  /** Rounds that it may take: as many as the spec says, and as many again each time that a person gives it more. */
  maxRounds: number;
  checkpoint: CheckpointRef;
}

export interface WarmStartResult {
  checkpoint: CheckpointRef;
  /** RL may begin: every level succeeds often enough, or a person let it go on without. */
  ready: boolean;
  rounds: number;
}

export const WARM_START = 'warm-start';

/**
 * Supervised rounds on freshly generated demonstrations until every arm succeeds now and then; where its rounds do not
 * suffice a person is asked. `gate` is passed before each round and may wait, stop, or carry the state elsewhere.
 */
export async function warmStart(
  ports: TrainingPorts,
  input: WarmStartInput,
  from: WarmStartState | null,
  gate: (state: WarmStartState) => Promise<'go' | 'stop'>,
): Promise<WarmStartResult> {
  const { run, seed, sampling, reward, warmStart: spec } = input.spec;
  let state: WarmStartState = from ?? {
    round: 0,
    maxRounds: spec.maxRounds,
    checkpoint: input.checkpoint,
  };
  const ended = (ready: boolean): WarmStartResult => ({
    checkpoint: state.checkpoint,
    ready,
    rounds: state.round,
  });

  for (;;) {
    if ((await gate(state)) === 'stop') return ended(false);
    const start = ports.now();
    const round = state.round + 1;
    const done = await trainAndMeasure(round).catch(stopOrThrow);
    if (done === 'stop') return ended(false);
    const { demonstrations, trained, evaluation } = done;
    state = { ...state, round, checkpoint: trained.checkpoint };
    const graduated = warmStartGraduates(spec, evaluation.arms);
    const unjudged = rewardedCount(evaluation.outcomes) === 0;
    await ports.report({
      stage: WARM_START,
      stageStep: round,
      maxSteps: state.maxRounds,
      step: round,
      // Not those of the evaluation: it has none when nothing could be judged.
      environment: [...new Set(spec.arms.map((arm) => arm.environment))].join(','),
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
      entropy: null,
      turns: 0,
      seconds: splitTime(start, ports.now(), [
        ...demonstrations.spans,
        ...trained.spans,
        ...evaluation.spans,
      ]),
      incidents: evaluation.incidents ?? [],
      note: graduated
        ? `every level succeeds at least ${percent(spec.graduation.successAtLeast)} of the time`
        : null,
    });
    await ports.retain({ run, retention: input.spec.retention, pinned: [state.checkpoint], scores: [] });
    if (graduated) return ended(true);
    const rounds = round < state.maxRounds ? 'left' : 'used up';
    if (!unjudged && rounds === 'left') continue;
    const reason = unjudged
      ? `no held-out episode of round ${round} could be judged: ${countsOf(evaluation.outcomes)}${causesOf(evaluation.incidents ?? [])}`
      : `the warm start did not graduate in ${round} rounds: not every level succeeds ${percent(spec.graduation.successAtLeast)} of the time`;
    const answer = await ports.ask(question(reason, rounds, spec));
    if (answer === 'stop') return ended(false);
    if (answer === 'advance') return ended(true);
    if (answer === 'more-rounds') state = { ...state, maxRounds: state.maxRounds + spec.maxRounds };
  }

  async function trainAndMeasure(round: number) {
    const demonstrations = await ports.demonstrations({
      run,
      seed,
      stage: WARM_START,
      round,
      arms: spec.arms,
      count: spec.updatesPerRound * spec.minibatch,
      updates: { minibatch: spec.minibatch, epochs: 1, seed: updateSeed(seed, WARM_START, round) },
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
    return { demonstrations, trained, evaluation };
  }
}

type WarmStartAnswer = 'continue' | 'more-rounds' | 'advance' | 'stop';

function question(
  reason: string,
  rounds: 'left' | 'used up',
  { maxRounds }: WarmStartSpec,
): Question<WarmStartAnswer> {
  return {
    reason,
    answers: [
      rounds === 'left'
        ? { answer: 'continue', effect: 'do the next round' }
        : { answer: 'more-rounds', effect: `give the warm start ${maxRounds} more round(s)` },
      { answer: 'advance', effect: 'go on to RL with the model as it is' },
      STOP,
    ],
  };
}

const percent = (part: number): string => `${(100 * part).toFixed(1)} %`;
