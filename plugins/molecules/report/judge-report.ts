import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { ids, QUEUES } from '../../../core/names.ts';
import { moleculesEnvironment } from '../../../environments/families/molecules/environment.ts';
import { queryWorkflow } from '../../../runs/temporal/ask.ts';
import type { Progress } from '../../../workflows/control/messages.ts';
import type { reverify, ReverifyOutcome } from '../../../workflows/ladder/reverify.ts';
import type { ReportTier } from './report.ts';

/** Who judges the report: the highest verifier that is no person. */
export const JUDGE = 'dft';
const STAGES = ['before', 'after'] as const;

const judgement = (run: string, verifier: string, stage: string) => {
  const { version } = moleculesEnvironment().verifiers.find(({ name }) => name === verifier)!;
  return { run, verifier, version, stage };
};

/** By verifier, what judging the report took. */
export type JudgedStages = Record<string, Record<(typeof STAGES)[number], ReverifyOutcome>>;

/** Everyone who can measure a molecule: the ladder's own, so that each is shown by all tiers, and last the one that counts. */
export const judgesOf = (tiers: readonly ReportTier[]): string[] => [
  ...tiers
    .filter(({ tier, verifier }) => MACHINES.includes(tier) && verifier !== JUDGE)
    .map(({ verifier }) => verifier),
  JUDGE,
];
const MACHINES: readonly string[] = ['simulation', 'high-fidelity'];

/** Waits for what training has asked and not heard of yet, so that the ledger is whole. People are not waited for. */
export async function untilLadderIsDone(
  client: Client,
  run: string,
  say: (text: string) => void,
): Promise<void> {
  const status = await statusOf(client, ids.ladder(run));
  if (status === null || status === 'COMPLETED') return;
  say('waiting for the last verdicts of training …');
  await client.workflow.getHandle(ids.ladder(run)).result();
}

/**
 * Has the answers to the report's tasks judged by these verifiers, before and after: evaluations are judged by the
 * fast tier alone. One that was interrupted goes on where it was.
 */
export async function judgeReport(
  client: Client,
  run: string,
  verifiers: readonly string[],
  say: (text: string) => void,
): Promise<JudgedStages> {
  const by = async (verifier: string, stage: (typeof STAGES)[number]): Promise<ReverifyOutcome> => {
    const input = judgement(run, verifier, stage);
    say(`judging the report's answers ${stage} RL by ${verifier} …`);
    const outcome = await client.workflow.execute<typeof reverify>('reverify', {
      workflowId: ids.reverify(input),
      taskQueue: QUEUES.orchestrator,
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
    say(`  ${outcome.computed} calculated in ${outcome.seconds.toFixed(1)} s`);
    return outcome;
  };
  const judged: JudgedStages = {};
  for (const verifier of verifiers) {
    judged[verifier] = { before: await by(verifier, 'before'), after: await by(verifier, 'after') };
  }
  return judged;
}

/** Whether the last run of this id went to its end, and its report has not been judged yet. */
export async function reportIsDue(client: Client, workflowId: string): Promise<boolean> {
  const handle = client.workflow.getHandle(workflowId);
  if ((await statusOf(client, workflowId)) !== 'COMPLETED') return false;
  const { after } = (await handle.result()) as CurriculumResult;
  if (after === null) return false;
  const { run } = await queryWorkflow<Progress>(client, workflowId, 'progress');
  return (await statusOf(client, ids.reverify(judgement(run, JUDGE, 'after')))) !== 'COMPLETED';
}

/** Of the last execution; null where there has been none. */
async function statusOf(client: Client, workflowId: string): Promise<string | null> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).status.name;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return null;
    throw error;
  }
}
