import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { AgentEpisode } from './agent-episode.ts';
import type { AgentEpisodeOptions } from './agent-episode.ts';
import { createApp } from './app.ts';

export interface Gateway {
  /** `http://127.0.0.1:PORT` */
  url: string;
  /** Lets an agent ask for turns of this episode, until it is closed. */
  open(options: AgentEpisodeOptions): Promise<AgentEpisode>;
  /** The variables by which the SDKs of OpenAI and Anthropic find the episode. */
  variablesFor(episode: AgentEpisode): Record<string, string>;
  /** Closes all episodes, and ends all connections. */
  close(): Promise<void>;
}

/** Serves agents on this machine alone. `keepAliveMs`: how often streams are kept alive while a turn is sampled; 3 s. */
export async function serveGateway({
  port = 0,
  keepAliveMs = 3000,
}: { port?: number; keepAliveMs?: number } = {}): Promise<Gateway> {
  const episodes = new Map<string, AgentEpisode>();
  const listener = getRequestListener(createApp(episodes, { keepAliveMs }).fetch);
  const server = createServer((request, response) => void listener(request, response));
  // A turn takes as long as it takes.
  server.requestTimeout = 0;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    async open(options) {
      const episode = await AgentEpisode.open(options);
      episodes.set(options.id, episode);
      return episode;
    },
    variablesFor: ({ options: { id, model } }) => ({
      OPENAI_BASE_URL: `${url}/episodes/${id}/v1`,
      OPENAI_API_KEY: `gradus-${id}`,
      OPENAI_MODEL: model,
      ANTHROPIC_BASE_URL: `${url}/episodes/${id}`,
      ANTHROPIC_API_KEY: `gradus-${id}`,
      ANTHROPIC_MODEL: model,
    }),
    async close() {
      const closed = new Promise<void>((resolve, reject) =>
        server.close((error) => (error ? reject(error) : resolve())),
      );
      await Promise.all([...episodes.values()].map((episode) => episode.close()));
      server.closeAllConnections();
      await closed;
    },
  };
}
