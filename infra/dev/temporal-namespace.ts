import { setTimeout as delay } from 'node:timers/promises';
import { Connection, isGrpcServiceError } from '@temporalio/client';
import { msToTs } from '@temporalio/common/lib/time.js';
import { GradusError, messageOf } from '../../core/errors.ts';
import { SEARCH_ATTRIBUTES } from '../../core/names.ts';

/** gRPC's status codes that are met here. */
const GRPC = { notFound: 5, alreadyExists: 6 };
const RETENTION_MS = 72 * 3600 * 1000;
const VISIBLE_WITHIN_MS = 30_000;

/** `temporal.api.enums.v1.IndexedValueType`. */
const INDEXED = { Keyword: 2, Int: 3, Double: 4 } as const;

function failedWith(error: unknown, expected: number): boolean {
  if (!isGrpcServiceError(error)) return false;
  const code: number = error.code;
  return code === expected;
}

/** Resolves when the services behind the frontend answer too: histories are read, task queues are matched. */
export async function probeTemporal(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: '2s' });
  try {
    await connection.withDeadline(Date.now() + 5000, async () => {
      const service = connection.workflowService;
      await service.listNamespaces({});
      const absent = { workflowId: 'gradus-readiness' };
      // Not found, namespace or workflow, is an answer; unavailable is none.
      await service.describeWorkflowExecution({ namespace, execution: absent }).catch((error: unknown) => {
        if (!failedWith(error, GRPC.notFound)) throw error;
      });
    });
  } finally {
    await connection.close();
  }
}

async function registerNamespace(connection: Connection, namespace: string): Promise<void> {
  try {
    await connection.workflowService.registerNamespace({
      namespace,
      workflowExecutionRetentionPeriod: msToTs(RETENTION_MS),
    });
  } catch (error) {
    if (!failedWith(error, GRPC.alreadyExists)) throw error;
  }
}

async function addSearchAttributes(connection: Connection, namespace: string): Promise<void> {
  const present = await connection.operatorService.listSearchAttributes({ namespace });
  const missing = Object.entries(SEARCH_ATTRIBUTES)
    .filter(([name]) => !(name in (present.customAttributes ?? {})))
    .map(([name, type]) => [name, INDEXED[type]] as const);
  if (missing.length === 0) return;
  try {
    await connection.operatorService.addSearchAttributes({
      namespace,
      searchAttributes: Object.fromEntries(missing),
    });
  } catch (error) {
    if (!failedWith(error, GRPC.alreadyExists)) throw error;
  }
}

/** The frontend learns of a new namespace and its attributes when its cache is refreshed: until then it refuses them. */
async function untilVisible(connection: Connection, namespace: string): Promise<void> {
  const query = Object.entries(SEARCH_ATTRIBUTES)
    .map(([name, type]) => (type === 'Keyword' ? `${name} = 'x'` : `${name} > 0`))
    .join(' AND ');
  const deadline = Date.now() + VISIBLE_WITHIN_MS;
  for (;;) {
    try {
      await connection.workflowService.countWorkflowExecutions({ namespace, query });
      return;
    } catch (error) {
      if (Date.now() > deadline) {
        throw new GradusError(
          'infra',
          'namespace',
          `The Temporal server does not list by the search attributes of Gradus (${messageOf(error)}). ` +
            `The server's log says why.`,
          { cause: error, retryable: true },
        );
      }
      await delay(50);
    }
  }
}

/**
 * Makes the namespace (72 h retention) and registers Gradus's search attributes, where they are not there yet.
 * Works on any Temporal server that allows it.
 * @throws GradusError infra/namespace
 */
export async function ensureNamespace(address: string, namespace: string): Promise<void> {
  const connection = await Connection.connect({ address, connectTimeout: '10s' });
  try {
    await connection.withDeadline(Date.now() + VISIBLE_WITHIN_MS, async () => {
      await registerNamespace(connection, namespace);
      await untilNamespaceKnown(connection, namespace);
      await addSearchAttributes(connection, namespace);
    });
    await untilVisible(connection, namespace);
  } finally {
    await connection.close();
  }
}

async function untilNamespaceKnown(connection: Connection, namespace: string): Promise<void> {
  const deadline = Date.now() + VISIBLE_WITHIN_MS;
  for (;;) {
    try {
      await connection.operatorService.listSearchAttributes({ namespace });
      return;
    } catch (error) {
      if (Date.now() > deadline || !failedWith(error, GRPC.notFound)) throw error;
      await delay(50);
    }
  }
}
