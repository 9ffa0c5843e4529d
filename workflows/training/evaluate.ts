import { getExternalWorkflowHandle, upsertSearchAttributes, workflowInfo } from '@temporalio/workflow';
import { EVALUATE } from '../../core/names.ts';
import { STOP } from '../../core/question.ts';
import type { BlobRef, CheckpointRef } from '../../core/refs.ts';
import type { OpenedEvaluate } from '../../core/requests/evaluation.ts';
import type { EvaluateSpec, ExpectedVerdicts } from '../../core/schema/evaluate.ts';
import { curriculumActivities, rolloutActivities } from '../activities.ts';
import { listen } from '../control/listen.ts';
import { openQuestion } from '../control/message-shapes.ts';
import { decided, questionAsked } from '../control/messages.ts';
import { evaluateChild } from '../ports.ts';
import { searchAttributes } from '../search-attributes.ts';

export interface EvaluateOutcome {
  /** Its name in the store; null of a dry run. */
  run: string | null;
  /** What was measured, of every task; null of a dry run. */
  evaluation: BlobRef | null;
  /** What was, or would be, evaluated. */
  spec: EvaluateSpec | null;
  /** Of a dry run without a checkpoint: tasks of all levels together, and samples of each. */
  counts?: { count: number; samples: number };
  /** What its verdicts may cost at most, where a tier judges. */
  expected?: ExpectedVerdicts;
}

/**
 * Measures a checkpoint on tasks of any environments, without a training run. Started with what `evaluateSchema` describes
 * (`temporal workflow start --type evaluate …`), by a person or a Schedule. Fails, non-retryable and before anything is
 * spent, when that is wrong. What an earlier execution of the same id has stored is not rolled out again.
 */
export async function evaluate(written: unknown): Promise<EvaluateOutcome> {
  const { workflowId, firstExecutionRunId } = workflowInfo();
  // Who meets a damaged object asks. Nobody decides here: it fails, and the next execution goes on from what is stored.
  listen(questionAsked, openQuestion, ({ id, asker }) =>
    getExternalWorkflowHandle(asker).signal(decided, { question: id, answer: STOP.answer }),
  );
  const request = { spec: written, workflowId, firstExecutionRunId };
  let opened: OpenedEvaluate = await curriculumActivities.openEvaluate(request);
  if (opened.ask) {
    const held = await rolloutActivities.askHeld({ policy: opened.ask });
    opened = await curriculumActivities.openEvaluate({ ...request, held });
  }
  const { spec, counts, expected } = opened;
  const told = { spec, ...(counts && { counts }), ...(expected && { expected }) };
  if (opened.dryRun || spec === null) return { run: null, evaluation: null, ...told };
  const { run, seed, sampling, beams, reward, verification, split, policy, agent } = spec;
  const { arms, count, samples } = spec.evaluation;
  upsertSearchAttributes(searchAttributes({ run }));
  // Nothing is trained, so log-probs of any temperature will do.
  if (policy?.kind === 'http') await rolloutActivities.assertServersCan({ policy, scalesLogits: false });
  if (agent) await rolloutActivities.assertAgentStarts({ agent });
  const checkpoint = heldAs(spec, await sampledFrom(spec));
  const {
    spans: _,
    incidents: __,
    ...measured
  } = await evaluateChild({
    run,
    seed,
    name: EVALUATE,
    step: 0,
    checkpoint,
    arms,
    tasks: count,
    samples,
    split,
    ...(policy && { policy }),
    ...(agent && { agent }),
    sampling,
    ...(beams && { beams }),
    reward,
    ...(verification && { verification }),
    adopts: true,
  });
  const evaluation = await curriculumActivities.keepEvaluation({ spec, checkpoint, measured });
  return { run, evaluation, ...told };
}

/** The checkpoint, or a copy that speaks the dialect which was asked for. */
async function sampledFrom({
  run,
  seed,
  model,
  sampling,
  evaluation,
  policy,
}: EvaluateSpec): Promise<CheckpointRef> {
  if (model.kind === 'from' && model.dialect === undefined) return model.checkpoint;
  const { maxCompletionTokens } = sampling;
  return curriculumActivities.initializeModel({
    run,
    seed,
    model,
    arms: evaluation.arms,
    maxCompletionTokens,
    ...(policy?.kind === 'http' && policy.held && { held: true }),
  });
}

/** A model that servers hold goes by its version, and speaks by the small files of the checkpoint. */
const heldAs = ({ policy }: EvaluateSpec, checkpoint: CheckpointRef): CheckpointRef =>
  policy?.kind === 'http' && policy.held ? { ...checkpoint, weights: policy.held.version } : checkpoint;
