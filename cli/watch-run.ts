import { setTimeout as delay } from 'node:timers/promises';
import { WorkflowFailedError } from '@temporalio/client';
import type { Client, WorkflowHandle } from '@temporalio/client';
import { GradusError, messageOf } from '../core/errors.ts';
import { printable } from '../core/printable.ts';
import type { OpenQuestion } from '../core/question.ts';
import type { CurriculumResult } from '../core/training/curriculum.ts';
import type { curriculum } from '../workflows/curriculum/curriculum.ts';
import type { Progress } from '../workflows/control/messages.ts';
import { progressLine } from './show-progress.ts';
import { whyItWaits } from './why-it-waits.ts';

const POLL_MS = 1000;
/** On a terminal one line is rewritten; elsewhere a line is printed no oftener than this. */
const QUIET_MS = 10_000;

/** A question with what can be answered. */
function waiting({ reason, answers }: OpenQuestion): string {
  const lines = answers.map(({ answer, effect }) => `\n    ${answer}: ${effect}`);
  return `\n  waits for a decision: ${reason}${lines.join('')}`;
}

/** Without progress for so long, a run waits for something that is worth a word. */
const STILL_MS = 20_000;

/** Prints progress until the signal is aborted, and where there is none, what `why` says that the run waits for. */
export async function watchProgress(
  handle: WorkflowHandle<typeof curriculum>,
  say: (text: string) => void,
  signal: AbortSignal,
  why: () => Promise<string[]> = async () => [],
): Promise<void> {
  let last = '';
  let lastAt = 0;
  let accepted = false;
  let still = performance.now();
  let text = '';
  const show = (progress: Progress): void => {
    // Before its spec is read it may yet be refused.
    if (!accepted && progress.phase !== 'spec') {
      accepted = true;
      const below = process.stdout.isTTY && last !== '' ? '\n' : '';
      say(`${below}workflow ${handle.workflowId} is running; kill any process, the run goes on\n`);
    }
    const line = progressLine(progress, process.stdout.isTTY ? process.stdout.columns || 80 : Infinity);
    const question = progress.question === null ? '' : waiting(progress.question);
    if (line + question === last) return;
    last = line + question;
    still = performance.now();
    if (process.stdout.isTTY) {
      process.stdout.write(`\r\u001b[2K${inOneLine(line, process.stdout.columns)}`);
      if (progress.step?.note) say(`\n  ${progress.step.note}`);
    } else if (Date.now() - lastAt >= QUIET_MS || question !== '' || progress.step?.note) {
      say(line + question);
      lastAt = Date.now();
    }
  };
  // Calls are patient with a server that is away, and who has seen enough is not kept waiting by them.
  const aborted = new Promise<void>((resolve) =>
    signal.addEventListener('abort', () => resolve(), { once: true }),
  );
  while (!signal.aborted) {
    // A query that finds no worker for a moment says nothing about the run: the next one will tell.
    const shown = await Promise.race([handle.query<Progress>('progress').catch(() => null), aborted]);
    if (shown) show(shown);
    if (performance.now() - still > STILL_MS) {
      still = performance.now();
      const reasons = (await Promise.race([why(), aborted])) ?? [];
      if (!signal.aborted && reasons.join() !== text)
        for (const reason of reasons) say(`${process.stdout.isTTY ? '\n' : ''}  ${reason}`);
      text = reasons.join();
    }
    await Promise.race([delay(POLL_MS), aborted]);
  }
}

/**
 * The result of a run, whose progress is shown until then, or until `interrupted`. Throws GradusError('spec', 'run-failed')
 * with the first cause of a failed run.
 */
export async function resultWatched<I = never>(
  temporal: Client,
  handle: WorkflowHandle<typeof curriculum>,
  say: (text: string) => void,
  interrupted: Promise<I> = new Promise(() => undefined),
): Promise<CurriculumResult | I> {
  const watching = new AbortController();
  const watched = watchProgress(handle, say, watching.signal, () => whyItWaits(temporal, handle.workflowId));
  const ended = handle.result().catch((error: unknown) => Promise.reject(explain(error)));
  const result = await Promise.race([ended, interrupted]).finally(() => watching.abort());
  await watched;
  return result;
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
