import { setMaxListeners } from 'node:events';
import { rmSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Client, Connection, WorkflowFailedError } from '@temporalio/client';
import type { WorkflowHandleWithFirstExecutionRunId } from '@temporalio/client';
import { PolicyPool } from '../activities/rollout/policy-pool.ts';
import { patiently } from '../cli/patient-connection.ts';
import { progressLine } from '../cli/show-progress.ts';
import { whyItWaits } from '../cli/why-it-waits.ts';
import { startInstallation } from '../cli/stack-with-workers.ts';
import type { Installation, InstallationOptions } from '../cli/stack-with-workers.ts';
import { messageOf } from '../core/errors.ts';
import { QUEUES } from '../core/names.ts';
import type { CurriculumResult } from '../core/training/curriculum.ts';
import { createDecoder } from '../engine/decoder/decoder.ts';
import { createLearner } from '../engine/learner/process/remote-learner.ts';
import type { RemoteLearner } from '../engine/learner/process/remote-learner.ts';
import { startObjectStore } from '../infra/dev/object-store.ts';
import { ObjectStore } from '../store/objects/object-store.ts';
import { readSettings } from '../workers/settings.ts';
import type { WorkerSettings } from '../workers/settings.ts';
import type { Progress } from '../workflows/control/messages.ts';
import type { curriculum } from '../workflows/curriculum/curriculum.ts';
import { closing } from './bench.ts';
import type { BenchOptions } from './bench.ts';

/** Seldom, because a query takes time from what is measured. */
const LOOK_EVERY_MS = 5000;
/** Looks at the same progress after which it is worth a line what the run does. */
const LOOKS_AT_A_STANDSTILL = 24;

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

/** An empty object store with an empty cache, as a plain run has them; gone when `use` has ended, whichever way. */
export function withEmptyStore<T>(
  { say, signal }: Pick<BenchOptions, 'say' | 'signal'>,
  use: (settings: WorkerSettings) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder(async (folder) => {
    signal.throwIfAborted();
    const store = await startObjectStore({
      dataDir: path.join(folder, 'object-store'),
      logFile: path.join(folder, 'object-store.log'),
      supervise: true,
      onEvent: say,
    });
    try {
      return await use(
        readSettings({
          ...process.env,
          GRADUS_BLOB_CACHE: path.join(folder, 'blob-cache'),
          GRADUS_S3_URL: `http://${store.address}`,
          GRADUS_S3_ACCESS_KEY: store.accessKey,
          GRADUS_S3_SECRET_KEY: store.secretKey,
        }),
      );
    } finally {
      await store.stop();
    }
  });
}

/** What a plain run has of an engine: a store, decoders and a learner. `threads` of each; absent: as workers have them. */
export async function openEngine(settings: WorkerSettings, threads?: number) {
  const store = await ObjectStore.connect(settings.store);
  const policies = new PolicyPool(store, () =>
    createDecoder({ threads: threads ?? settings.decoderThreads }),
  );
  // A learner's threads are told by a variable, which it reads when it starts.
  const before = process.env['GRADUS_LEARNER_THREADS'];
  if (threads !== undefined) process.env['GRADUS_LEARNER_THREADS'] = String(threads);
  const learner = await createLearner().finally(() => {
    if (before === undefined) delete process.env['GRADUS_LEARNER_THREADS'];
    else process.env['GRADUS_LEARNER_THREADS'] = before;
  });
  const close = async (): Promise<void> => {
    await learner.close();
    await policies.close();
    store.close();
  };
  return { store, policies, learner, close };
}

/** A learner that tells of its last step: seconds of its updates, and when its answer was there (`performance.now()`). */
export function watchedLearner(learner: RemoteLearner) {
  const last = { updates: 0, seconds: 0, returned: 0 };
  const step: RemoteLearner['step'] = async (...args) => {
    const wanted = performance.now();
    const result = await learner.step(...args);
    last.returned = performance.now();
    last.seconds = (last.returned - wanted) / 1000;
    last.updates = result.metrics.seconds;
    return result;
  };
  return { learner: { ...learner, step }, last };
}
export type Engine = Awaited<ReturnType<typeof openEngine>>;

/** On a store of its own, with one thread each: threads that wait for each other leave small models' processors idle. */
export const withEngine = <T>(options: BenchOptions, use: (engine: Engine) => Promise<T>): Promise<T> =>
  withEmptyStore(options, async (settings) => {
    const engine = await openEngine(settings, 1);
    return closing(use(engine), engine.close);
  });

/** Servers and workers with empty stores and caches, gone when `use` has ended, whichever way. */
export function withInstallation<T>(
  {
    say,
    signal,
    plugins,
    env,
    processes,
  }: BenchOptions & Pick<InstallationOptions, 'plugins' | 'env' | 'processes'>,
  use: (client: Client, installation: Installation) => Promise<T>,
): Promise<T> {
  return withTemporaryFolder(async (stateDir) => {
    signal.throwIfAborted();
    const more = { ...(plugins && { plugins }), ...(env && { env }), ...(processes && { processes }) };
    const installation = await startInstallation({ stateDir, ui: false, onEvent: say, ...more });
    try {
      signal.throwIfAborted();
      const { temporalAddress, namespace } = installation.settings;
      const connection = await Connection.connect({ address: temporalAddress });
      const client = new Client({ connection, namespace });
      return await closing(use(client, installation), () => connection.close());
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
  // Each call of the client listens to it.
  setMaxListeners(0, done.signal);
  // Calls end before their connection does: on one that is closed, the client's next try throws where nobody catches it.
  const calling = <T>(call: () => Promise<T>): Promise<T> => client.withAbortSignal(done.signal, call);
  try {
    const result = await Promise.race([
      // A server that is starved for a while must not cost a bench hours of work.
      calling(() => patiently(addressOf(client), { say, signal: done.signal }, () => handle.result())),
      calling(() => watch(client, handle, say, AbortSignal.any([signal, done.signal]))),
    ]);
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

const addressOf = ({ connection }: Client): string =>
  connection instanceof Connection ? connection.options.address : 'its address';

async function watch(
  client: Client,
  handle: DurableRun['handle'],
  say: (text: string) => void,
  signal: AbortSignal,
): Promise<never> {
  let last = '';
  for (let looks = 0; ; looks++) {
    await delay(LOOK_EVERY_MS, undefined, { signal });
    const progress = await handle.query<Progress>('progress').catch((error: unknown) => {
      if (!signal.aborted) say(`  progress unknown: ${messageOf(error)}`);
      return null;
    });
    if (signal.aborted || progress === null) continue;
    if (progress.question !== null)
      throw new Error(`the run waits for a decision: ${progress.question.reason}`);
    const line = progressLine(progress);
    say(`  ${line}`);
    if (line !== last) looks = 0;
    else if (looks % LOOKS_AT_A_STANDSTILL === 0)
      for (const reason of await whyItWaits(client, handle.workflowId, { works: true })) say(`    ${reason}`);
    last = line;
  }
}
