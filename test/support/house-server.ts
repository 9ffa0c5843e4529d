import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { ToolRefusal } from '../../environments/contract/environment.ts';
import type { ToolCall } from '../../core/episode/episode.ts';
import type { Reattach } from '../../environments/contract/session.ts';
import { HouseServer } from './houses.ts';

/** Houses on a server of their own: whoever asks may die. */
export async function serveHouses() {
  const houses = new HouseServer();
  const sessions = houses.sessions() as Reattach;
  const context = {} as never;
  const server = createServer((request, response) => {
    void (async () => {
      const asked = JSON.parse(await text(request)) as { id: string; opening: string; call: ToolCall };
      const { opening, call } = asked;
      const place = { id: asked.id, opening, signal: new AbortController().signal };
      try {
        const session = request.url === '/open' ? await sessions.open(context, place) : null;
        const answers: Record<string, () => unknown> = {
          '/open': () => session,
          '/attach': () => sessions.attach(context, place, opening),
          '/act': async () => (await sessions.attach(context, place, opening)).act(call, context),
          '/end': async () =>
            (await sessions.attach(context, place, opening)).end?.(
              { answer: null, by: 'environment' },
              place.signal,
            ),
          '/close': () => sessions.close(context, place, opening),
        };
        const answer = await answers[request.url!]!();
        response.end(JSON.stringify(typeof answer === 'string' ? { text: answer } : (answer ?? {})));
      } catch (error) {
        const refused = error instanceof ToolRefusal;
        response.statusCode = refused ? 200 : 500;
        const message = (error as Error).message;
        response.end(refused ? JSON.stringify({ text: message, refused }) : message);
      }
    })();
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    houses,
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
