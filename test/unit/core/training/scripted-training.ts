import { diagnosisSchema } from '../../../../core/schema/stages/diagnosis.ts';
import { noOutcomes } from '../../../../core/episode/outcome.ts';
import { LogprobGapError } from '../../../../core/ports.ts';
import type {
  StepEscalation,
  EscalatedStep,
  StepPlace,
  StepReport,
  TrainingPorts,
} from '../../../../core/ports.ts';
import { refuseAnswer } from '../../../../core/question.ts';
import type { Decision, Question } from '../../../../core/question.ts';
import type { BlobRef, CheckpointRef } from '../../../../core/refs.ts';
import type {
  BatchRequest,
  ScoreRequest,
  ScoreResult,
  StoredRequest,
  StoredResult,
} from '../../../../core/requests/batch.ts';
import type {
  KeepReplayedRequest,
  KeepVersionRequest,
  MovingTask,
  ReplayRequest,
  TakenGroups,
  TakeRequest,
} from '../../../../core/requests/collect.ts';
import type {
  DemonstrationsRequest,
  SynthesizeRequest,
  SynthesizeResult,
} from '../../../../core/requests/demonstrations.ts';
import type { EvaluationRequest, EvaluationResult } from '../../../../core/requests/evaluation.ts';
import type {
  KeepVariationsRequest,
  KeptVariations,
  VariedFailures,
  VaryFailuresRequest,
} from '../../../../core/requests/from-failures.ts';
import type { TrainRequest, TrainResult } from '../../../../core/requests/learner.ts';
import type { GroupRequest } from '../../../../core/requests/rollout.ts';
import type { RetentionRequest } from '../../../../core/requests/run.ts';
import type {
  KeepProposalsRequest,
  KeptProposals,
  RewardedProposals,
  RewardProposalsRequest,
} from '../../../../core/requests/self-play.ts';
import type { Span } from '../../../../core/requests/span.ts';
import type { GroupResult, RelabelRequest, RelabelResult } from '../../../../core/requests/verification.ts';
import { noBehaviour } from '../../../../core/training/behaviour.ts';
import type { FailureFacts, StepFacts, SynthesisFacts } from '../../../../core/training/step-facts.ts';
import { reportOf } from '../../../../core/training/step-report.ts';
import type { StageInput } from '../../../../core/training/stage.ts';
import { algorithmWith } from '../../../support/algorithm.ts';
import type { RewardSpec } from '../../../../core/schema/reward.ts';
import type { SamplingSpec } from '../../../../core/schema/sampling.ts';
import type { RlStageSpec } from '../../../../core/schema/stages/rl.ts';
import type { Arm } from '../../../../core/schema/tasks.ts';

export const checkpoint = (name: string, step = 0): CheckpointRef => ({
  manifest: { key: `checkpoints/${name}`, sha256: name, bytes: 1 },
  weights: name,
  step,
});

export const arm = (level: number): Arm => ({ environment: 'calculator', level });

/** What a group brings whose tasks no sample solves. */
export const unsolved = ({ tasks }: Pick<GroupRequest, 'tasks'>): Pick<GroupResult, 'tried'> => ({
  tried: tasks.map((task) => ({ ...task, successes: 0, trials: 8 })),
});

export const sampling: SamplingSpec = {
  temperature: 1,
  topK: 0,
  topP: 1,
  maxTurns: 8,
  maxCompletionTokens: 160,
};

export const reward: RewardSpec = {
  components: [{ verifier: 'exact-match', role: 'outcome', weight: 1, gatedBy: null }],
  truncated: 'train',
};

export const optimizer = {
  learningRate: 0.01,
  warmupUpdates: 10,
  beta1: 0.9,
  beta2: 0.999,
  epsilon: 1e-8,
  maxGradientNorm: 1,
};

export const stageSpec: RlStageSpec = {
  kind: 'rl',
  name: 'rl',
  arms: [arm(1), arm(2)],
  groupsPerStep: 4,
  groupsPerWorkflow: 1,
  numGenerations: 8,
  maxSteps: 10,
  collect: { kind: 'on-policy' },
  ...algorithmWith({ minibatch: 32 }, sampling),
  optimizer,
  graduation: { successAtLeast: 0.9, confidence: 0.9, tasks: 200, everySteps: 1, unjudgedAtMost: 0.02 },
  plateau: { evaluations: 4, minImprovement: 0.2, confidence: 0.9, action: 'advance' },
  collapse: {
    successBelowBest: 0.7,
    confidence: 0.95,
    entropyBelow: 0,
    action: 'rollback',
    learningRateFactor: 0.5,
    maxRollbacks: 2,
  },
  retryFailures: 0.25,
  diagnosis: diagnosisSchema.parse({}),
};

/** A stage after a warm start of three steps. */
export const stageInput = (
  over: Partial<RlStageSpec> = {},
  spec: Partial<StageInput['spec']> = {},
): StageInput => ({
  spec: {
    run: 'run',
    seed: 1,
    sampling,
    reward,
    retention: { keepLast: 3, keepBest: 1, keepEvery: 0 },
    ...spec,
  },
  stage: { ...stageSpec, ...over },
  checkpoint: checkpoint('warm-start-3', 3),
  reference: checkpoint('reference', 2),
  stepsBefore: 3,
  tasksBefore: 0,
});

/** What happens in the run: by the number of the call, from 0. */
export interface Script {
  /** The step whose samples are too far from the weights that learn. */
  gapAt?: number;
  /** Held-out success of each evaluation; null where no episode could be judged. The last one holds on. */
  heldOut: (number | null)[];
  entropy?: (step: number) => number;
  /** Whether a group that was chosen for a step is too far to be replayed, by its place. */
  tooFar?: (step: number, place: number) => boolean;
  /** Which tasks of a batch moved the policy; absent: none. */
  moving?: (request: BatchRequest) => MovingTask[];
  group?: (request: GroupRequest) => Partial<GroupResult>;
  /** Masked tokens of each batch; absent: 80. */
  masked?: (request: BatchRequest) => number;
  /** Steps that teach nothing. */
  nothingToLearn?: readonly number[];
  /** Seconds that scores take; absent: none. */
  scoreSeconds?: number;
  /** Loss of each learner step, in order; the last one holds on. Absent: 0. */
  losses?: readonly number[];
  /** What else an evaluation says. */
  measured?: Partial<EvaluationResult>;
  /** What is kept of the variations of failed tasks. */
  kept?: { counts: Record<string, number> };
  decisions?: Decision[];
}

export const someFailureFacts: FailureFacts = {
  failed: 4,
  variations: 8,
  none: 1,
  setAside: 1,
  known: 1,
  unsolved: 0,
  tooHard: 1,
  tooEasy: 1,
  kept: 3,
  source: 's',
};

export const someSynthesisFacts: SynthesisFacts = {
  tasks: 8,
  unsolved: 1,
  setAside: 1,
  known: 1,
  actions: 20,
  same: 2,
  notWorse: 3,
  tooFew: 1,
  unwritable: 0,
  first: 5,
  plans: 5,
  choices: 9,
  source: 'm',
};

/** Training in memory: everything that was asked is kept, in order, and every answer follows the script. */
export class ScriptedTraining implements TrainingPorts {
  readonly rollouts: GroupRequest[][] = [];
  readonly takenFromStore: StoredRequest[] = [];
  readonly relabelled: RelabelRequest[] = [];
  readonly evaluations: EvaluationRequest[] = [];
  readonly demonstrationRounds: DemonstrationsRequest[] = [];
  readonly scored: ScoreRequest[] = [];
  readonly batches: BatchRequest[] = [];
  readonly trained: TrainRequest[] = [];
  readonly retained: RetentionRequest[] = [];
  readonly facts: StepFacts[] = [];
  readonly questions: Question[] = [];
  /** By stage and step. */
  readonly taken = new Map<string, TakenGroups>();
  readonly askedBy: StepPlace[] = [];
  private readonly script: Script;
  private time = 0;

  constructor(script: Script) {
    this.script = script;
  }

  now(): number {
    return (this.time += 1000);
  }

  async rollout(requests: readonly GroupRequest[]): Promise<GroupResult[]> {
    this.rollouts.push([...requests]);
    return this.answer(requests);
  }

  private answer(requests: readonly GroupRequest[]): GroupResult[] {
    return requests.map((request) => ({
      trajectories: { key: `${request.stage}/${request.step}/${request.group}`, sha256: 'x', bytes: 1 },
      arms: [{ arm: arm(request.tasks[0]!.level), successes: 4, trials: 8 }],
      outcomes: { ...noOutcomes(), scored: 8 },
      rewardSum: 4,
      rewardCount: 8,
      sampledTokens: 80,
      sampledLogprob: -80 * (this.script.entropy?.(request.step) ?? 1),
      turns: 16,
      behaviour: { ...noBehaviour(), episodes: 8, rewardGroups: 1 },
      spans: [],
      ...this.script.group?.(request),
    }));
  }

  async stored(request: StoredRequest): Promise<StoredResult> {
    this.takenFromStore.push(request);
    const { run, stage, arms, count } = request;
    const tasks = Array.from({ length: count }, (_, index) => ({
      ...arms[0]!,
      split: 'train' as const,
      index,
    }));
    const places = { group: 0, firstTask: 0, retries: 0, samples: 8 };
    const { step, seed, checkpoint: policy, reward: judged } = request;
    const asked = { run, stage, step, seed, checkpoint: policy, reward: judged, sampling, tasks, ...places };
    const { trajectories, ...counts } = this.answer([asked])[0]!;
    return { ...counts, groups: [trajectories!], sampledTokens: 0, sampledLogprob: 0 };
  }

  async takeGroups({ stage, step, wanted }: TakeRequest): Promise<TakenGroups | null> {
    const { taken } = this;
    const before = taken.get(`${stage}/${step}`);
    if (before !== undefined || wanted === null) return before ?? null;
    taken.set(`${stage}/${step}`, wanted);
    return wanted;
  }

  readonly versions: KeepVersionRequest[] = [];

  async keepVersion(request: KeepVersionRequest): Promise<void> {
    this.versions.push(request);
  }

  /** In the order of `ReplayRequest`; the copies are called after what they are of. */
  readonly replayed: ReplayRequest[] = [];

  async replay(request: ReplayRequest): Promise<BlobRef[]> {
    this.replayed.push(request);
    return request.groups.map(({ ref, task }) => ({ ...ref, key: `${ref.key}#${task}` }));
  }

  async keepProposals(request: KeepProposalsRequest): Promise<KeptProposals> {
    throw new Error(`step ${request.step} of this stage proposes nothing`);
  }
  async rewardProposals(request: RewardProposalsRequest): Promise<RewardedProposals> {
    throw new Error(`step ${request.step} of this stage proposes nothing`);
  }
  readonly varied: VaryFailuresRequest[] = [];
  readonly kept: KeepVariationsRequest[] = [];

  async varyFailures(request: VaryFailuresRequest): Promise<VariedFailures> {
    this.varied.push(request);
    const ref = (key: string): BlobRef => ({ key, sha256: 'x', bytes: 1 });
    const span: Span = { part: 'verification', start: this.time, end: this.time };
    return {
      checked: ref('checked'),
      references: ref('references'),
      critic: true,
      spans: [span],
      incidents: [],
    };
  }
  async keepVariations(request: KeepVariationsRequest): Promise<KeptVariations> {
    this.kept.push(request);
    const { counts } = this.script.kept!;
    const source = { key: 'tasks', sha256: 's', bytes: 1 };
    return {
      source,
      counts,
      facts: { ...someFailureFacts, kept: counts[Object.keys(counts)[0]!]! },
      spans: [],
    };
  }
  readonly synthesized: SynthesizeRequest[] = [];

  async synthesize(request: SynthesizeRequest): Promise<SynthesizeResult> {
    this.synthesized.push(request);
    return {
      data: { key: 'made.jsonl', sha256: 'm', bytes: 1 },
      facts: someSynthesisFacts,
      spans: [{ part: 'verification', start: this.time, end: this.time }],
      incidents: [],
    };
  }
  readonly replayKept: KeepReplayedRequest[] = [];

  async keepReplayed(request: KeepReplayedRequest): Promise<number[]> {
    this.replayKept.push(request);
    const { groups, step } = request;
    const all = groups.map((_, place) => place);
    return this.script.tooFar === undefined ? all : all.filter((place) => !this.script.tooFar!(step, place));
  }

  async relabel(request: RelabelRequest): Promise<RelabelResult> {
    this.relabelled.push(request);
    const trajectories = { key: `relabelled/${request.step}`, sha256: 'x', bytes: 1 };
    return { trajectories, spans: [], incidents: [] };
  }

  async evaluate(request: EvaluationRequest): Promise<EvaluationResult> {
    const { heldOut } = this.script;
    const success = heldOut[Math.min(this.evaluations.length, heldOut.length - 1)]!;
    this.evaluations.push(request);
    if (success === null) {
      const outcomes = { ...noOutcomes(), failed: request.tasks };
      return { arms: [], outcomes, meanReward: 0, sampledTokens: 0, spans: [] };
    }
    const trials = (request.tasks * (request.samples ?? 1)) / request.arms.length;
    return {
      arms: request.arms.map((each) => ({ arm: each, successes: Math.round(success * trials), trials })),
      outcomes: { ...noOutcomes(), scored: request.tasks },
      meanReward: success,
      sampledTokens: 10,
      spans: [],
      ...this.script.measured,
    };
  }

  async demonstrations(request: DemonstrationsRequest) {
    this.demonstrationRounds.push(request);
    const batch = { key: `demonstrations/${request.round}`, sha256: 'x', bytes: 1 };
    return { batch, sequences: request.count, tokens: 1, maskedTokens: 1, degenerateGroups: 0, spans: [] };
  }

  async batch(request: BatchRequest) {
    const { step } = request;
    this.batches.push(request);
    const nothing = this.script.nothingToLearn?.includes(step) === true;
    const batch = nothing ? null : { key: `batches/${step}`, sha256: 'x', bytes: 1 };
    return {
      batch,
      sequences: 8,
      tokens: 80,
      maskedTokens: this.script.masked?.(request) ?? 80,
      taughtTokens: nothing ? 0 : 4,
      degenerateGroups: nothing ? 4 : 0,
      ...(request.tellMoving && { moving: this.script.moving?.(request) ?? [] }),
      spans: [],
    };
  }

  async score(request: ScoreRequest): Promise<ScoreResult> {
    const { step } = request;
    this.scored.push(request);
    const start = this.time;
    const end = (this.time += 1000 * (this.script.scoreSeconds ?? 0));
    const spans: Span[] = end > start ? [{ part: 'learner', start, end }] : [];
    return { scores: { key: `scores/${step}`, sha256: 'x', bytes: 1 }, spans };
  }

  async escalate({ stage }: StepEscalation): Promise<EscalatedStep> {
    throw new Error(`${stage} has no ladder here`);
  }

  async train(request: TrainRequest): Promise<TrainResult> {
    this.trained.push(request);
    if (this.script.gapAt === request.stageStep) throw new LogprobGapError('0.3 nats a token');
    const metrics = {
      loss: this.script.losses?.[Math.min(this.trained.length, this.script.losses.length) - 1] ?? 0,
      gradientNorm: 1,
      entropy: 1,
      kl: 0,
      clipFraction: 0,
      logprobGapMax: null,
      logprobGapMean: null,
      updates: 1,
      tokens: 80,
      seconds: 1,
    };
    return {
      checkpoint: checkpoint(`${request.stage}-${request.stageStep}`, request.step),
      metrics,
      backend: 'scripted',
      spans: [],
    };
  }

  async retain(request: RetentionRequest): Promise<void> {
    this.retained.push(request);
  }

  async report(facts: StepFacts): Promise<void> {
    this.facts.push(facts);
  }

  /** What those who watch are told. */
  get reports(): StepReport[] {
    return this.facts.map(reportOf);
  }

  async ask<D extends Decision>(question: Question<D>, step: StepPlace): Promise<D> {
    this.questions.push(question);
    this.askedBy.push(step);
    const decision = this.script.decisions?.shift();
    if (decision === undefined) throw new Error(`nobody answers: ${question.reason}`);
    const refusal = refuseAnswer(question, decision);
    if (refusal !== null) throw new Error(refusal);
    return decision as D;
  }
}

export const go = async () => 'go' as const;

/** Passes `steps` times and then stops. */
export function stopAfter(steps: number): () => Promise<'go' | 'stop'> {
  let passed = 0;
  return async () => (passed++ < steps ? 'go' : 'stop');
}
