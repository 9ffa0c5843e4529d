import { createConnection, createServer } from 'node:net';
import type { Server, Socket } from 'node:net';
import { once } from 'node:events';

/**
 * A TCP proxy in front of a real server that can hold up one request in its middle: the bytes before the stall have
 * arrived at the server, the rest never does. For faults that a kill must hit.
 */
export class StallingProxy {
  private readonly server: Server;
  private readonly sockets = new Set<Socket>();
  /** Connections that there have been. */
  opened = 0;
  private stall: { head: RegExp; after: number; reached: () => void } | undefined;

  private constructor(target: { host: string; port: number }) {
    this.server = createServer((client) => this.connect(client, target));
  }

  static async open(target: { host: string; port: number }): Promise<StallingProxy> {
    const proxy = new StallingProxy(target);
    proxy.server.listen(0, '127.0.0.1');
    await once(proxy.server, 'listening');
    return proxy;
  }

  get port(): number {
    const address = this.server.address();
    if (address === null || typeof address === 'string') throw new Error('the proxy is closed');
    return address.port;
  }

  /** The next request whose head matches is cut off after so many bytes. Resolves when that has happened. */
  stallNext(head: RegExp, after: number): Promise<void> {
    return new Promise((reached) => {
      this.stall = { head, after, reached };
    });
  }

  async close(): Promise<void> {
    for (const socket of this.sockets) socket.destroy();
    this.server.close();
    await once(this.server, 'close');
  }

  private connect(client: Socket, target: { host: string; port: number }): void {
    this.opened++;
    const upstream = createConnection(target);
    let left: number | undefined;
    for (const socket of [client, upstream]) {
      this.sockets.add(socket);
      socket.on('error', () => undefined);
      socket.on('close', () => {
        this.sockets.delete(socket);
        client.destroy();
        upstream.destroy();
      });
    }
    upstream.pipe(client);
    client.on('data', (chunk) => {
      if (left === undefined && this.stall?.head.test(chunk.toString('latin1'))) {
        left = this.stall.after;
      }
      if (left === undefined) {
        upstream.write(chunk);
        return;
      }
      upstream.write(chunk.subarray(0, left));
      left = Math.max(0, left - chunk.length);
      if (left === 0 && this.stall) {
        this.stall.reached();
        this.stall = undefined;
      }
    });
  }
}
