import type { CallToolResult, Server } from '@modelcontextprotocol/server';
import type { Context } from 'hono';
import type { Json } from '../core/json/json.ts';
import { assertShallow } from './ask.ts';
import type { EpisodeTools, MadeCall } from './episode-tools.ts';
import { problemOf } from './problem.ts';

// The tools of an episode as the Model Context Protocol has them, over streamable HTTP without sessions: an episode is named by
// its address, so that every request stands for itself, in this process or the next.

/** What a call brought, as a plain request is answered. */
export const observationJson = ({ observation }: MadeCall) => {
  const { text, error, reward, done, images } = observation;
  return {
    text,
    error: error ?? null,
    ...(reward !== undefined && { reward }),
    ...(done && { done }),
    ...(images && { images: images.map(({ mediaType, sha256 }) => ({ mediaType, sha256 })) }),
  };
};

/** `gone`: aborted when the client goes. */
export async function servedByMcp(c: Context, tools: EpisodeTools, gone: AbortSignal): Promise<Response> {
  // Only agents that ask need it.
  const sdk = await import('@modelcontextprotocol/server');
  const server = new sdk.Server({ name: 'gradus', version: '1' }, { capabilities: { tools: {} } });
  offer(server, tools, gone);
  const transport = new sdk.WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true });
  await server.connect(transport);
  return transport.handleRequest(c.req.raw);
}

function offer(server: Server, tools: EpisodeTools, gone: AbortSignal): void {
  server.setRequestHandler('tools/list', () => ({
    tools: tools.offered.described.map(({ name, description, parameters }) => ({
      name,
      description,
      inputSchema: { ...parameters, type: 'object' as const },
    })),
  }));
  server.setRequestHandler('tools/call', async ({ params }): Promise<CallToolResult> => {
    try {
      const given = params.arguments ?? {};
      assertShallow(given, 'arguments', 'have');
      const call = { name: params.name, arguments: given as Json };
      return resultOf(await tools.take(call, { gone }));
    } catch (error) {
      // What a program reads: the protocol has no other place for the reason.
      const { code, message } = problemOf(error);
      return { isError: true, content: [{ type: 'text', text: `${code}: ${message}` }] };
    }
  });
}

function resultOf({ observation: { text, error } }: MadeCall): CallToolResult {
  return { content: [{ type: 'text', text }], ...(error !== undefined && { isError: true }) };
}
