import { MockActivityEnvironment } from '@temporalio/testing';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { DefaultLogger } from '@temporalio/worker';
import { describe, expect, test } from 'vitest';
import { GradusError } from '../../../core/errors.ts';
import { failureInterceptor } from '../../../workers/failures.ts';

/** What Temporal gets to see of an activity that throws. */
async function seen(thrown: unknown): Promise<unknown> {
  const environment = new MockActivityEnvironment(
    {},
    { interceptors: [failureInterceptor], logger: new DefaultLogger('ERROR') },
  );
  return environment
    .run(async () => {
      throw thrown;
    })
    .catch((error: unknown) => error);
}

describe('what an activity throws', () => {
  test.each([true, false])(
    'keeps its boundary and type, and whether a retry can help: %s',
    async (retryable) => {
      const failure = await seen(new GradusError('store', 'unavailable', 'start the server', { retryable }));
      expect(failure).toBeInstanceOf(ApplicationFailure);
      expect(failure).toMatchObject({
        type: 'gradus.store.unavailable',
        message: 'start the server',
        nonRetryable: !retryable,
      });
    },
  );

  test('is tried again when the other side asked for it, not sooner', async () => {
    const busy = (retryAfterSeconds?: number) =>
      seen(new GradusError('verifier', 'judge-busy', 'x', { retryable: true, retryAfterSeconds }));
    expect(await busy(90)).toMatchObject({ nextRetryDelay: 90_000, nonRetryable: false });
    expect(await busy()).toHaveProperty('nextRetryDelay', undefined);
  });

  test('keeps its cause', async () => {
    const cause = new Error('connection refused');
    expect(await seen(new GradusError('store', 'unavailable', 'x', { cause }))).toMatchObject({ cause });
  });

  test('is left to Temporal where Gradus knows nothing of it', async () => {
    for (const error of [new TypeError('x is not a function'), new CancelledFailure('cancelled')]) {
      expect(await seen(error)).toBe(error);
    }
  });
});
