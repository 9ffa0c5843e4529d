import { Client, WorkflowNotFoundError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import type { CurriculumResult } from '../core/training/curriculum.ts';
import { GradusError } from '../core/errors.ts';
import { commandLine } from '../core/installation.ts';
import { QUEUES } from '../core/names.ts';
import type { curriculum } from '../workflows/curriculum/curriculum.ts';
import type { Progress } from '../workflows/control/messages.ts';
import { otherRuns } from './other-runs.ts';
import { connectPatiently } from './patient-connection.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { joinInstallation, startInstallation } from './stack-with-workers.ts';
import { untilInterrupted } from './until-interrupted.ts';
import type { InstallationOptions } from './stack-with-workers.ts';
import type { WorkerSettings } from '../workers/settings.ts';
import { specDigest } from '../runs/control/start.ts';
import { queryWorkflow } from '../runs/temporal/ask.ts';
import { alertWebhook, startAlerting } from './alerting.ts';
import type { AlertingOptions } from './alerting.ts';
import { resultWatched } from './watch-run.ts';

export interface RunSpecOptions extends InstallationOptions {
  /** As a person wrote it. */
  spec: unknown;
  workflowId: string;
  say: (text: string) => void;
  /** Use servers and workers that another process holds up for the same state folder, where there are any. */
  join?: boolean;
  /** Whether the last run of this id is finished and only its report is missing: then no other one is started. */
  reportIsDue?: (client: Client) => Promise<boolean>;
}

/** A run that has come to its end, with the servers and workers still up. */
export interface FinishedRun {
  client: Client;
  settings: WorkerSettings;
  result: CurriculumResult;
  progress: Progress;
  /** Since the start, servers included. */
  seconds: () => number;
}

/**
 * Starts servers and workers, runs a curriculum with its progress shown, and gives the finished run to `finish`. A
 * Ctrl-C ends all of it in order; the next start with the same workflow id goes on where it was.
 */
export async function runSpec<T>(
  options: RunSpecOptions,
  finish: (run: FinishedRun) => Promise<T>,
): Promise<T | 'interrupted'> {
  const { spec, workflowId, say, stateDir = DEFAULT_STATE_DIR } = options;
  const started = Date.now();
  // That it is an address is known before anything is started.
  alertWebhook(options.alertWebhook);
  const interrupted = untilInterrupted().then(() => 'interrupted' as const);
  const up = await servers(options);
  const { stack, settings } = up;
  let alerting: ReturnType<typeof startAlerting> | undefined;
  try {
    say(`  Temporal at ${settings.temporalAddress}, queue ${QUEUES.orchestrator}`);
    if (stack.temporal.uiAddress) say(`  its workflows at ${stack.temporal.uiAddress}`);
    const connection = await connectPatiently(settings.temporalAddress, { say });
    const client = new Client({ connection, namespace: settings.namespace });
    const others = await Promise.race([otherRuns(client, workflowId, stateDir), interrupted]);
    if (others === 'interrupted') return stopped();
    for (const line of others) say(line);
    const handle: WorkflowHandle<typeof curriculum> = (await options.reportIsDue?.(client))
      ? client.workflow.getHandle<typeof curriculum>(workflowId)
      : await startOrGoOn(client, workflowId, spec, say);
    // Where the servers are another process's, that one tells.
    if (!('holder' in up)) alerting = startAlerting(settings, alertsBeside(options));
    const result = await resultWatched(client, handle, say, interrupted);
    if (result === 'interrupted') return stopped();
    const progress = await queryWorkflow<Progress>(client, workflowId, 'progress');
    const seconds = (): number => (Date.now() - started) / 1000;
    const finished = finish({ client, settings, result, progress, seconds });
    const outcome = await Promise.race([finished, interrupted]);
    if (outcome === 'interrupted') return stopped();
    await connection.close();
    return outcome;
  } finally {
    await alerting?.stop();
    await up.stop();
  }

  function stopped(): 'interrupted' {
    say(`\n${whenStopped('holder' in up ? up.holder : undefined)}`);
    return 'interrupted';
  }
}

/** When the last run of this id has ended; undefined where there is none, and while it goes on. */
async function closeTimeOf(client: Client, workflowId: string): Promise<Date | undefined> {
  try {
    return (await client.workflow.getHandle(workflowId).describe()).closeTime;
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return undefined;
    throw error;
  }
}

/** Alerts beside the progress of a run, which shows that run's own questions. */
const alertsBeside = ({ say, workflowId, alertWebhook: webhook }: RunSpecOptions): AlertingOptions => ({
  say: (text) => say(process.stdout.isTTY ? `\n${text}` : text),
  leaveOut: ({ kind, run }) =>
    kind === 'question' && (run === workflowId || run?.startsWith(`${workflowId}.`) === true),
  webhook,
});

/** What becomes of a run that nobody looks at any more; `holder` is the process whose servers were joined. */
export const whenStopped = (holder: number | undefined): string =>
  holder === undefined
    ? 'stopping; the run goes on from here when the same command is given again'
    : `no longer watching; the run goes on with process ${holder}, and the same command shows it again`;

/** Servers and workers: those that are up, if they may be used, else some of one's own, to be stopped. */
async function servers(options: RunSpecOptions) {
  const { say } = options;
  const joined = options.join === true ? await joinInstallation(options.stateDir) : undefined;
  if (joined !== undefined) {
    say(
      `using the servers and workers of process ${joined.holder}, with the environments that it has loaded`,
    );
    return { ...joined, stop: async () => undefined };
  }
  say('starting servers and workers …');
  const installation = await startInstallation({ dashboard: true, ...options, onEvent: say });
  if (installation.dashboard !== null) say(`  watch and steer it at ${installation.dashboard}`);
  for (const description of installation.workers.descriptions) say(`  ${description}`);
  return installation;
}

/**
 * Starts a run, or finds the one of this id that was interrupted. Where one of this id has ended `say` hears that this is
 * another. Throws GradusError('spec', 'changed') where that one
 * was started with another spec: it would go on as if nobody had asked for this one.
 */
export async function startOrGoOn(
  client: Client,
  workflowId: string,
  spec: unknown,
  say: (text: string) => void = () => undefined,
): Promise<WorkflowHandle<typeof curriculum>> {
  const digest = specDigest(spec);
  const closed = await closeTimeOf(client, workflowId);
  if (closed)
    say(
      `${workflowId} has ended before, at ${closed.toISOString()}. This is another run, from the beginning; ` +
        `"${commandLine('runs')}" shows both.`,
    );
  const handle = await client.workflow.start<typeof curriculum>('curriculum', {
    args: [spec],
    workflowId,
    taskQueue: QUEUES.orchestrator,
    workflowIdConflictPolicy: 'USE_EXISTING',
    memo: { specDigest: digest },
  });
  // A run that is there already keeps its own memo. One that the Temporal CLI has started has none, and is taken as it is.
  const { memo } = await handle.describe();
  if ((memo?.['specDigest'] ?? digest) === digest) return handle;
  throw new GradusError(
    'spec',
    'changed',
    `${workflowId} was interrupted and goes on with the spec that it was started with, which differs from this one. ` +
      'To go on, put the old spec back. To run this one, give the file another name, or the servers another folder ' +
      '(--state-dir).',
  );
}
