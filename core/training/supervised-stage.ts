import { percent } from '../percent.ts';
import { causesOf } from '../episode/incidents.ts';
import { countsOf, rewardedCount } from '../episode/outcome.ts';
import type { TrainingPorts } from '../ports.ts';
import { STOP, stopOrThrow } from '../question.ts';
import type { Question } from '../question.ts';
import type { CheckpointRef } from '../refs.ts';
import type { Synthesized } from '../requests/demonstrations.ts';
import type { EvaluationResult } from '../requests/evaluation.ts';
import type { CurriculumSpec } from '../schema/curriculum-spec.ts';
import type { SupervisedStageSpec } from '../schema/stages/supervised.ts';
import { criteriaOf, criterionInWords } from './enough.ts';
import type { Criterion } from './enough.ts';
import { batchFacts, heldOutFacts, learnerFacts } from './facts-of.ts';
import { everyArmSucceeds } from './stage-policy.ts';
import type { StageEnd, StageResult } from './stage.ts';
import type { DecisionFacts } from './step-facts.ts';
import { splitTime } from '../time/time-split.ts';
import { updateSeed } from './update-seed.ts';

export interface SupervisedInput {
  spec: Pick<
    CurriculumSpec,
    'run' | 'seed' | 'lora' | 'learner' | 'policy' | 'agent' | 'sampling' | 'reward' | 'retention'
  >;
  stage: SupervisedStageSpec;
  checkpoint: CheckpointRef;
  /** What later stages measure the KL against, where that is decided already. */
  reference: CheckpointRef | null;
  /** Steps that the run did before this stage. */
  stepsBefore: number;
  /** Models of earlier reward stages, which later ones may be judged by; absent where there are none. */
  rewardModels?: CheckpointRef[];
  /** Policies of earlier stages that this one or later ones name; absent where there are none. */
  policies?: CheckpointRef[];
  /** What earlier stages have shown: no demonstration is shown in two stages. */
  shownBefore: Shown;
}

/** Rounds of demonstrations, and the tasks that they were of. */
export interface Shown {
  rounds: number;
  tasks: number;
}

export interface SupervisedState {
  /** Rounds done. */
  round: number;
  /** Rounds that it may take: as many as the spec says, and as many again each time that a person gives it more. */
  maxRounds: number;
  checkpoint: CheckpointRef;
  /** The data that it has made, where it makes its own. */
  made?: Synthesized;
  /** Losses of the latest rounds, oldest first, where the stage asks whether it is enough. */
  losses?: number[];
}

/** Of a round: each is of a task of its own. */
export const demonstrationsOf = ({
  updatesPerRound,
  minibatch,
}: Pick<SupervisedStageSpec, 'updatesPerRound' | 'minibatch'>): number => updatesPerRound * minibatch;

/** The two of a preference; of `kto` each with its completion behind another prompt. */
const sequencesOfExample = ({ objective }: Pick<SupervisedStageSpec, 'objective'>): number =>
  objective ? 2 : 1;

/**
 * Supervised rounds on freshly generated demonstrations until every arm succeeds now and then; where its rounds do not
 * suffice a person is asked. `gate` is passed before each round and may wait, stop, or carry the state elsewhere.
 */
export async function superviseStage(
  ports: TrainingPorts,
  input: SupervisedInput,
  from: SupervisedState | null,
  gate: (state: SupervisedState) => Promise<'go' | 'stop'>,
): Promise<StageResult> {
  const { stage, reference } = input;
  const { run, seed, policy, agent, sampling, reward, retention } = input.spec;
  let state: SupervisedState = from ?? {
    round: 0,
    maxRounds: stage.maxRounds,
    checkpoint: input.checkpoint,
  };
  const end = (kind: StageEnd, reason: string): StageResult => ({
    end: kind,
    reason,
    checkpoint: state.checkpoint,
    steps: input.stepsBefore + state.round,
  });

  for (;;) {
    if ((await gate(state)) === 'stop') return end('stopped', 'stopped by a person');
    const start = ports.now();
    const round = state.round + 1;
    const done = await makeTrainAndMeasure(round).catch(stopOrThrow);
    if (done === 'stop') return end('stopped', 'stopped by a person in the middle of a round');
    const { synthesized, demonstrations, trained, evaluation } = done;
    const { enough } = stage.graduation;
    const { loss } = trained.metrics;
    const losses = [...(state.losses ?? []), ...(loss === null ? [] : [loss])].slice(-(enough?.rounds ?? 0));
    state = { ...state, round, checkpoint: trained.checkpoint, ...(enough && { losses }) };
    const criteria = enough && criteriaOf(enough, losses, evaluation);
    const decision = decide(round, evaluation, criteria ?? []);
    const endedAt = ports.now();
    await ports.report({
      stage: stage.name,
      stageStep: round,
      maxSteps: state.maxRounds,
      step: input.stepsBefore + round,
      // Not those of the evaluation: it has none when nothing could be judged.
      environment: [...new Set(stage.arms.map((arm) => arm.environment))].join(','),
      checkpoint: state.checkpoint,
      rollout: null,
      batch: batchFacts(demonstrations),
      heldOut: heldOutFacts(evaluation),
      ...(criteria && { criteria }),
      ...(state.made && { synthesis: state.made.facts }),
      estimates: {},
      adjusted: null,
      alarms: [],
      decision,
      ...learnerFacts(trained, {
        endedAt,
        seconds: splitTime(start, endedAt, [
          ...(synthesized?.spans ?? []),
          ...demonstrations.spans,
          ...trained.spans,
          ...evaluation.spans,
        ]),
        incidents: [...(synthesized?.incidents ?? []), ...(evaluation.incidents ?? [])],
      }),
    });
    const pinned = [
      state.checkpoint,
      ...(reference === null ? [] : [reference]),
      // What preferences are held to.
      ...(stage.objective ? [input.checkpoint] : []),
      ...(input.rewardModels ?? []),
      ...(input.policies ?? []),
    ];
    await ports.retain({ run, retention, pinned, scores: [] });
    const { kind, question } = decision;
    const reason = decision.reason ?? '';
    if (kind === 'graduate') return end('graduated', reason);
    if (question === null) continue;
    const answer = await ports.ask(question, { stage: stage.name, stageStep: round });
    if (answer === 'stop') return end('stopped', reason);
    if (answer === 'advance') return end('exhausted', reason);
    if (answer === 'more-rounds') state = { ...state, maxRounds: state.maxRounds + stage.maxRounds };
  }

  /** What follows from a round: the next stage, another round, or a question. */
  function decide(
    round: number,
    { arms, outcomes, incidents }: EvaluationResult,
    criteria: readonly Criterion[],
  ): DecisionFacts & { question: Question<SupervisedAnswer> | null } {
    const least = percent(stage.graduation.successAtLeast);
    const without = { action: null, question: null };
    const succeeds = everyArmSucceeds(stage, arms);
    if (succeeds && criteria.every(({ met }) => met)) {
      const reason = [
        `every level succeeds at least ${least} of the time`,
        ...criteria.map(criterionInWords),
      ];
      return { kind: 'graduate', reason: reason.join('; '), ...without };
    }
    const unjudged = rewardedCount(outcomes) === 0;
    const rounds = round < state.maxRounds ? 'left' : 'used up';
    if (!unjudged && rounds === 'left') return { kind: 'continue', reason: null, ...without };
    const missed = [
      ...(succeeds ? [] : [`not every level succeeds ${least} of the time`]),
      ...criteria.filter(({ met }) => !met).map(criterionInWords),
    ].join('; ');
    const reason = unjudged
      ? `no held-out episode of round ${round} could be judged: ${countsOf(outcomes)}${causesOf(incidents ?? [])}`
      : `${stage.name} did not graduate in ${round} round${round === 1 ? '' : 's'}: ${missed}`;
    return { kind: 'stuck', reason, action: 'ask', question: questionOf(reason, rounds, stage) };
  }

  /** Makes the data of the stage before its first round, where the stage makes its own. */
  async function makeTrainAndMeasure(round: number) {
    const { synthesis: how } = stage;
    if (!how || state.made) return { ...(await trainAndMeasure(round)), synthesized: null };
    const synthesized = await ports.synthesize({
      run,
      seed,
      stage: stage.name,
      arms: stage.arms,
      how,
      checkpoint: state.checkpoint,
      reward,
      limits: sampling,
    });
    const { data, facts } = synthesized;
    state = { ...state, made: { data, facts } };
    return { synthesized, ...(await trainAndMeasure(round)) };
  }

  async function trainAndMeasure(round: number) {
    const demonstrations = await ports.demonstrations({
      run,
      seed,
      stage: stage.name,
      round,
      shownBefore: input.shownBefore,
      arms: stage.arms,
      count: demonstrationsOf(stage),
      ...(stage.data !== undefined &&
        stage.given && {
          given: {
            source: stage.data,
            ref: stage.given,
            ...(stage.objective && { prefers: stage.objective.kind }),
          },
        }),
      ...(state.made && { given: { source: state.made.data.key, ref: state.made.data } }),
      limits: sampling,
      updates: {
        minibatch: stage.minibatch * sequencesOfExample(stage),
        epochs: 1,
        seed: updateSeed(seed, stage.name, input.stepsBefore + round),
      },
      checkpoint: state.checkpoint,
    });
    if (demonstrations.batch === null) throw new Error('an environment gave no demonstrations');
    const trained = await ports.train({
      run,
      stage: stage.name,
      stageStep: round,
      step: input.stepsBefore + round,
      parent: state.checkpoint,
      batch: demonstrations.batch,
      objective: stage.objective ?? { kind: 'supervised' },
      optimizer: stage.optimizer,
      resetOptimizer: round === 1,
      seed,
      reference: stage.objective ? input.checkpoint : null,
      lora: input.spec.lora,
      compute: input.spec.learner,
    });
    const evaluation = await ports.evaluate({
      run,
      seed,
      // Nothing else of the stage is rolled out, so its name is free.
      name: stage.name,
      step: round,
      checkpoint: trained.checkpoint,
      arms: stage.arms,
      tasks: stage.graduation.tasksPerLevel * stage.arms.length,
      ...(stage.graduation.enough && { samples: stage.graduation.enough.samples, distinct: true }),
      split: 'heldout',
      ...(policy && { policy }),
      ...(agent && { agent }),
      sampling,
      reward,
    });
    return { demonstrations, trained, evaluation };
  }
}

type SupervisedAnswer = 'continue' | 'more-rounds' | 'advance' | 'stop';

function questionOf(
  reason: string,
  rounds: 'left' | 'used up',
  { maxRounds }: SupervisedStageSpec,
): Question<SupervisedAnswer> {
  return {
    reason,
    answers: [
      rounds === 'left'
        ? { answer: 'continue', effect: 'do the next round' }
        : {
            answer: 'more-rounds',
            effect: `give the stage ${maxRounds} more round${maxRounds === 1 ? '' : 's'}`,
          },
      { answer: 'advance', effect: 'go on to the next stage with the model as it is' },
      STOP,
    ],
  };
}
