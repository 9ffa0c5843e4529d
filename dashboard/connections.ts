import { createServer } from 'node:http';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

// What a connection may take of the server, whoever is at its other end: none keeps others from being answered, and none
// is kept for somebody who does not come back.

export interface ConnectionLimits {
  /** For the head of a request to come, and for all of it: a form is small. */
  headMs: number;
  requestMs: number;
  /** An answer of which nothing is taken for so long is for nobody, though it be a large file. */
  unreadMs: number;
  /** Connections on which nothing is asked. With another one the oldest is ended: whoever comes is let in. */
  mostIdle: number;
  /** Requests on one connection that are not answered yet. Browsers have one; each would be worked on at once. */
  mostAhead: number;
}

const LIMITS: ConnectionLimits = {
  headMs: 20_000,
  requestMs: 60_000,
  unreadMs: 60_000,
  mostIdle: 512,
  mostAhead: 16,
};

export function serverWithin(
  listener: (request: IncomingMessage, response: ServerResponse) => unknown,
  limits: Partial<ConnectionLimits> = {},
): Server {
  const { headMs, requestMs, unreadMs, mostIdle, mostAhead } = { ...LIMITS, ...limits };
  /** The one that has been idle longest comes first. */
  const idle = new Set<Socket>();
  const ahead = new WeakMap<Socket, number>();
  const rest = (socket: Socket): void => {
    idle.add(socket);
    for (const oldest of idle) {
      if (idle.size <= mostIdle) break;
      idle.delete(oldest);
      oldest.destroy();
    }
  };
  const server = createServer(
    {
      headersTimeout: headMs,
      requestTimeout: requestMs,
      connectionsCheckingInterval: Math.min(headMs, 5000),
    },
    (request, response) => {
      const { socket } = request;
      const unanswered = (ahead.get(socket) ?? 0) + 1;
      ahead.set(socket, unanswered);
      idle.delete(socket);
      response.once('close', () => {
        const left = ahead.get(socket)! - 1;
        ahead.set(socket, left);
        if (left === 0 && !socket.destroyed) rest(socket);
      });
      // A page that takes long to be made is waited for: then nothing lies there to be taken.
      response.on('timeout', () => socket.writableLength > 0 && socket.destroy());
      if (socket.destroyed) return;
      if (unanswered > mostAhead) socket.destroy();
      else listener(request, response);
    },
  );
  server.timeout = unreadMs;
  server.on('connection', (socket: Socket) => {
    rest(socket);
    socket.once('close', () => idle.delete(socket));
  });
  return server;
}
