import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** Passes everything on to a server, but of the first request whose path ends with `path` only the first `bytes`. */
export class StallingProxy {
  readonly port: number;
  /** Resolves once that request hangs. */
  readonly stalled: Promise<void>;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();

  private constructor(server: Server, stalled: Promise<void>) {
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
    this.stalled = stalled;
  }

  static async start(target: number, path: string, bytes: number): Promise<StallingProxy> {
    const { promise, resolve } = withResolvers();
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const proxy = new StallingProxy(server, promise);
    server.on('connection', (client) => {
      const upstream = createConnection(target, '127.0.0.1');
      for (const socket of [client, upstream]) {
        proxy.sockets.add(socket);
        // A connection that breaks is what this proxy is for.
        socket.on('error', () => socket.destroy());
        socket.on('close', () => [client, upstream].forEach((other) => other.destroy()));
      }
      upstream.pipe(client);
      let left = Number.POSITIVE_INFINITY;
      client.on('data', (chunk) => {
        if (chunk.toString('latin1').includes(`${path} HTTP/1.1`)) left = bytes;
        upstream.write(chunk.subarray(0, Math.max(0, left)));
        left -= chunk.length;
        if (left <= 0) resolve();
      });
    });
    return proxy;
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
    await closed;
  }
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((done) => (resolve = done));
  return { promise, resolve };
}
