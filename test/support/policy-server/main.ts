import { parseArgs } from 'node:util';
import { serve } from '@hono/node-server';
import { policyServer } from './server.ts';
import type { ServerOptions } from './server.ts';

const { values } = parseArgs({
  options: { options: { type: 'string' }, port: { type: 'string', default: '0' } },
});
const app = await policyServer(JSON.parse(values.options!) as ServerOptions);
serve({ fetch: app.fetch, hostname: '127.0.0.1', port: Number(values.port) }, ({ port }) =>
  console.log(JSON.stringify({ port })),
);
