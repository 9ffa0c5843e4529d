import { createServer } from 'node:http';
import type { Server } from 'node:http';
import type { AddressInfo, ListenOptions } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { AgentEpisode } from './agent-episode.ts';
import type { AgentEpisodeOptions } from './agent-episode.ts';
import { createApp } from './app.ts';

export interface Gateway {
  /** `http://127.0.0.1:PORT` */
  url: string;
  /** Lets an agent ask for turns of this episode, until it is closed. */
  open(options: AgentEpisodeOptions): Promise<AgentEpisode>;
  /** The variables by which the SDKs of OpenAI and Anthropic find the episode, and an agent its tools; `url`: where the agent sees the gateway. */
  variablesFor(episode: AgentEpisode, url?: string): Record<string, string>;
  /** Serves this episode and no other at a socket that anybody who has a way to it may use, until what it gives is called. */
  serveAlone(episode: AgentEpisode, socket: string): Promise<() => Promise<void>>;
  /** Closes all episodes, and ends all connections. */
  close(): Promise<void>;
}

/** Serves agents on this machine alone. `keepAliveMs`: how often streams are kept alive while a turn is sampled; 3 s. */
export async function serveGateway({
  port = 0,
  keepAliveMs = 3000,
}: { port?: number; keepAliveMs?: number } = {}): Promise<Gateway> {
  const episodes = new Map<string, AgentEpisode>();
  const server = await serve(episodes, keepAliveMs, { port, host: '127.0.0.1' });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    async open(options) {
      const episode = await AgentEpisode.open(options);
      episodes.set(options.id, episode);
      return episode;
    },
    variablesFor: ({ tools, options: { id, model } }, at = url) => ({
      OPENAI_BASE_URL: `${at}/episodes/${id}/v1`,
      OPENAI_API_KEY: `gradus-${id}`,
      OPENAI_MODEL: model,
      ANTHROPIC_BASE_URL: `${at}/episodes/${id}`,
      ANTHROPIC_API_KEY: `gradus-${id}`,
      ANTHROPIC_MODEL: model,
      ...(tools && { GRADUS_TOOLS_URL: `${at}/episodes/${id}/tools` }),
    }),
    async serveAlone(episode, socket) {
      const alone = new Map([[episode.options.id, episode]]);
      const server = await serve(alone, keepAliveMs, { path: socket, readableAll: true, writableAll: true });
      return () => closed(server);
    },
    async close() {
      await closed(server, () => Promise.all([...episodes.values()].map((one) => one.close())));
    },
  };
}

async function serve(
  episodes: ReadonlyMap<string, AgentEpisode>,
  keepAliveMs: number,
  where: ListenOptions,
): Promise<Server> {
  const listener = getRequestListener(createApp(episodes, { keepAliveMs }).fetch);
  const server = createServer((request, response) => void listener(request, response));
  // A turn takes as long as it takes.
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(where, resolve);
  });
  return server;
}

/** Takes no more connections, waits for what `meanwhile` does, and ends those that are left. */
async function closed(
  server: Server,
  meanwhile: () => Promise<unknown> = () => Promise.resolve(),
): Promise<void> {
  const ended = new Promise<void>((resolve, reject) =>
    server.close((error) => (error ? reject(error) : resolve())),
  );
  await meanwhile();
  server.closeAllConnections();
  await ended;
}
