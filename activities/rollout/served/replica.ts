import { GradusError, messageOf } from '../../../core/errors.ts';
import { connect } from './connection.ts';
import { serverApi } from './server-api.ts';
import type { ServerApi } from './server-api.ts';
import type { ServedPolicySpec } from '../../../core/schema/policy.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';

/** Of a replica that has just failed, doubled with each failure in a row, milliseconds. */
const FIRST_REST = 500;
const LONGEST_REST = 30_000;
/** Between two looks at a replica that has requests, milliseconds. */
const WATCH = 5_000;
/** Looks in a row that may fail. */
const MOST_FAILED_LOOKS = 2;
/** Weight of the newest request in the mean time of a token. */
const NEWEST = 0.2;

/** One server: what it holds, what it is busy with, and whether it answers. */
export class Replica {
  readonly url: string;
  readonly api: ServerApi;
  inFlight = 0;
  /** Digest of the weights that it was shown to hold; null: nobody knows. */
  weights: string | null = null;
  /** Settles when nobody is giving it other weights. */
  handedOver: Promise<void> = Promise.resolve();
  /** Mean time of a token that was sampled, seconds; null before the first. */
  secondsPerToken: number | null = null;
  private restsUntil = 0;
  private failures = 0;
  private watching = false;
  private gone = new AbortController();
  private readonly disconnect: () => Promise<void>;

  constructor(spec: Pick<ServedPolicySpec, 'server' | 'requestSeconds'>, url: string, apiKey?: string) {
    const connection = connect(url, spec.requestSeconds, apiKey);
    this.url = connection.url;
    this.api = serverApi(spec.server, connection);
    this.disconnect = () => connection.close();
  }

  /** Milliseconds until it is asked again; 0: now. */
  restsFor(): number {
    return Math.max(0, this.restsUntil - performance.now());
  }

  /** Does what asks the server for something. Requests are given up together when it does not answer to `/health`. */
  async use<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    this.inFlight++;
    void this.watch();
    const gone = this.gone.signal;
    try {
      const result = await work(AbortSignal.any([signal, gone]));
      this.failures = 0;
      return result;
    } catch (error) {
      signal.throwIfAborted();
      const failure = gone.aborted ? (gone.reason as unknown) : error;
      if (failure instanceof GradusError && failure.type === 'server-away')
        this.rest(failure.retryAfterSeconds);
      throw failure;
    } finally {
      this.inFlight--;
    }
  }

  /** It took `seconds` for so many tokens. */
  timed(seconds: number, tokens: number): void {
    if (tokens === 0) return;
    const mean = seconds / tokens;
    this.secondsPerToken =
      this.secondsPerToken === null ? mean : (1 - NEWEST) * this.secondsPerToken + NEWEST * mean;
  }

  /** It is left alone for a while: for as long as it asks for, or longer with each failure. */
  rest(seconds?: number): void {
    // All that was asked of it fails when it dies, and that is one failure.
    if (seconds === undefined && this.restsFor() > 0) return;
    const pause = seconds === undefined ? FIRST_REST * 2 ** this.failures : seconds * 1000;
    this.failures++;
    this.restsUntil = performance.now() + Math.min(LONGEST_REST, pause);
  }

  async close(): Promise<void> {
    this.gone.abort(new GradusError('policy', 'server-away', `${this.url}: closed`, { retryable: true }));
    await this.disconnect();
  }

  /** As long as it has requests: one that hangs answers to nothing. */
  private async watch(): Promise<void> {
    if (this.watching) return;
    this.watching = true;
    let failed = 0;
    try {
      while (this.inFlight > 0 && failed < MOST_FAILED_LOOKS) {
        await new Promise<void>((resolve) => setTimeout(resolve, WATCH).unref());
        try {
          await this.api.healthy(timeoutSignal(WATCH));
          failed = 0;
        } catch (error) {
          failed++;
          if (failed < MOST_FAILED_LOOKS) continue;
          const why = `${this.url} does not answer to /health: ${messageOf(error)}`;
          this.gone.abort(new GradusError('policy', 'server-away', why, { retryable: true, cause: error }));
          this.gone = new AbortController();
          this.weights = null;
        }
      }
    } finally {
      this.watching = false;
    }
  }
}
