import { readFile } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandle } from '@temporalio/client';
import { sha256Hex } from '../store/digest.ts';
import type { CurriculumResult } from '../core/training/curriculum.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import { QUEUES } from '../core/names.ts';
import type { OpenQuestion } from '../core/question.ts';
import type { curriculum } from '../workflows/curriculum.ts';
import type { Progress } from '../workflows/messages.ts';
import { otherRuns } from './other-runs.ts';
import { printable } from '../core/printable.ts';
import { connectPatiently } from './patient-connection.ts';
import { DEFAULT_STATE_DIR } from '../infra/dev/state-dir.ts';
import { progressLine } from './show-progress.ts';
import { joinInstallation, startInstallation } from './stack-with-workers.ts';
import { untilInterrupted } from './until-interrupted.ts';
import type { InstallationOptions } from './stack-with-workers.ts';
import type { WorkerSettings } from '../workers/settings.ts';

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

const POLL_MS = 1000;
/** On a terminal one line is rewritten; elsewhere a line is printed no oftener than this. */
const QUIET_MS = 10_000;

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
  const interrupted = untilInterrupted().then(() => 'interrupted' as const);
  const up = await servers(options);
  const { stack, settings } = up;
  try {
    say(`  Temporal at ${settings.temporalAddress}, queue ${QUEUES.orchestrator}`);
    if (stack.temporal.uiAddress) say(`  its workflows at ${stack.temporal.uiAddress}`);
    const connection = await connectPatiently(settings.temporalAddress, { say });
    const client = new Client({ connection, namespace: settings.namespace });
    const others = await Promise.race([otherRuns(client, workflowId, { stateDir, settings }), interrupted]);
    if (others === 'interrupted') return stopped();
    for (const line of others) say(line);
    const handle: WorkflowHandle<typeof curriculum> = (await options.reportIsDue?.(client))
      ? client.workflow.getHandle<typeof curriculum>(workflowId)
      : await startOrGoOn(client, workflowId, spec);
    const watching = new AbortController();
    const watched = watch(handle, say, watching.signal);
    const ended = handle.result().catch((error: unknown) => Promise.reject(explain(error)));
    const result = await Promise.race([ended, interrupted]).finally(() => watching.abort());
    await watched;
    if (result === 'interrupted') return stopped();
    const progress = await handle.query<Progress>('progress');
    const seconds = (): number => (Date.now() - started) / 1000;
    const finished = finish({ client, settings, result, progress, seconds });
    const outcome = await Promise.race([finished, interrupted]);
    if (outcome === 'interrupted') return stopped();
    await connection.close();
    return outcome;
  } finally {
    await up.stop();
  }

  function stopped(): 'interrupted' {
    say(`\n${whenStopped('holder' in up ? up.holder : undefined)}`);
    return 'interrupted';
  }
}

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
      `using the servers and workers that process ${joined.holder} holds up, with the environments that it has`,
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
 * Starts a run, or finds the one of this id that was interrupted. Throws GradusError('spec', 'changed') where that one
 * was started with another spec: it would go on as if nobody had asked for this one.
 */
export async function startOrGoOn(
  client: Client,
  workflowId: string,
  spec: unknown,
): Promise<WorkflowHandle<typeof curriculum>> {
  const digest = sha256Hex(Buffer.from(JSON.stringify(spec)));
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
    `${workflowId} was interrupted and goes on with the spec that it was started with, which is not this one. ` +
      'Put the old one back to let it go on. For a run with this one give the file another name, or the servers ' +
      'another folder (--state-dir).',
  );
}

/** Throws GradusError('spec', 'unreadable'). */
export async function readSpec(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as unknown;
  } catch (cause) {
    throw new GradusError('spec', 'unreadable', `cannot read the spec ${file}: ${messageOf(cause)}`, {
      cause,
    });
  }
}

/** A question with what can be answered. */
function waiting({ reason, answers }: OpenQuestion): string {
  const lines = answers.map(({ answer, effect }) => `\n    ${answer}: ${effect}`);
  return `\n  waits for a decision: ${reason}${lines.join('')}`;
}

/** Prints progress until the signal is aborted. */
async function watch(
  handle: WorkflowHandle<typeof curriculum>,
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<void> {
  let last = '';
  let lastAt = 0;
  let accepted = false;
  const show = (progress: Progress): void => {
    // Before its spec is read it may yet be refused.
    if (!accepted && progress.phase !== 'spec') {
      accepted = true;
      const below = process.stdout.isTTY && last !== '' ? '\n' : '';
      say(`${below}workflow ${handle.workflowId} is running; kill what you like, it goes on\n`);
    }
    const line = progressLine(progress);
    const question = progress.question === null ? '' : waiting(progress.question);
    if (line + question === last) return;
    last = line + question;
    if (process.stdout.isTTY) {
      process.stdout.write(`\r\u001b[2K${inOneLine(line, process.stdout.columns)}`);
      if (progress.step?.note) say(`\n  ${progress.step.note}`);
    } else if (Date.now() - lastAt >= QUIET_MS || question !== '' || progress.step?.note) {
      say(line + question);
      lastAt = Date.now();
    }
  };
  while (!signal.aborted) {
    // A query that finds no worker for a moment says nothing about the run: the next one will tell.
    await handle.query<Progress>('progress').then(show, () => undefined);
    await delay(POLL_MS);
  }
}

/** As much of a text as a line of a terminal takes; some say that they are 0 columns wide, and mean that they do not know. */
export const inOneLine = (text: string, columns: number | undefined): string =>
  printable(text).slice(0, columns || 80);

/** The first cause of a failed run is what a person can act on. */
function explain(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(messageOf(error));
  if (!(error instanceof WorkflowFailedError)) return error;
  let cause: Error = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  return new GradusError('spec', 'run-failed', cause.message, { cause: error });
}
