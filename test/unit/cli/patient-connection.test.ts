import { Metadata, status } from '@grpc/grpc-js';
import { ServiceError } from '@temporalio/client';
import { expect, test } from 'vitest';
import { patiently } from '../../../cli/patient-connection.ts';

/** As Temporal's client throws it out of a long call. */
function failed(code: status): ServiceError {
  const cause = Object.assign(new Error(status[code]), { code, details: '', metadata: new Metadata() });
  return new ServiceError('Failed to get Workflow execution history', { cause });
}

test('what a starved server has not answered is asked again, and said once', async () => {
  let asked = 0;
  const said: string[] = [];
  const answer = await patiently('127.0.0.1:1', { say: (text) => said.push(text) }, async () => {
    if (++asked < 3) throw failed(status.DEADLINE_EXCEEDED);
    return 'answer';
  });
  expect({ answer, asked }).toEqual({ answer: 'answer', asked: 3 });
  expect(said).toEqual([
    expect.stringContaining('does not answer'),
    expect.stringContaining('answers again'),
  ]);
});

test('what was called off is not tried again', async () => {
  const over = new AbortController();
  let asked = 0;
  const calling = patiently('127.0.0.1:1', { say: () => undefined, signal: over.signal }, async () => {
    asked++;
    over.abort();
    throw failed(status.CANCELLED);
  });
  await expect(calling).rejects.toThrow(ServiceError);
  expect(asked).toBe(1);
});
