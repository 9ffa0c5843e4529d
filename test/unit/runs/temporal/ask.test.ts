import { ServiceError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { queryWorkflow } from '../../../../runs/temporal/ask.ts';

const DEADLINE_EXCEEDED = 4;
const NOT_FOUND = 5;

const refused = (code: number): ServiceError =>
  new ServiceError('Failed to query Workflow', {
    cause: Object.assign(new Error(`${code}`), { code, details: '', metadata: {} }),
  });

/** A server that fails the first queries so, and answers the next one. */
function serverThat(...failures: readonly ServiceError[]): { client: Client; queries: () => number } {
  let queries = 0;
  const query = async (name: string): Promise<string> => {
    const failure = failures[queries++];
    if (failure) throw failure;
    return `${name} answered`;
  };
  const client = { workflow: { getHandle: () => ({ query }) } } as unknown as Client;
  return { client, queries: () => queries };
}

test('a query that no worker took in time is asked again, three times in all', async () => {
  const late = refused(DEADLINE_EXCEEDED);
  const once = serverThat(late, late);
  await expect(queryWorkflow(once.client, 'w', 'progress')).resolves.toBe('progress answered');
  expect(once.queries()).toBe(3);

  const never = serverThat(late, late, late);
  await expect(queryWorkflow(never.client, 'w', 'progress')).rejects.toBe(late);
  expect(never.queries()).toBe(3);
});

test('what is refused is not asked again', async () => {
  const unknown = refused(NOT_FOUND);
  const server = serverThat(unknown);
  await expect(queryWorkflow(server.client, 'w', 'progress')).rejects.toBe(unknown);
  expect(server.queries()).toBe(1);
});
