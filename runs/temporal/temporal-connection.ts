import { Connection, defaultGrpcRetryOptions, makeGrpcRetryInterceptor } from '@temporalio/client';
import { UNAVAILABLE } from './temporal-away.ts';

/** So often a server is tried that nobody can be connected to: within half a second. */
const TRIES = 3;
/** One that is back is found within this time; gRPC would come to wait for two minutes. */
const RECONNECT_MS = 2000;

const usual = defaultGrpcRetryOptions();

/**
 * A connection for whoever looks, made when it is needed: where nobody listens its calls say so at once. A server that is
 * there and slow has all the time that a call gives it.
 */
export const openConnection = (address: string): Connection =>
  Connection.lazy({
    address,
    channelArgs: {
      'grpc.initial_reconnect_backoff_ms': RECONNECT_MS / 4,
      'grpc.max_reconnect_backoff_ms': RECONNECT_MS,
    },
    interceptors: [
      makeGrpcRetryInterceptor({
        ...usual,
        retryableDecider: (attempt, status) =>
          usual.retryableDecider(attempt, status) &&
          ((status.code as number) !== UNAVAILABLE || attempt < TRIES),
      }),
    ],
  });
