import { ApplicationFailure } from '@temporalio/common';
import type {
  ActivityExecuteInput,
  ActivityInboundCallsInterceptor,
  ActivityInterceptorsFactory,
  Next,
} from '@temporalio/worker';
import { GradusError } from '../core/errors.ts';

/** Lets Temporal know what Gradus knows of an error: its type and boundary, and whether a retry can help. */
class FailureInterceptor implements ActivityInboundCallsInterceptor {
  async execute(
    input: ActivityExecuteInput,
    next: Next<ActivityInboundCallsInterceptor, 'execute'>,
  ): Promise<unknown> {
    try {
      return await next(input);
    } catch (error) {
      if (!(error instanceof GradusError)) throw error;
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

export const failureInterceptor: ActivityInterceptorsFactory = () => ({ inbound: new FailureInterceptor() });
