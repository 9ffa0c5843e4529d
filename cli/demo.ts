import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection, WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import Table from 'cli-table3';
import { Command } from 'commander';
import type { CurriculumResult } from '../core/curriculum.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import { QUEUES } from '../core/names.ts';
import { armName } from '../core/names.ts';
import type { EvaluationResult } from '../core/requests.ts';
import { total } from '../core/stage-policy.ts';
import type { curriculum } from '../workflows/curriculum.ts';
import type { Progress } from '../workflows/messages.ts';
import { fail } from './fail.ts';
import { interval, measured, percent, progressLine } from './show-progress.ts';
import { withStackFlags } from './stack-flags.ts';
import { startInstallation, untilInterrupted } from './stack-with-workers.ts';
import type { InstallationOptions } from './stack-with-workers.ts';

interface DemoOptions extends InstallationOptions {
  spec: string;
  json?: boolean;
}

const POLL_MS = 1000;
/** On a terminal one line is rewritten; elsewhere a line is printed no oftener than this. */
const QUIET_MS = 10_000;

/** Runs a curriculum from servers to report. With `--json` the last line of stdout is one JSON object. */
async function demo(options: DemoOptions): Promise<number> {
  const say = (text: string): void =>
    void (options.json ? process.stderr : process.stdout).write(`${text}\n`);
  const spec = await readSpec(options.spec);
  const started = Date.now();
  say('starting servers and workers …');
  const interrupted = untilInterrupted().then(() => 'interrupted' as const);
  const installation = await startInstallation({ ...options, onEvent: say });
  try {
    const { stack, settings, workers } = installation;
    for (const description of workers.descriptions) say(`  ${description}`);
    if (stack.temporal.uiAddress) say(`  watch it at ${stack.temporal.uiAddress}`);
    const connection = await Connection.connect({ address: settings.temporalAddress });
    const client = new Client({ connection, namespace: settings.namespace });
    const workflowId = `demo-${path.basename(options.spec, '.json')}`;
    const handle = await client.workflow.start<typeof curriculum>('curriculum', {
      args: [spec],
      workflowId,
      taskQueue: QUEUES.orchestrator,
      // A demo that was interrupted goes on where it was.
      workflowIdConflictPolicy: 'USE_EXISTING',
    });
    say(`workflow ${workflowId} is running; kill what you like, it goes on\n`);
    const watching = new AbortController();
    const watched = watch(handle, say, watching.signal);
    const result = handle.result().catch((error: unknown) => Promise.reject(explain(error)));
    const outcome = await Promise.race([result, interrupted]).finally(() => watching.abort());
    await watched;
    if (outcome === 'interrupted') {
      say('\nstopping; the run goes on from here the next time you start the demo');
      return 130;
    }
    const progress = await handle.query<Progress>('progress');
    await connection.close();
    const seconds = (Date.now() - started) / 1000;
    const confidence = (spec as { evaluation?: { confidence?: number } }).evaluation?.confidence ?? 0.95;
    report(outcome, progress, confidence, seconds, say);
    if (options.json) console.log(JSON.stringify(summary(outcome, progress, confidence, seconds)));
    return 0;
  } finally {
    await installation.stop();
  }
}

async function readSpec(file: string): Promise<unknown> {
  try {
    return JSON.parse(await readFile(file, 'utf8')) as unknown;
  } catch (cause) {
    throw new GradusError('spec', 'unreadable', `cannot read the spec ${file}: ${messageOf(cause)}`, {
      cause,
    });
  }
}

type Handle = WorkflowHandleWithFirstExecutionRunId<typeof curriculum>;

/** Prints progress until the signal is aborted. */
async function watch(handle: Handle, say: (text: string) => void, signal: AbortSignal): Promise<void> {
  let last = '';
  let lastAt = 0;
  const show = (progress: Progress): void => {
    const line = progressLine(progress);
    const question = progress.question === null ? '' : `\n  waits for a decision: ${progress.question}`;
    if (line + question === last) return;
    last = line + question;
    if (process.stdout.isTTY) {
      process.stdout.write(`\r\u001b[2K${line.slice(0, process.stdout.columns)}`);
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

/** The first cause of a failed run is what a person can act on. */
function explain(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(messageOf(error));
  if (!(error instanceof WorkflowFailedError)) return error;
  let cause: Error = error;
  while (cause.cause instanceof Error) cause = cause.cause;
  return new GradusError('spec', 'run-failed', cause.message, { cause: error });
}

function report(
  result: CurriculumResult,
  progress: Progress,
  confidence: number,
  seconds: number,
  say: (text: string) => void,
): void {
  const { before, after, checkpoint } = result;
  if (before && after) {
    const table = new Table({
      head: ['', 'before (warm start)', 'after (RL)', 'tasks'],
      style: { head: [], border: [] },
    });
    for (const tally of before.arms) {
      const then = after.arms.find(({ arm }) => armName(arm) === armName(tally.arm));
      table.push([armName(tally.arm), cell([tally]), then ? cell([then]) : '–', tally.trials]);
    }
    table.push(['all', cell(before.arms), cell(after.arms), total(before.arms).trials]);
    say(`\n\n${table.toString()}`);
  }
  const parts = Object.entries(progress.seconds).filter(([, value]) => value >= 0.05);
  say(
    `steps ${result.steps}, ${seconds.toFixed(0)} s (${parts.map(([part, value]) => `${part} ${value.toFixed(1)} s`).join(', ')})`,
  );
  say(`learner ${progress.learnerBackend ?? '–'}`);
  say(`checkpoint s3://gradus/${path.posix.dirname(checkpoint.manifest.key)}`);
  say(`weights SHA-256 ${checkpoint.weights}`);

  function cell(arms: EvaluationResult['arms']): string {
    const { success, ...bounds } = measured(total(arms), confidence);
    return `${percent(success)}  [${interval(bounds)}]`;
  }
}

function summary(result: CurriculumResult, progress: Progress, confidence: number, seconds: number) {
  const of = (evaluation: EvaluationResult | null) =>
    evaluation && {
      ...measured(total(evaluation.arms), confidence),
      arms: Object.fromEntries(
        evaluation.arms.map((tally) => [armName(tally.arm), measured(tally, confidence)]),
      ),
    };
  return {
    run: progress.run,
    end: result.end,
    confidence,
    before: of(result.before),
    after: of(result.after),
    steps: result.steps,
    seconds: { total: seconds, ...progress.seconds },
    learner: progress.learnerBackend,
    checkpoint: { key: result.checkpoint.manifest.key, sha256: result.checkpoint.weights },
  };
}

withStackFlags(new Command('demo'))
  .description('Runs the main job: an agent learns to use a calculator.')
  .option('--spec <file>', 'the curriculum', 'examples/calculator.json')
  .option('--json', 'end with one JSON line on stdout; everything else goes to stderr')
  .action((options: DemoOptions) => demo(options).then((code) => process.exit(code), fail))
  .parse();
