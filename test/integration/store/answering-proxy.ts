import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

export interface Answer {
  status: number;
  body?: string;
}

/** Stands before a real server, and puts an answer of its own in place of the server's where `replace` gives one. */
export async function answeringProxy(
  target: number,
  replace: (method: string, status: number) => Answer | undefined,
): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const upstream = request({ host: '127.0.0.1', port: target, method, path: url, headers }, (response) => {
      const answer = replace(method!, response.statusCode!);
      if (answer) {
        response.resume();
        outgoing.writeHead(answer.status).end(answer.body);
      } else {
        outgoing.writeHead(response.statusCode!, response.headers);
        response.pipe(outgoing);
      }
    });
    incoming.pipe(upstream);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      const closed = once(server, 'close');
      server.close();
      server.closeAllConnections();
      await closed;
    },
  };
}
