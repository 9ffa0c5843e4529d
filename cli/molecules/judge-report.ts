import { WorkflowNotFoundError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import type { CurriculumResult } from '../../core/curriculum.ts';
import { ids, QUEUES } from '../../core/names.ts';
import { moleculesEnvironment } from '../../environments/molecules/environment.ts';
import type { Progress } from '../../workflows/messages.ts';
import type { reverify, ReverifyOutcome } from '../../workflows/reverify.ts';

/** Who judges the report: the dearest verifier that is no person. The rung below it is what training mostly sees. */
export const JUDGE = 'dft';
const STAGES = ['before', 'after'] as const;

const judgement = (run: string, stage: (typeof STAGES)[number]) => {
  const { version } = moleculesEnvironment().verifiers.find(({ name }) => name === JUDGE)!;
  return { run, verifier: JUDGE, version, stage };
};

/**
 * Has the answers to the report's tasks judged by DFT, before and after: evaluations are judged by the fast tier
 * alone. One that was interrupted goes on where it was.
 */
export async function judgeReport(
  client: Client,
  run: string,
  say: (text: string) => void,
): Promise<Record<(typeof STAGES)[number], ReverifyOutcome>> {
  const judged = async (stage: (typeof STAGES)[number]): Promise<ReverifyOutcome> => {
    const input = judgement(run, stage);
    say(`judging the report's answers ${stage} RL by ${JUDGE} …`);
    const outcome = await client.workflow.execute<typeof reverify>('reverify', {
      workflowId: ids.reverify(input),
      taskQueue: QUEUES.orchestrator,
      args: [input],
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
    say(`  ${outcome.computed} calculated in ${outcome.seconds.toFixed(1)} s`);
    return outcome;
  };
  return { before: await judged('before'), after: await judged('after') };
}

/** Whether the last run of this id went to its end, and its report has not been judged yet. */
export async function reportIsDue(client: Client, workflowId: string): Promise<boolean> {
  const handle = client.workflow.getHandle(workflowId);
  if ((await statusOf(client, workflowId)) !== 'COMPLETED') return false;
  const { after } = (await handle.result()) as CurriculumResult;
  if (after === null) return false;
  const { run } = await handle.query<Progress>('progress');
  return (await statusOf(client, ids.reverify(judgement(run, 'after')))) !== 'COMPLETED';
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
