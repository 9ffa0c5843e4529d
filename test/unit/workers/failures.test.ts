import { MockActivityEnvironment } from '@temporalio/testing';
import { ApplicationFailure, CancelledFailure } from '@temporalio/common';
import { DefaultLogger } from '@temporalio/worker';
import { describe, expect, test } from 'vitest';
import { GradusError } from '../../../core/errors.ts';
import { fromSentError, toSentError } from '../../../engine/learner/process/messages.ts';
import { failureInterceptor } from '../../../workers/failures.ts';

/** What Temporal gets to see of an activity that throws. */
async function seen(thrown: unknown, attempt = 1): Promise<unknown> {
  const environment = new MockActivityEnvironment(
    { attempt },
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

  test("is left to Temporal where it is Temporal's own", async () => {
    const error = new CancelledFailure('cancelled');
    expect(await seen(error)).toBe(error);
  });

  test('is tried for as long as it takes where a disk is full, also in the process of the learner', async () => {
    const full = Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' });
    for (const error of [full, new Error('no step', { cause: full }), fromSentError(toSentError(full))]) {
      expect(await seen(error, 50)).toMatchObject({
        type: 'gradus.infra.disk-full',
        message: expect.stringMatching(/ENOSPC.*make room/) as string,
        nonRetryable: false,
      });
    }
  });

  test('is tried five times and then ends, where nobody has thought of it', async () => {
    const error = new TypeError('x is not a function');
    expect(await seen(error, 4)).toMatchObject({
      type: 'gradus.infra.unexpected',
      message: 'x is not a function',
      nonRetryable: false,
    });
    expect(await seen(error, 5)).toMatchObject({ nonRetryable: true, cause: error });
  });
});
