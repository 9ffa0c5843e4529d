import { once } from 'node:events';
import { createConnection, createServer } from 'node:net';
import type { AddressInfo, Server, Socket } from 'node:net';

/** Stands before a real server, and makes the network between them fail at a chosen moment. */
export class FaultyProxy {
  readonly port: number;
  private readonly target: number;
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  private refusals = 0;
  private stall: { path: string; bytes: number; reached: () => void } | undefined;

  private constructor(server: Server, target: number) {
    this.server = server;
    this.target = target;
    this.port = (server.address() as AddressInfo).port;
    server.on('connection', (client) => {
      if (this.refusals-- > 0) client.destroy();
      else this.pass(client);
    });
  }

  static async start(target: number): Promise<FaultyProxy> {
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new FaultyProxy(server, target);
  }

  /**
   * Of every request to come whose path ends with `path` only the first `bytes`, head included, get through.
   * Resolves once one hangs.
   */
  stallAt(path: string, bytes: number): Promise<void> {
    return new Promise((reached) => (this.stall = { path, bytes, reached }));
  }

  /** Breaks every connection, and the next `refusals` ones as soon as they are made. */
  cut(refusals = 0): void {
    this.refusals = refusals;
    for (const socket of this.sockets) socket.destroy();
  }

  async close(): Promise<void> {
    const closed = once(this.server, 'close');
    this.server.close();
    this.cut();
    await closed;
  }

  private pass(client: Socket): void {
    const upstream = createConnection(this.target, '127.0.0.1');
    for (const socket of [client, upstream]) {
      this.sockets.add(socket);
      // Broken connections are what this proxy is for.
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        this.sockets.delete(socket);
        for (const end of [client, upstream]) end.destroy();
      });
    }
    upstream.pipe(client);
    let left = Number.POSITIVE_INFINITY;
    client.on('data', (chunk) => {
      const { stall } = this;
      if (stall && chunk.toString('latin1').includes(`${stall.path} HTTP/1.1`)) left = stall.bytes;
      upstream.write(chunk.subarray(0, Math.max(0, left)));
      left -= chunk.length;
      if (left <= 0) stall?.reached();
    });
  }
}
