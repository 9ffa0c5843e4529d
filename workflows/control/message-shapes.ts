import type { EvaluationRequest } from '../../core/requests/evaluation.ts';
import type { LearnerMetrics } from '../../core/requests/learner.ts';
import type { Span } from '../../core/requests/span.ts';
import type { ArmTally, GroupResult, OthersTokens, TriedTask } from '../../core/requests/verification.ts';
import type { RetryReport, Retrying } from '../../core/retrying.ts';
import type { Incident } from '../../core/episode/incidents.ts';
import type {
  Arrived,
  VerdictRequest,
  CheaperVerdict,
  EscalationFailure,
  EscalationReply,
  EscalationRequest,
  Swept,
} from '../../core/ladder/requests.ts';
import type { Budget } from '../../core/ladder/budget.ts';
import type { StepReport } from '../../core/ports.ts';
import type { ReportedStep } from './messages.ts';
import { DECISIONS } from '../../core/question.ts';
import type { Decided, OpenQuestion } from '../../core/question.ts';
import type { BlobRef, CheckpointRef, TaskRef } from '../../core/refs.ts';
import type { BudgetChange, Changed } from '../../core/run-change.ts';
import type { OutcomeCounts } from '../../core/episode/outcome.ts';
import {
  amount,
  anything,
  between,
  digest,
  finite,
  list,
  name,
  natural,
  nullable,
  object,
  oneOf,
  optional,
  record,
  text,
  yes,
} from '../../core/json/shape.ts';
import type { Shape } from '../../core/json/shape.ts';
import type { RewardSpec } from '../../core/schema/reward.ts';
import type { AgentSpec } from '../../core/schema/agent.ts';
import type { BeamsSpec } from '../../core/schema/beams.ts';
import type { OtherPolicySpec } from '../../core/schema/policy.ts';
import type { SamplingSpec } from '../../core/schema/sampling.ts';
import type { Arm } from '../../core/schema/tasks.ts';
import type { TierSpec, VerificationSpec } from '../../core/schema/verification.ts';
import type { LostAttempts } from '../../core/ladder/ledger.ts';
import type { ArmEstimate, LateMove } from '../../core/training/task-draw.ts';
import type { Spent, TierRequest } from '../../core/tier-contract.ts';
import type { HeededAlarm } from '../../core/diagnosis/act.ts';
import { DIAGNOSES } from '../../core/diagnosis/alarm.ts';
import type { Criterion } from '../../core/training/enough.ts';
import type { ArmHowSolved } from '../../core/training/how-solved.ts';
import type {
  BehaviourCounts,
  ComponentCounts,
  JudgeCounts,
  ModelCounts,
} from '../../core/training/step-facts.ts';
import type { TrainedTokens } from '../../core/training/figures.ts';
import type { TimeSplit } from '../../core/time/time-split.ts';

// What the messages between workflows look like. Anyone who reaches the server can send one, and one that a handler
// trips over would hold up its workflow for ever.

/** An object, of which the receiver reads nothing itself: it is shown, or handed on to an activity. */
const inside = <T extends object>(): Shape<T> => record(anything) as Shape<unknown> as Shape<T>;

const blobRef = object<BlobRef>({ key: name, sha256: digest, bytes: natural });
const checkpointRef = object<CheckpointRef>({ manifest: blobRef, weights: name, step: natural });
const arm = object<Arm>({ environment: name, level: finite });
const armTally = object<ArmTally>({
  arm,
  successes: finite,
  trials: finite,
  toolFailures: optional(natural),
});
const outcomeCounts = object<OutcomeCounts>({
  scored: natural,
  pending: natural,
  abstained: natural,
  truncated: natural,
  failed: natural,
});
const split = oneOf('train', 'heldout', 'test');
const taskRef = object<TaskRef>({ environment: name, split, level: finite, index: natural });
const triedTask = object<TriedTask>({
  environment: name,
  split,
  level: finite,
  index: natural,
  successes: natural,
  trials: natural,
});
const part = oneOf('rollout', 'tool', 'verification', 'learner', 'data');
const span = object<Span>({ part, start: finite, end: finite });
const spent = object<Spent>({ seconds: amount, usd: amount });
const incident = object<Incident>({
  environment: text,
  file: text,
  function: text,
  kind: oneOf('hung', 'crashed', 'memory', 'threw', 'late-error'),
  count: natural,
  message: text,
});
const timeSplit = object<TimeSplit>({
  rollout: amount,
  tool: amount,
  verification: amount,
  learner: amount,
  data: amount,
  orchestration: amount,
});
const budget = object<Budget>({
  count: optional(natural),
  seconds: optional(amount),
  usd: optional(amount),
  perStep: optional(natural),
});

/** Whoever made it has looked at its names. */
export const changedShape = object<Changed>({
  newest: natural,
  budgets: record(
    object<BudgetChange>({
      count: optional(nullable(natural)),
      seconds: optional(nullable(amount)),
      usd: optional(nullable(amount)),
      perStep: optional(nullable(natural)),
    }),
  ),
  maxSteps: record(natural),
});

export const openQuestion = object<OpenQuestion>({
  id: name,
  asker: name,
  reason: text,
  answers: list(object<OpenQuestion['answers'][number]>({ answer: oneOf(...DECISIONS), effect: text })),
});
export const decidedShape = object<Decided>({ question: name, answer: oneOf(...DECISIONS) });

export const stepReport = object<ReportedStep>({
  secondsSince: timeSplit,
  tokensSince: optional(object<TrainedTokens>({ sampled: natural, taught: natural })),
  stage: name,
  stageStep: natural,
  maxSteps: natural,
  step: natural,
  environment: name,
  checkpoint: checkpointRef,
  meanReward: nullable(finite),
  trainSuccess: nullable(finite),
  heldOut: nullable(
    object<NonNullable<StepReport['heldOut']>>({
      arms: list(armTally),
      step: natural,
      errorLeft: optional(between(0, 1)),
      errorPart: optional(between(0, 1)),
    }),
  ),
  criteria: optional(list(inside<Criterion>())),
  metrics: nullable(inside<LearnerMetrics>()),
  backend: nullable(text),
  outcomes: outcomeCounts,
  estimates: record(object<ArmEstimate>({ successes: finite, trials: finite })),
  degenerateGroups: natural,
  equalGroups: optional(between(0, 1)),
  sampledTokens: natural,
  taughtTokens: optional(natural),
  entropy: nullable(finite),
  turns: natural,
  seconds: timeSplit,
  incidents: optional(list(incident)),
  alarms: optional(list(inside<HeededAlarm>())),
  standing: optional(list(oneOf(...DIAGNOSES))),
  note: nullable(text),
});

export const retryReport = object<RetryReport>({
  id: text,
  retrying: nullable(
    object<Retrying>({ activity: text, workflow: text, attempts: natural, lastFailure: text }),
  ),
});

export const escalationRequest = object<EscalationRequest>({
  stage: name,
  step: natural,
  groups: list(blobRef),
  settled: optional(list(blobRef)),
  id: name,
  replyTo: name,
  budgets: record(budget),
  reward: inside<RewardSpec>(),
});
const modelCounts = object<ModelCounts>({
  judged: natural,
  score: finite,
  uncertainty: finite,
  compared: natural,
  excess: finite,
  squaredError: finite,
  judge: optional(
    object<JudgeCounts>({
      unjudged: natural,
      tooLong: natural,
      samples: natural,
      readable: natural,
      tokens: natural,
      score: finite,
      scoreSquared: finite,
      verified: finite,
      verifiedSquared: finite,
      product: finite,
    }),
  ),
});
const behaviour = object<BehaviourCounts>({
  episodes: natural,
  truncated: natural,
  longest: natural,
  mostTurns: natural,
  observationTokens: natural,
  fourGrams: natural,
  repeatedFourGrams: natural,
  calls: record(natural),
  malformedCalls: natural,
  unknownTools: natural,
  invalidArguments: natural,
  toolErrors: natural,
  repeatedCalls: natural,
  duplicateCalls: natural,
  answers: natural,
  duplicateAnswers: natural,
  duplicateEpisodes: natural,
  failures: record(natural),
  components: record(
    object<ComponentCounts>({
      scored: natural,
      score: finite,
      contribution: finite,
      lowest: optional(finite),
      highest: optional(finite),
      model: optional(modelCounts),
    }),
  ),
  rewardGroups: natural,
  equalRewards: natural,
  mixedGroups: optional(natural),
  rewardVariance: finite,
  rewardDeviation: finite,
});
const groupResult = object<GroupResult>({
  trajectories: nullable(blobRef),
  failure: optional(text),
  arms: list(armTally),
  outcomes: outcomeCounts,
  rewardSum: finite,
  rewardCount: natural,
  sampledTokens: natural,
  sampledBy: optional(list(object<OthersTokens>({ weights: text, tokens: natural }))),
  inheritedTokens: optional(natural),
  sampledLogprob: finite,
  turns: natural,
  behaviour,
  conduct: optional(list(inside<ArmHowSolved>())),
  tried: optional(list(triedTask)),
  failedTasks: optional(list(taskRef)),
  spans: list(span),
  incidents: optional(list(incident)),
});
export const escalationReply = object<EscalationReply>({
  id: name,
  groups: list(groupResult),
  offered: list(blobRef),
  moves: list(object<LateMove>({ arm, successes: finite, trials: finite, stage: name, step: natural })),
});
export const escalationFailure = object<EscalationFailure>({ id: name, type: name, message: text });
export const sweptList = list(object<Swept>({ verifier: name, digest }));
export const arrivedShape = object<Arrived>({
  verifier: name,
  version: name,
  digest,
  result: oneOf('scored', 'measured', 'abstained'),
  type: optional(name),
  spent: nullable(spent),
  lost: optional(object<LostAttempts>({ attempts: natural, seconds: amount, reason: text })),
  by: optional(oneOf('people')),
});

/** A time that a timer can run. */
const seconds = between(0.001, 10 * 365 * 24 * 3600);
const positive = between(1, 1e6);
const serving = object<Pick<VerdictRequest['served'], 'by'>>({ by: oneOf('queue', 'people') });
const byWhom = {
  queue: object<{ queue: string }>({ queue: name }),
  people: object<{ reviewers: number }>({ reviewers: positive }),
};
export const askShape = object<VerdictRequest>({
  request: object<TierRequest>({
    format: oneOf('gradus.verify/1'),
    verifier: name,
    version: name,
    digest,
    subject: anything,
  }),
  environment: name,
  cost: spent,
  limits: object<VerdictRequest['limits']>({
    timeoutSeconds: seconds,
    heartbeatSeconds: seconds,
    maxAttempts: positive,
  }),
  served: (value, at) => serving(value, at) ?? byWhom[(value as VerdictRequest['served']).by](value, at),
  run: optional(name),
  cheaper: optional(list(inside<CheaperVerdict>())),
});

const verification = object<Pick<VerificationSpec, 'rungs' | 'evaluateBy'>>({
  rungs: list(inside<TierSpec>()),
  evaluateBy: name,
});
export const evaluationRequest = object<EvaluationRequest>({
  run: name,
  seed: natural,
  name,
  step: natural,
  checkpoint: checkpointRef,
  policy: optional(inside<OtherPolicySpec>()),
  agent: optional(inside<AgentSpec>()),
  arms: list(arm),
  tasks: natural,
  samples: optional(between(1, 1e6)),
  split,
  sampling: inside<SamplingSpec>(),
  beams: optional(inside<BeamsSpec>()),
  reward: inside<RewardSpec>(),
  verification: optional(verification as Shape<VerificationSpec>),
  distinct: optional(yes),
  adopts: optional(yes),
});
