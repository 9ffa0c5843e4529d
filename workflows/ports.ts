import {
  ChildWorkflowFailure,
  condition,
  executeChild,
  getExternalWorkflowHandle,
  isCancellation,
  setHandler,
  workflowInfo,
} from '@temporalio/workflow';
import type { ClimbReply } from '../core/ladder/requests.ts';
import { ids } from '../core/names.ts';
import { noOutcomes } from '../core/outcome.ts';
import type { TrainingPorts } from '../core/ports.ts';
import type { EvaluationRequest, EvaluationResult, GroupRequest, GroupResult } from '../core/requests.ts';
import { curriculumActivities, learnerActivities } from './activities.ts';
import type { Control } from './control.ts';
import { climbed, climbWanted, questionAsked, stepReported } from './messages.ts';
import type { evaluation } from './evaluation.ts';
import type { rolloutGroup } from './rollout-group.ts';
import { searchAttributes } from './search-attributes.ts';

/** Children in flight at once; the rest waits in the workflow, not on the server. */
const WINDOW = 32;

/** Runs the groups as child workflows through a sliding window. A group that fails as a whole is data, not a crash. */
export async function rolloutChildren(requests: readonly GroupRequest[]): Promise<GroupResult[]> {
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

async function rolloutChild(request: GroupRequest): Promise<GroupResult> {
  try {
    return await executeChild<typeof rolloutGroup>('rolloutGroup', {
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
    if (isCancellation(error) || !(error instanceof ChildWorkflowFailure)) throw error;
    const outcomes = noOutcomes();
    outcomes.failed = request.tasks.length * request.samples;
    return {
      trajectories: null,
      failure: rootMessage(error),
      arms: [],
      outcomes,
      rewardSum: 0,
      rewardCount: 0,
      sampledTokens: 0,
      turns: 0,
      failedTasks: [],
      spans: [],
    };
  }
}

export function evaluateChild(request: EvaluationRequest): Promise<EvaluationResult> {
  return executeChild<typeof evaluation>('evaluation', {
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
export function trainingPorts(control: Control, run: string, reportEvery: number): TrainingPorts {
  const parent = workflowInfo().parent;
  if (!parent) throw new Error('stages run as children of a curriculum');
  const curriculum = getExternalWorkflowHandle(parent.workflowId);
  const replies = new Map<string, ClimbReply>();
  setHandler(climbed, (reply) => void replies.set(reply.id, reply));
  return {
    now: () => Date.now(),
    rollout: rolloutChildren,
    evaluate: evaluateChild,
    demonstrations: curriculumActivities.buildDemonstrations,
    batch: curriculumActivities.buildBatch,
    climb: async (step) => {
      const start = Date.now();
      const id = `${step.stage}/${step.step}`;
      const request = { ...step, id, replyTo: workflowInfo().workflowId };
      await getExternalWorkflowHandle(ids.ladder(run)).signal(climbWanted, request);
      await condition(() => replies.has(id));
      const { id: _, ...reply } = replies.get(id)!;
      replies.delete(id);
      return { ...reply, spans: [{ part: 'verification', start, end: Date.now() }] };
    },
    train: learnerActivities.trainStep,
    retain: curriculumActivities.applyRetention,
    report: async (report) => {
      const due = report.stageStep % reportEvery === 0 || report.heldOut !== null || report.note !== null;
      if (due) await curriculum.signal(stepReported, report);
    },
    ask: async (reason) => {
      const decision = await control.ask(() => curriculum.signal(questionAsked, reason));
      await curriculum.signal(questionAsked, null);
      return decision;
    },
  };
}

function rootMessage(error: Error): string {
  let at: Error = error;
  while (at.cause instanceof Error) at = at.cause;
  return at.message;
}
