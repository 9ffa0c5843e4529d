import { NativeConnection } from '@temporalio/worker';
import type { WorkerOptions } from '@temporalio/worker';
import { ObjectStore } from '../activities/store/object-store.ts';
import { GradusError, messageOf } from '../core/errors.ts';
import { QUEUES } from '../core/names.ts';
import type { Role } from '../core/names.ts';
import type { Environment } from '../environments/contract.ts';
import { loadEnvironments } from '../environments/index.ts';
import { failureInterceptor } from './failures.ts';
import { PayloadLimit } from './payload-limit.ts';
import type { WorkerSettings } from './settings.ts';

/** What the workers of one process share. */
export interface WorkerRuntime {
  settings: WorkerSettings;
  connection: NativeConnection;
  store: ObjectStore;
  environments: ReadonlyMap<string, Environment>;
  close(): Promise<void>;
}

/** Throws GradusError('infra', 'temporal-unreachable'), or what `ObjectStore.connect` and `loadEnvironments` throw. */
export async function openRuntime(settings: WorkerSettings): Promise<WorkerRuntime> {
  const environments = await loadEnvironments(settings.environmentModules);
  const store = await ObjectStore.connect(settings.store);
  let connection: NativeConnection;
  try {
    connection = await NativeConnection.connect({ address: settings.temporalAddress });
  } catch (cause) {
    store.close();
    throw new GradusError(
      'infra',
      'temporal-unreachable',
      `no Temporal server answers at ${settings.temporalAddress} (${messageOf(cause)}): start one with "npm run dev", or set TEMPORAL_ADDRESS`,
      { retryable: true, cause },
    );
  }
  return {
    settings,
    connection,
    store,
    environments,
    close: async () => {
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
    interceptors: { activity: [failureInterceptor] },
    // A heartbeat is also what brings a cancellation.
    maxHeartbeatThrottleInterval: '2 seconds',
    shutdownGraceTime: '2 seconds',
    shutdownForceTime: '8 seconds',
    ...(settings.payloadLimit === undefined
      ? {}
      : { dataConverter: { payloadCodecs: [new PayloadLimit(settings.payloadLimit)] } }),
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
