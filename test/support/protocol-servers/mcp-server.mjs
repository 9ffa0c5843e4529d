// An MCP server on standard streams that counts, by the protocol's own package, and can misbehave in each way there is.
import { McpServer } from '@modelcontextprotocol/server';
import { StdioServerTransport } from '@modelcontextprotocol/server/stdio';
import { setTimeout as pause } from 'node:timers/promises';
import { appendFileSync } from 'node:fs';
import process from 'node:process';
import { z } from 'zod';

const log = (line) => process.env.LOG && appendFileSync(process.env.LOG, `${line}\n`);
const text = (words) => ({ content: [{ type: 'text', text: words }] });

let total = 0;
const server = new McpServer({ name: 'counter', version: '1' });
const tool = (name, annotations, shape, run) =>
  server.registerTool(
    name,
    { description: `The tool ${name}.`, annotations, inputSchema: z.object(shape) },
    run,
  );

tool('add', {}, { n: z.int() }, ({ n }) => text(String((total += n))));
tool('total', { readOnlyHint: true }, {}, () => text(String(total)));
tool('set', { idempotentHint: true }, { n: z.int() }, ({ n }) => text(String((total = n))));
tool('pid', {}, {}, () => text(String(process.pid)));
tool('secret', {}, { name: z.string() }, ({ name }) => text(process.env[name] ?? 'none'));
tool('refuse', {}, {}, () => ({ ...text('not on a Sunday'), isError: true }));
tool('picture', {}, {}, () => ({
  content: [
    { type: 'text', text: 'look:' },
    { type: 'image', data: 'AA==', mimeType: 'image/png' },
  ],
}));
tool('garbage', {}, {}, () => {
  process.stdout.write('this is no JSON\n');
  return text('after garbage');
});
tool('endless', {}, {}, () => {
  for (let i = 0; i < 32; i++) process.stdout.write('x'.repeat(2 ** 20));
  return text('never read');
});
tool('nonsense', {}, {}, () => ({ content: 'none' }));
server.registerTool(
  'letters',
  {
    description: 'The tool letters.',
    inputSchema: z.object({ n: z.int() }),
    outputSchema: z.object({ letters: z.string() }),
  },
  ({ n }) => ({ content: [], structuredContent: { letters: 'x'.repeat(n) } }),
);
tool('die', {}, {}, () => {
  process.stderr.write('out of cheese\n');
  process.exit(3);
});
tool('slow', {}, { seconds: z.number() }, async ({ seconds }, { mcpReq }) => {
  const { _meta: { progressToken } = {} } = mcpReq;
  mcpReq.signal.addEventListener('abort', () => log('cancelled'));
  for (let i = 1; i <= 5; i++) {
    await pause((seconds * 1000) / 5, undefined, { signal: mcpReq.signal });
    await mcpReq.notify({
      method: 'notifications/progress',
      params: { progressToken, progress: i, total: 5 },
    });
  }
  return text('done');
});

if (process.env.NESTED) {
  let schema = { type: 'object' };
  for (let level = 0; level < Number(process.env.NESTED); level++)
    schema = { type: 'object', properties: { x: schema } };
  const nested = { name: 'nested', description: '', inputSchema: schema };
  server.server.setRequestHandler('tools/list', () => ({ tools: [nested] }));
}

log(`begun ${process.pid}`);
process.on('exit', () => log('ended'));
process.stdin.on('close', () => process.exit(0));
await server.connect(new StdioServerTransport());
