import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection, WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { progressLine } from '../cli/show-progress.ts';
import { startInstallation } from '../cli/stack-with-workers.ts';
import type { Installation, InstallationOptions } from '../cli/stack-with-workers.ts';
import type { CurriculumResult } from '../core/training/curriculum.ts';
import { messageOf } from '../core/errors.ts';
import { QUEUES } from '../core/names.ts';
import type { curriculum } from '../workflows/curriculum.ts';
import type { Progress } from '../workflows/control/messages.ts';
import type { BenchOptions } from './bench.ts';

/** Seldom, because a query takes time from what is measured. */
const LOOK_EVERY_MS = 5000;

export async function withTemporaryFolder<T>(use: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-bench-'));
  // A second Ctrl-C ends this process at once, while servers that are ending may still write.
  const atOnce = (): void => rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  process.once('exit', atOnce);
  try {
    return await use(folder);
  } finally {
    process.off('exit', atOnce);
    await rm(folder, { recursive: true, force: true });
  }
}

/** Servers and workers with empty stores and caches, gone when `use` has ended, whichever way. */
export function withInstallation<T>(
  { say, signal, plugins, env }: BenchOptions & Pick<InstallationOptions, 'plugins' | 'env'>,
  use: (client: Client, installation: Installation) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder(async (stateDir) => {
    signal.throwIfAborted();
    const installation = await startInstallation({
      stateDir,
      ui: false,
      onEvent: say,
      ...(plugins && { plugins }),
      ...(env && { env }),
    });
    try {
      signal.throwIfAborted();
      const { temporalAddress, namespace } = installation.settings;
      const connection = await Connection.connect({ address: temporalAddress });
      try {
        return await use(new Client({ connection, namespace }), installation);
      } finally {
        await connection.close();
      }
    } finally {
      await installation.stop();
    }
  });
}

export interface DurableRun {
  handle: WorkflowHandleWithFirstExecutionRunId<typeof curriculum>;
  result: CurriculumResult;
  /** Wall seconds from the start of the workflow to its result. */
  seconds: number;
}

/** Runs a curriculum to its end. Throws when it fails, and when it waits for a person, which nobody would answer. */
export async function durableRun(
  client: Client,
  spec: unknown,
  { say, signal, workflowId = 'bench' }: BenchOptions & { workflowId?: string },
): Promise<DurableRun> {
  const start = performance.now();
  const handle = await client.workflow.start<typeof curriculum>('curriculum', {
    args: [spec],
    workflowId,
    taskQueue: QUEUES.orchestrator,
  });
  const done = new AbortController();
  const watching = watch(handle, say, AbortSignal.any([signal, done.signal]));
  try {
    const result = await Promise.race([handle.result(), watching]);
    return { handle, result, seconds: (performance.now() - start) / 1000 };
  } catch (error) {
    signal.throwIfAborted();
    if (!(error instanceof WorkflowFailedError)) throw error;
    let cause: Error = error;
    while (cause.cause instanceof Error) cause = cause.cause;
    throw new Error(`the run failed: ${cause.message}`, { cause: error });
  } finally {
    done.abort();
  }
}

async function watch(
  handle: DurableRun['handle'],
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<never> {
  for (;;) {
    await delay(LOOK_EVERY_MS, undefined, { signal });
    const progress = await handle.query<Progress>('progress').catch((error: unknown) => {
      say(`  progress unknown: ${messageOf(error)}`);
      return null;
    });
    if (signal.aborted || progress === null) continue;
    if (progress.question !== null)
      throw new Error(`the run waits for a decision: ${progress.question.reason}`);
    say(`  ${progressLine(progress)}`);
  }
}
