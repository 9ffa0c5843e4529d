import { NativeConnection } from '@temporalio/worker';
import type { WorkerOptions } from '@temporalio/worker';
import { ObjectStore } from '../store/objects/object-store.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import { commandLine } from '../core/installation.ts';
import { ownModule } from '../engine/own-module.ts';
import { QUEUES } from '../core/names.ts';
import type { Role } from '../core/names.ts';
import { EnvironmentHost } from '../environments/host/environment-host.ts';
import type { HostedEnvironment } from '../environments/host/hosted-environment.ts';
import { loadExtensions } from './load-extensions.ts';
import { failureInterceptor } from './failures.ts';
import { LoopWatch } from './loop-watch.ts';
import { PayloadLimit } from './payload-limit.ts';
import { retryReports } from './retry-reports.ts';
import { hostOptions } from './settings.ts';
import type { WorkerSettings } from './settings.ts';
import { watchedActivities } from './watched-activities.ts';

/** What the workers of one process share. */
export interface WorkerRuntime {
  settings: WorkerSettings;
  connection: NativeConnection;
  store: ObjectStore;
  environments: ReadonlyMap<string, HostedEnvironment>;
  watch: LoopWatch;
  close(): Promise<void>;
}

/**
 * `hosted`: with the environments, whose code runs in processes beside this one.
 * Throws GradusError('infra', 'temporal-unreachable'), or what `loadExtensions`, `ObjectStore.connect`
 * and `EnvironmentHost.open` throw.
 */
export async function openRuntime(settings: WorkerSettings, { hosted = true } = {}): Promise<WorkerRuntime> {
  await loadExtensions(settings.extensionModules);
  const host = hosted ? await EnvironmentHost.open(hostOptions(settings)) : undefined;
  let store: ObjectStore;
  try {
    store = await ObjectStore.connect(settings.store);
  } catch (error) {
    await host?.close();
    throw error;
  }
  let connection: NativeConnection;
  try {
    connection = await NativeConnection.connect({ address: settings.temporalAddress });
  } catch (cause) {
    store.close();
    await host?.close();
    throw new GradusError(
      'infra',
      'temporal-unreachable',
      `no Temporal server answers at ${settings.temporalAddress} (${messageOf(cause)}): start one with "${commandLine('dev')}", or set TEMPORAL_ADDRESS`,
      { retryable: true, cause },
    );
  }
  const watch = new LoopWatch(settings);
  return {
    settings,
    connection,
    store,
    environments: host?.environments ?? new Map(),
    watch,
    close: async () => {
      await watch.stop();
      await host?.close();
      await connection.close();
      store.close();
    },
  };
}

/** The options that all workers have in common. */
export function commonOptions(runtime: WorkerRuntime, role: Role): WorkerOptions {
  const { connection, settings } = runtime;
  return {
    connection,
    namespace: settings.namespace,
    taskQueue: QUEUES[role],
    interceptors: {
      activity: [
        watchedActivities(runtime.watch),
        retryReports(connection, settings.namespace),
        failureInterceptor,
      ],
    },
    // A heartbeat is also what brings a cancellation.
    maxHeartbeatThrottleInterval: '2 seconds',
    shutdownGraceTime: '2 seconds',
    shutdownForceTime: '8 seconds',
    dataConverter: {
      payloadConverterPath: ownModule('../workflows/payload-converter', import.meta.url),
      ...(settings.payloadLimit !== undefined && {
        payloadCodecs: [new PayloadLimit(settings.payloadLimit)],
      }),
    },
  };
}

/** A worker that serves one queue until it is told to stop. */
export interface RoleWorker {
  run(): Promise<void>;
  shutdown(): void;
  /** Frees what the worker held; after `run` has ended. */
  close(): Promise<void>;
  /** What a person wants to know of it at start, e.g. the learner's backend. */
  description: string;
}
