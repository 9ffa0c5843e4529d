import { setTimeout as delay } from 'node:timers/promises';
import { status } from '@grpc/grpc-js';
import { Connection, isGrpcServiceError, ServiceError } from '@temporalio/client';
import { GradusError, messageOf } from '../core/errors.ts';

/** What a server says, or what is said for it, while it is away, starts, or was stopped in the middle of a call. */
const PASSING: readonly number[] = [
  status.UNAVAILABLE,
  status.DEADLINE_EXCEEDED,
  status.CANCELLED,
  status.UNKNOWN,
  status.RESOURCE_EXHAUSTED,
  status.INTERNAL,
];
const PATIENCE_MINUTES = 10;
const LONGEST_PAUSE_MS = 5000;

export interface PatienceOptions {
  /** Told when the server stops to answer, and when it answers again. */
  say: (text: string) => void;
  /** How long a call is tried; 10 unless given. A laptop that sleeps does not use them up. */
  minutes?: number;
  /** Nothing is tried again once it is aborted. */
  signal?: AbortSignal;
  /** Of gRPC, beside what Temporal's client has it be: how soon a server that stands still is given up, for one. */
  channelArgs?: Record<string, number>;
}

/**
 * A connection to Temporal for a command that a person waits for: whatever it calls is tried again while the server does
 * not answer. Calls that change something carry an id of their own, so that one which had gone through is not made twice.
 * It and its calls throw GradusError('infra', 'temporal-unreachable') when the minutes are over.
 */
export async function connectPatiently(address: string, options: PatienceOptions): Promise<Connection> {
  const connection = await new Patience(address, options).call(() =>
    Connection.connect({ address, ...(options.channelArgs && { channelArgs: options.channelArgs }) }),
  );
  return patientConnection(connection, address, options);
}

/** One operation that is tried again, as calls of such a connection are. Throws what they throw. */
export const patiently = <T>(
  address: string,
  options: PatienceOptions,
  operation: () => Promise<T>,
): Promise<T> => new Patience(address, options).call(operation);

/** The same connection, with patient calls. */
export function patientConnection(
  connection: Connection,
  address: string,
  options: PatienceOptions,
): Connection {
  const patience = new Patience(address, options);
  const workflowService = new Proxy(connection.workflowService, {
    get: (service, name) => {
      const method: unknown = Reflect.get(service, name);
      if (typeof method !== 'function') return method;
      return (...request: unknown[]): Promise<unknown> =>
        patience.call(() => Reflect.apply(method, service, request) as Promise<unknown>);
    },
  });
  return Object.assign(connection, { workflowService });
}

/** That a connection did not come about is an error without a code. */
function isPassing(error: unknown): boolean {
  const cause = error instanceof ServiceError ? error.cause : error;
  return isGrpcServiceError(cause)
    ? PASSING.includes(cause.code)
    : cause instanceof Error && cause.message.startsWith('Failed to connect before the deadline');
}

class Patience {
  private readonly address: string;
  private readonly say: (text: string) => void;
  private readonly minutes: number;
  private readonly signal: AbortSignal | undefined;
  /** Calls that are being tried again; what the first and the last of them see is said. */
  private away = 0;

  constructor(address: string, { say, minutes = PATIENCE_MINUTES, signal }: PatienceOptions) {
    this.address = address;
    this.say = say;
    this.minutes = minutes;
    this.signal = signal;
  }

  async call<T>(operation: () => Promise<T>): Promise<T> {
    // Not by the wall clock, which goes on while a machine sleeps.
    const until = performance.now() + this.minutes * 60_000;
    let pause = 100;
    let failed = false;
    try {
      for (;;) {
        try {
          return await operation();
        } catch (error) {
          if (this.signal?.aborted === true || !isPassing(error)) throw error;
          if (performance.now() > until) throw this.unreachable(error);
          if (!failed && ++this.away === 1) {
            this.say(
              `\nthe Temporal server at ${this.address} does not answer (${messageOf(error)}); trying again for up to ${this.minutes} minutes`,
            );
          }
          failed = true;
        }
        await delay(pause);
        pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
      }
    } finally {
      if (failed && --this.away === 0) this.say('the Temporal server answers again');
    }
  }

  private unreachable(cause: unknown): GradusError {
    return new GradusError(
      'infra',
      'temporal-unreachable',
      `the Temporal server at ${this.address} has not answered for ${this.minutes} minutes (${messageOf(cause)}): ` +
        'see that it runs, then run the command again; runs go on where they were',
      { retryable: true, cause },
    );
  }
}
