import { Connection, isGrpcServiceError, ServiceError } from '@temporalio/client';
import type { Client } from '@temporalio/client';
import { GradusError, isA, messageOf } from '../../core/errors.ts';
import { whenServerIsAway } from '../../core/installation.ts';

// gRPC's codes of a server that does not answer.
const DEADLINE_EXCEEDED = 4;
export const UNAVAILABLE = 14;

/** Whether nobody could be asked, which has nothing to do with who works there. */
export function isTemporalUnreachable(error: unknown): boolean {
  const cause = causeOf(error);
  return isGrpcServiceError(cause) && (cause.code as number) === UNAVAILABLE;
}

/** Whether nobody answered in time: the server, or a worker that a query waits for. */
export function isLate(error: unknown): boolean {
  const cause = causeOf(error);
  return isGrpcServiceError(cause) && (cause.code as number) === DEADLINE_EXCEEDED;
}

/** Why Temporal does not answer, where, and what to do; of another error its message. */
export function whyAway({ connection }: Client, error: unknown): string {
  const cause = causeOf(error);
  if (!isGrpcServiceError(cause)) return messageOf(error);
  const address = connection instanceof Connection ? connection.options.address : 'its address';
  switch (cause.code as number) {
    case DEADLINE_EXCEEDED:
      return `${address} did not answer in time. Check that its server runs and is not too busy`;
    case UNAVAILABLE: {
      const nobody = cause.details.includes('ECONNREFUSED');
      const why = nobody ? `nobody listens at ${address}` : `${address} is not reached (${cause.details})`;
      return `${why}. ${whenServerIsAway(process.env, 'TEMPORAL_ADDRESS')}`;
    }
    default:
      return `${address} says ${messageOf(cause)}`;
  }
}

/**
 * GradusError('infra', 'temporal-unreachable') in these words, and GradusError('infra', 'temporal-refused') where it
 * answers with an error of gRPC; any other error as it is.
 */
export function temporalError(temporal: Client, error: unknown): unknown {
  const cause = causeOf(error);
  if (!isGrpcServiceError(cause)) return error;
  const isAway = [DEADLINE_EXCEEDED, UNAVAILABLE].includes(cause.code);
  return new GradusError(
    'infra',
    isAway ? 'temporal-unreachable' : 'temporal-refused',
    `Temporal ${isAway ? 'does not answer' : 'refuses'}: ${whyAway(temporal, error)}`,
    { retryable: true, cause: error },
  );
}

const causeOf = (error: unknown): unknown => (isA(error, ServiceError) ? error.cause : error);
