import { once } from 'node:events';
import { createServer } from 'node:net';
import { expect, test } from 'vitest';
import { checkExplicitPort } from '../../../infra/dev/ports.ts';
import { onFreePorts } from '../../support/free-ports.ts';

test('a port that is taken before its server listens is not insisted on', async () => {
  const neighbour = createServer();
  const tried: number[] = [];
  const port = await onFreePorts(async ({ temporalPort }) => {
    tried.push(temporalPort);
    if (tried.length === 1) await once(neighbour.listen(temporalPort, '127.0.0.1'), 'listening');
    await checkExplicitPort({ title: 'Temporal', setting: '--temporal-port', explicit: temporalPort });
    return temporalPort;
  });
  neighbour.close();
  expect(tried).toHaveLength(2);
  expect(port).toBe(tried[1]);
});
