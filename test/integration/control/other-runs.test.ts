import { defineSearchAttributeKey } from '@temporalio/common';
import { afterAll, expect, test } from 'vitest';
import { otherRuns } from '../../../cli/other-runs.ts';
import { QUEUES } from '../../../core/names.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT } from '../../support/markdown.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Nobody works here: what is started waits, as what was interrupted does.
const installation = await startTestInstallation({ processes: [] });
afterAll(() => installation.remove());
const { client } = installation.runs;
const step = defineSearchAttributeKey('GradusStep', 'INT');

test('each other run that goes on is named, with how far it is and the command that stops it', async () => {
  const begun = await client.workflow.start('curriculum', {
    args: [tinySpec()],
    workflowId: "ann's spec",
    taskQueue: QUEUES.orchestrator,
    typedSearchAttributes: [{ key: step, value: 5 }],
  });
  await installation.runs.start('new', tinySpec());
  await installation.runs.start('house', tinySpec());
  const ended = await installation.runs.start('ended', tinySpec());
  await ended.terminate();

  let lines: string[] = [];
  await until(
    async () => {
      lines = await otherRuns(client, 'house', installation.stateDir);
      return lines.length === 2 && !lines.join('').includes('ended') ? true : undefined;
    },
    300_000,
    () => `other runs: ${lines.join('\n')}`,
  );
  const line = lines.find((one) => one.startsWith("also running: ann's spec (step 5); to stop it"));
  expect(lines.some((one) => one.startsWith('also running: new; to stop it'))).toBe(true);

  const command = /to stop it after the step in flight: (.*)$/.exec(line!)![1]!;
  // It asks back for the name.
  const answered = `${command} <<< "ann's spec"`;
  const { code, stdout, stderr } = await runCommand('bash', ['-c', answered], { cwd: ROOT });
  expect({ code, said: code === 0 ? '' : stdout + stderr }).toEqual({ code: 0, said: '' });
  const { events } = await begun.fetchHistory();
  const signals = events!.flatMap(
    (event) => event.workflowExecutionSignaledEventAttributes?.signalName ?? [],
  );
  expect(signals).toEqual(['stop']);
});
