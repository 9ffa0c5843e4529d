import { Context } from '@temporalio/activity';
import { ApplicationFailure, TemporalFailure } from '@temporalio/common';
import type {
  ActivityExecuteInput,
  ActivityInboundCallsInterceptor,
  ActivityInterceptorsFactory,
  Next,
} from '@temporalio/worker';
import { GradusError, messageOf } from '../core/errors.ts';
import { fullDisk } from './full-disk.ts';

/** Attempts at an activity that fails in a way that nobody has thought of. */
const PLAIN_ATTEMPTS = 5;

/** Lets Temporal know what Gradus knows of an error: its type and boundary, and whether a retry can help. */
class FailureInterceptor implements ActivityInboundCallsInterceptor {
  async execute(
    input: ActivityExecuteInput,
    next: Next<ActivityInboundCallsInterceptor, 'execute'>,
  ): Promise<unknown> {
    try {
      return await next(input);
    } catch (thrown) {
      const { cancellationSignal, info } = Context.current();
      if (cancellationSignal.aborted || thrown instanceof TemporalFailure) throw thrown;
      const error = thrown instanceof GradusError ? thrown : (fullDisk(thrown) ?? thrown);
      if (!(error instanceof GradusError)) throw plainFailure(error, info.attempt);
      throw ApplicationFailure.create({
        message: error.message,
        type: `gradus.${error.boundary}.${error.type}`,
        nonRetryable: !error.retryable,
        ...(error.retryAfterSeconds === undefined ? {} : { nextRetryDelay: error.retryAfterSeconds * 1000 }),
        cause: error.cause instanceof Error ? error.cause : error,
      });
    }
  }
}

/** What nobody has thought of may pass, or not: it is tried a few times, and then somebody must look at it. */
function plainFailure(error: unknown, attempt: number): ApplicationFailure {
  return ApplicationFailure.create({
    message: messageOf(error),
    type: 'gradus.infra.unexpected',
    nonRetryable: attempt >= PLAIN_ATTEMPTS,
    ...(error instanceof Error && { cause: error }),
  });
}

export const failureInterceptor: ActivityInterceptorsFactory = () => ({ inbound: new FailureInterceptor() });
