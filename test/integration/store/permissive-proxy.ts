import { once } from 'node:events';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';

/**
 * Stands before a real server and says yes where that one refuses an overwrite, as servers do that do not know
 * `If-None-Match`. (It cannot take the header away: that is part of the signature.)
 */
export async function permissive(target: number): Promise<{ port: number; close(): Promise<void> }> {
  const server = createServer((incoming, outgoing) => {
    const { method, url, headers } = incoming;
    const upstream = request({ host: '127.0.0.1', port: target, method, path: url, headers }, (response) => {
      if (response.statusCode === 412) {
        response.resume();
        outgoing.writeHead(200).end();
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
