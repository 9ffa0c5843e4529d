import { connect, isIP } from 'node:net';
import type { Socket } from 'node:net';
import { once } from 'node:events';
import { connect as connectSecurely } from 'node:tls';
import { unreachable } from './server.ts';

/**
 * Whether a server is still the process that it was, for protocols in which one that was started anew answers on as if it
 * knew the session: a connection that is never written to, which the system closes when the process ends. A proxy between
 * that closes idle connections only causes needless replays; one that keeps them hides that the server is another.
 */
export class Tether {
  private readonly socket: Socket;

  private constructor(socket: Socket) {
    this.socket = socket;
    socket.unref();
    socket.resume();
    // It is told of in `broken`; without a listener it would end this process.
    socket.on('error', () => socket.destroy());
    // Half of the connection closed is as good as all: nobody writes to it.
    socket.on('end', () => socket.destroy());
  }

  /** Throws GradusError('environment', 'server-unreachable', retryable), and the signal's reason. */
  static async to(url: string, signal: AbortSignal): Promise<Tether> {
    const { hostname, port, protocol } = new URL(url);
    const host = hostname.replace(/^\[|\]$/gu, '');
    // A server that waits for a handshake would soon close a connection without one.
    const secure = protocol === 'https:';
    const socket = secure
      ? connectSecurely({
          host,
          port: Number(port || 443),
          // Which server it is for, where several share an address: nothing else says it before the handshake is over.
          ...(isIP(host) === 0 && { servername: host }),
        })
      : connect({ host, port: Number(port || 80) });
    try {
      await once(socket, secure ? 'secureConnect' : 'connect', { signal });
    } catch (cause) {
      socket.destroy();
      signal.throwIfAborted();
      throw unreachable(url, cause);
    }
    return new Tether(socket);
  }

  get broken(): boolean {
    return this.socket.destroyed;
  }

  cut(): void {
    this.socket.destroy();
  }
}
