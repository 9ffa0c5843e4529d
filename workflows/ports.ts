import {
  ApplicationFailure,
  CancellationScope,
  CancelledFailure,
  ChildWorkflowFailure,
  condition,
  executeChild,
  getExternalWorkflowHandle,
  isCancellation,
  TerminatedFailure,
  workflowInfo,
} from '@temporalio/workflow';
import type { SignalDefinition } from '@temporalio/workflow';
import { messageOf } from '../core/errors.ts';
import { addIncidents } from '../core/episode/incidents.ts';
import type { EscalationFailure, EscalationReply } from '../core/ladder/requests.ts';
import { ids } from '../core/names.ts';
import { noCounts } from '../core/training/evaluation.ts';
import { LogprobGapError } from '../core/ports.ts';
import type { RewardPorts, TrainingPorts } from '../core/ports.ts';
import { StopAnswered } from '../core/question.ts';
import { addTokens, trainedTokensOf } from '../core/training/figures.ts';
import { reportOf } from '../core/training/step-report.ts';
import { addTime, noTime } from '../core/time/time-split.ts';
import type { EvaluationRequest, EvaluationResult } from '../core/requests/evaluation.ts';
import type { ProbeRequest } from '../core/requests/learner.ts';
import type { GroupRequest } from '../core/requests/rollout.ts';
import type { GroupResult } from '../core/requests/verification.ts';
import { curriculumActivities, learnerActivities, variationActivities } from './activities.ts';
import type { Control } from './control/control.ts';
import { listen } from './control/listen.ts';
import { changedShape, escalationFailure, escalationReply } from './control/message-shapes.ts';
import {
  changesMade,
  escalationAwaited,
  escalated,
  escalationFailed,
  escalationWanted,
  stepReported,
} from './control/messages.ts';
import type { evaluation } from './training/evaluation.ts';
import type { rolloutGroup } from './rollout/rollout-group.ts';
import { searchAttributes } from './search-attributes.ts';
import { damageOf } from './control/retry-after-repair.ts';

/** How often a step that waits for its ladder looks whether that is still there. */
const LADDER_WATCH = '10 minutes';

/**
 * A run or stage that an operator resets does again what it did since, under the same ids. What of that still runs
 * ends, and is begun anew.
 */
export const TAKING_OVER = { workflowIdReusePolicy: 'TERMINATE_IF_RUNNING' } as const;

/** Children in flight at once; the rest waits in the workflow, not on the server. */
const WINDOW = 32;

type Probe = (request: ProbeRequest) => Promise<void>;

/** Runs the groups as child workflows through a sliding window. A group that fails as a whole is data, not a crash. */
export async function rolloutChildren(
  requests: readonly GroupRequest[],
  probe: Probe = learnerActivities.probePolicy,
): Promise<GroupResult[]> {
  await probeServed(requests, probe);
  const results: GroupResult[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < requests.length) {
      const at = next++;
      results[at] = await rolloutChild(requests[at]!);
    }
  };
  await Promise.all(Array.from({ length: Math.min(WINDOW, requests.length) }, lane));
  return results;
}

/**
 * Asks for each checkpoint once. Where groups begin one by one, others of the same weights must not wait for the learner,
 * which has one thing to do at a time.
 */
export function probingOnce(): Probe {
  const asked = new Map<string, Promise<void>>();
  return (request) => {
    const { weights } = request.checkpoint;
    const probe = asked.get(weights) ?? learnerActivities.probePolicy(request);
    asked.set(weights, probe);
    return probe;
  };
}

/** Servers that get a checkpoint are compared with what the learner makes of it, which is asked for once. */
async function probeServed(requests: readonly GroupRequest[], probePolicy: Probe): Promise<void> {
  const served = requests.filter(({ policy }) => policy?.kind === 'http' && !policy.held);
  const probes = served.map(({ run, checkpoint }) => ({ run, checkpoint }));
  const distinct = new Map(probes.map((probe) => [probe.checkpoint.weights, probe]));
  await Promise.all([...distinct.values()].map((probe) => probePolicy(probe)));
}

async function rolloutChild(request: GroupRequest): Promise<GroupResult> {
  try {
    return await executeChild<typeof rolloutGroup>('rolloutGroup', {
      ...TAKING_OVER,
      args: [request],
      workflowId: ids.group(request.run, request.stage, request.step, request.group),
      typedSearchAttributes: searchAttributes({
        run: request.run,
        stage: request.stage,
        step: request.step,
        environment: [...new Set(request.tasks.map((task) => task.environment))].join(','),
        policyVersion: request.checkpoint.weights,
      }),
    });
  } catch (error) {
    if (ownCancellation(error) || !(error instanceof ChildWorkflowFailure)) throw error;
    // The group waited for the damage to be mended, and a person stopped the run.
    if (damageOf(error) !== null) throw error;
    const counts = noCounts();
    counts.outcomes.failed = request.tasks.length * request.samples;
    return { trajectories: null, failure: rootMessage(error), ...counts, spans: [] };
  }
}

export function evaluateChild(request: EvaluationRequest): Promise<EvaluationResult> {
  return executeChild<typeof evaluation>('evaluation', {
    ...TAKING_OVER,
    args: [request],
    workflowId: ids.evaluation(request.run, `${request.name}/${request.step}`),
    typedSearchAttributes: searchAttributes({
      run: request.run,
      stage: request.name,
      step: request.step,
      policyVersion: request.checkpoint.weights,
    }),
  });
}

/** The ports of a workflow that trains as a child of the curriculum. */
export function trainingPorts(
  control: Control,
  curriculumId: string,
  run: string,
  reportEvery: () => number,
  probe: Probe = learnerActivities.probePolicy,
): TrainingPorts & RewardPorts {
  const replies = new Map<string, EscalationReply | EscalationFailure>();
  let reportedIncidents = false;
  listen(changesMade, changedShape, (all) => {
    if (all.newest > control.changed.newest) control.changed = all;
  });
  listen(escalated, escalationReply, (reply) => void replies.set(reply.id, reply));
  listen(escalationFailed, escalationFailure, (failure) => void replies.set(failure.id, failure));
  return endingByAnswer({
    now: () => Date.now(),
    changed: () => control.changed,
    rollout: (requests) => rolloutChildren(requests, probe),
    stored: curriculumActivities.collectStored,
    takeGroups: curriculumActivities.takeGroups,
    keepVersion: curriculumActivities.keepVersion,
    replay: curriculumActivities.replayGroups,
    keepReplayed: curriculumActivities.keepReplayed,
    relabel: curriculumActivities.relabelEpisodes,
    keepProposals: curriculumActivities.keepProposals,
    rewardProposals: curriculumActivities.rewardProposals,
    rewardExamples: curriculumActivities.rewardExamples,
    rewardBatch: curriculumActivities.rewardBatch,
    rewardQuality: learnerActivities.rewardQuality,
    varyFailures: variationActivities.varyFailures,
    keepVariations: curriculumActivities.keepVariations,
    synthesize: variationActivities.synthesize,
    evaluate: evaluateChild,
    demonstrations: curriculumActivities.buildDemonstrations,
    score: learnerActivities.scoreTokens,
    batch: curriculumActivities.buildBatch,
    escalate: async (step) => {
      const start = Date.now();
      const id = `${step.stage}/${step.step}`;
      const request = { ...step, id, replyTo: workflowInfo().workflowId };
      await signalLadder(run, escalationWanted, request);
      // One that was terminated answers nobody.
      while (!(await condition(() => replies.has(id), LADDER_WATCH)))
        await signalLadder(run, escalationAwaited);
      const { id: _, ...reply } = replies.get(id)!;
      replies.delete(id);
      if ('message' in reply) throw ApplicationFailure.nonRetryable(reply.message, reply.type);
      return { ...reply, spans: [{ part: 'verification', start, end: Date.now() }] };
    },
    train: (request) => learnerActivities.trainStep(request).catch(gapAsError),
    retain: curriculumActivities.applyRetention,
    report: async (facts) => {
      await control.told;
      control.tell(curriculumActivities.keepStepFacts({ run, facts }));
      const report = reportOf(facts);
      const before = control.unsent;
      const incidents = addIncidents(before?.incidents ?? [], report.incidents ?? []);
      const secondsSince = addTime(before?.secondsSince ?? noTime(), report.seconds);
      const tokensSince = addTokens(before?.tokensSince ?? null, trainedTokensOf(facts));
      control.unsent = { ...report, incidents, secondsSince, ...(tokensSince && { tokensSince }) };
      const due =
        report.stageStep % reportEvery() === 0 ||
        report.heldOut !== null ||
        report.note !== null ||
        report.alarms !== undefined ||
        // The first ones at once; later ones with the next report.
        (incidents.length > 0 && !reportedIncidents);
      if (!due) return;
      reportedIncidents ||= incidents.length > 0;
      reportUnsent(control, curriculumId);
    },
    ask: async (question, step) => {
      // Who is asked sees the step that the question is about: the server keeps no order of signals under way.
      await control.told;
      const answer = await control.ask(question);
      control.tell(curriculumActivities.keepStepAnswer({ run, answer: { ...step, answer } }));
      return answer;
    },
  });
}

/** Reports the last step, and what it took with those before it, where that is still to be done. */
function reportUnsent(control: Control, curriculumId: string): void {
  const step = control.unsent;
  if (step === null) return;
  control.unsent = null;
  control.tell(getExternalWorkflowHandle(curriculumId).signal(stepReported, step));
}

/** Until the curriculum has every report, and the store all that steps have left. */
export async function allReported(control: Control, curriculumId: string): Promise<void> {
  await control.told;
  reportUnsent(control, curriculumId);
  await control.told;
}

/** Throws a failure that says what happened where the run has no ladder any more. */
async function signalLadder<Args extends unknown[]>(
  run: string,
  signal: SignalDefinition<Args>,
  ...args: Args
): Promise<void> {
  try {
    await getExternalWorkflowHandle(ids.ladder(run)).signal(signal, ...args);
  } catch (error) {
    if (isCancellation(error)) throw error;
    const reason = `the ladder ${ids.ladder(run)} has ended before its run, which cannot go on without it`;
    const what = 'Reset the run to its first workflow task: it begins another one, and adopts what is stored';
    throw ApplicationFailure.nonRetryable(`${reason}: ${messageOf(error)}. ${what}`, 'gradus.infra.ladder');
  }
}

function gapAsError(error: unknown): never {
  const { cause } = Object(error) as { cause?: unknown };
  if (cause instanceof ApplicationFailure && cause.type === 'gradus.learner.logprob-gap')
    throw new LogprobGapError(cause.message, { cause: error });
  throw error;
}

/** What waited for damage to be mended failed, because a person who was asked has stopped the run. */
export function stoppedOrThrow(error: unknown): never {
  const damage = damageOf(error);
  throw damage === null ? error : new StopAnswered(damage.message, { cause: error });
}

/** The same ports; where a person has answered that the run shall end, they throw StopAnswered. */
function endingByAnswer(ports: TrainingPorts & RewardPorts): TrainingPorts & RewardPorts {
  return {
    ...ports,
    rollout: (requests) => ports.rollout(requests).catch(stoppedOrThrow),
    stored: (request) => ports.stored(request).catch(stoppedOrThrow),
    takeGroups: (request) => ports.takeGroups(request).catch(stoppedOrThrow),
    keepVersion: (request) => ports.keepVersion(request).catch(stoppedOrThrow),
    replay: (request) => ports.replay(request).catch(stoppedOrThrow),
    keepReplayed: (request) => ports.keepReplayed(request).catch(stoppedOrThrow),
    relabel: (request) => ports.relabel(request).catch(stoppedOrThrow),
    keepProposals: (request) => ports.keepProposals(request).catch(stoppedOrThrow),
    rewardProposals: (request) => ports.rewardProposals(request).catch(stoppedOrThrow),
    rewardExamples: (request) => ports.rewardExamples(request).catch(stoppedOrThrow),
    rewardBatch: (request) => ports.rewardBatch(request).catch(stoppedOrThrow),
    rewardQuality: (request) => ports.rewardQuality(request).catch(stoppedOrThrow),
    varyFailures: (request) => ports.varyFailures(request).catch(stoppedOrThrow),
    keepVariations: (request) => ports.keepVariations(request).catch(stoppedOrThrow),
    synthesize: (request) => ports.synthesize(request).catch(stoppedOrThrow),
    evaluate: (request) => ports.evaluate(request).catch(stoppedOrThrow),
    demonstrations: (request) => ports.demonstrations(request).catch(stoppedOrThrow),
    score: (request) => ports.score(request).catch(stoppedOrThrow),
    batch: (request) => ports.batch(request).catch(stoppedOrThrow),
    escalate: (step) => ports.escalate(step).catch(stoppedOrThrow),
    train: (request) => ports.train(request).catch(stoppedOrThrow),
  };
}

/** A failure because this workflow itself was cancelled; a child that a person cancelled has only failed. */
export const ownCancellation = (error: unknown): boolean =>
  isCancellation(error) && CancellationScope.current().consideredCancelled;

/** The first cause of a failure is what a person can act on. */
export function rootMessage(error: Error): string {
  let at: Error = error;
  let above = at;
  while (at.cause instanceof Error) [above, at] = [at, at.cause];
  if (!(above instanceof ChildWorkflowFailure)) return at.message;
  // The server names neither the workflow nor who ended it.
  const { workflowId } = above.execution;
  if (at instanceof TerminatedFailure) return `${workflowId} was terminated from outside`;
  if (at instanceof CancelledFailure) return `${workflowId} was cancelled from outside`;
  return at.message;
}
