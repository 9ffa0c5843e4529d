import type { Client } from '@temporalio/client';
import { defineSearchAttributeKey } from '@temporalio/common';
import { messageOf } from '../core/errors.ts';
import { commandLine } from '../core/installation.ts';
import { shellWord } from '../environments/sandbox/command.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';

const STEP = defineSearchAttributeKey('GradusStep', 'INT');

/**
 * The runs besides one that workers have to do with: whoever was interrupted goes on as soon as there are some, and takes
 * its share of the machine. A line each, with the command that stops it; that they cannot be listed is one, too.
 */
export async function otherRuns(client: Client, workflowId: string, stateDir: string): Promise<string[]> {
  const servers = stateDir === DEFAULT_STATE_DIR ? '' : ` --state-dir ${asTyped(stateDir)}`;
  const lines: string[] = [];
  try {
    for await (const run of client.workflow.list({
      query: "WorkflowType = 'curriculum' AND ExecutionStatus = 'Running'",
    })) {
      if (run.workflowId === workflowId) continue;
      const step = run.typedSearchAttributes.get(STEP);
      const stop = commandLine(`stop ${asTyped(run.workflowId)}${servers}`);
      lines.push(
        `also running: ${run.workflowId}${step === undefined ? '' : ` (step ${step})`}; to stop it after the step in flight: ${stop}`,
      );
    }
  } catch (error) {
    lines.push(`other runs that go on could not be listed: ${messageOf(error)}`);
  }
  return lines;
}

const asTyped = (word: string): string => (/^[\w./:@+-]+$/.test(word) ? word : shellWord(word));
