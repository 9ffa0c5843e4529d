import { AsyncLocalStorage } from 'node:async_hooks';
import http from 'node:http';
import https from 'node:https';
import type { ClientOptions } from 'minio';

type Transport = NonNullable<ClientOptions['transport']>;
type RequestArguments = Parameters<Transport['request']>;

/** A 5xx answer. The client would drop its body, which says why (a full disk, say). */
class ServerFault extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, body: string) {
    const message = /<Message>([^<]*)<\/Message>/.exec(body)?.[1];
    super(message ?? `HTTP ${status}`);
    this.name = 'ServerFault';
    this.status = status;
    this.code = /<Code>([^<]*)<\/Code>/.exec(body)?.[1] ?? String(status);
  }
}

/** S3 takes no request whose time is further from its own. */
const MOST_SKEW_MS = 15 * 60_000;

/** A request was refused, and the clock of this machine is too far from the server's. */
class ClockSkew extends Error {
  readonly code = 'RequestTimeTooSkewed';

  constructor(serverDate: string) {
    super(`it is ${new Date().toUTCString()} here and ${serverDate} on the server`);
    this.name = 'ClockSkew';
  }
}

/**
 * How requests of the `minio` client travel: connections are kept alive, silence of `timeoutMs` ends a request with
 * code ETIMEDOUT, an answer of 5xx becomes a ServerFault, and what runs inside `within(signal, …)` is aborted with it.
 */
export class S3Transport {
  readonly agent: http.Agent;
  private readonly signals = new AsyncLocalStorage<AbortSignal>();
  private readonly module: typeof http | typeof https;
  private readonly timeoutMs: number;

  constructor(useSSL: boolean, timeoutMs: number) {
    this.module = useSSL ? https : http;
    this.agent = new this.module.Agent({ keepAlive: true, maxSockets: 32 });
    this.timeoutMs = timeoutMs;
  }

  within<T>(signal: AbortSignal | undefined, operation: () => Promise<T>): Promise<T> {
    return signal ? this.signals.run(signal, operation) : operation();
  }

  /** What the client's `transport` option wants: the one call that it uses of node's `http`. */
  get transport(): Transport {
    return { ...this.module, request: this.request } as Transport;
  }

  close(): void {
    this.agent.destroy();
  }

  private readonly request = (...[options, onResponse]: RequestArguments): http.ClientRequest => {
    const signal = this.signals.getStore();
    const request = this.module.request(
      // Also of the time in which a connection is made.
      Object.assign({}, options, { timeout: this.timeoutMs }, signal && { signal }),
      (response: http.IncomingMessage) => {
        if (refusedForClock(response)) {
          response.resume();
          request.emit('error', new ClockSkew(response.headers.date!));
        } else if ((response.statusCode ?? 0) < 500)
          (onResponse as (r: http.IncomingMessage) => void)(response);
        else
          void readText(response).then(
            (body) => request.emit('error', new ServerFault(response.statusCode ?? 0, body)),
            (error: unknown) => request.emit('error', error),
          );
      },
    );
    request.once('timeout', () => {
      const error = new Error(`no answer within ${this.timeoutMs / 1000} s`);
      request.destroy(Object.assign(error, { code: 'ETIMEDOUT' }));
    });
    return request;
  };
}

/** The answer to a HEAD has no body that would say why it is refused. */
function refusedForClock({ statusCode, headers: { date } }: http.IncomingMessage): boolean {
  return statusCode === 403 && date !== undefined && Math.abs(Date.parse(date) - Date.now()) > MOST_SKEW_MS;
}

async function readText(stream: http.IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of stream.setEncoding('utf8')) text += String(chunk);
  return text;
}
