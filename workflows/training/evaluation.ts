import { workflowInfo } from '@temporalio/workflow';
import { evaluate } from '../../core/training/evaluation.ts';
import { addIncidents } from '../../core/episode/incidents.ts';
import type { AssessRequest } from '../../core/ladder/requests.ts';
import type { EvaluationRequest, EvaluationResult } from '../../core/requests/evaluation.ts';
import type { GroupRequest } from '../../core/requests/rollout.ts';
import type { Span } from '../../core/requests/span.ts';
import type { GroupResult } from '../../core/requests/verification.ts';
import { assessmentActivities, curriculumActivities } from '../activities.ts';
import { askVerdicts } from '../ladder/ask-verdicts.ts';
import { evaluationRequest } from '../control/message-shapes.ts';
import { checked } from '../control/refuse.ts';
import { rolloutChildren } from '../ports.ts';

/** In the names of those who write what evaluations ask into the run's ledger and asks. */
const WRITER = 'evaluation';

/** Measures a checkpoint on held-out tasks. */
export async function evaluation(request: EvaluationRequest): Promise<EvaluationResult> {
  const { adopts } = checked(evaluationRequest, request);
  const rollout = adopts ? rolloutMissing : rolloutChildren;
  return evaluate({ rollout, verifyAbove: verifyByTier }, request);
}

/** Stored groups that are asked for at once: what is counted of each passes through the history. */
const ADOPTED_AT_ONCE = 8;

/** Rolls out the groups that are not stored yet. */
async function rolloutMissing(groups: readonly GroupRequest[]): Promise<GroupResult[]> {
  const stored: (GroupResult | null)[] = [];
  for (let from = 0; from < groups.length; from += ADOPTED_AT_ONCE) {
    const { run, stage, step, reward } = groups[from]!;
    const to = Math.min(groups.length, from + ADOPTED_AT_ONCE);
    stored.push(...(await curriculumActivities.adoptGroups({ run, stage, step, from, to, reward })));
  }
  const missing = await rolloutChildren(groups.filter((_, i) => stored[i] === null));
  let next = 0;
  return stored.map((one) => one ?? missing[next++]!);
}

/** What it costs is in the run's ledger, under the evaluation's name; no stage's budget pays for it. */
async function verifyByTier(
  { run, name, step, reward, verification }: EvaluationRequest,
  groups: readonly GroupResult[],
): Promise<GroupResult[]> {
  const start = Date.now();
  const { rungs: tiers, evaluateBy } = verification!;
  const tier = tiers.find(({ verifier }) => verifier === evaluateBy)!;
  const request: AssessRequest = {
    run,
    stage: name,
    step,
    groups: groups.flatMap(({ trajectories }) => trajectories ?? []),
    rungs: [tiers[0]!, tier],
    reward,
    writer: `${WRITER}-${workflowInfo().runId}`,
  };
  const { asks, count } = await assessmentActivities.planAssessment(request);
  if (asks !== null)
    await askVerdicts(asks, count, { ...tier, ledger: { run, stage: name, writer: WRITER } });
  const judged = await assessmentActivities.settleAssessment(request);
  const span: Span = { part: 'verification', start, end: Date.now() };
  let next = 0;
  return groups.map((group) => {
    // Groups that failed as a whole have nothing to judge.
    if (group.trajectories === null) return group;
    const above = judged[next++]!;
    const incidents = addIncidents(group.incidents ?? [], above.incidents ?? []);
    return { ...above, spans: [...group.spans, span], incidents };
  });
}
