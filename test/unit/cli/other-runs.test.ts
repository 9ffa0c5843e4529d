import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { otherRuns } from '../../../cli/other-runs.ts';

test('a list of other runs that cannot be had is said, and ends nothing', async () => {
  const list = async function* () {
    yield { workflowId: 'a', typedSearchAttributes: { get: () => 3 } };
    throw new Error('no visibility store');
  };
  const client = { workflow: { list } } as unknown as Client;
  const settings = { temporalAddress: '127.0.0.1:7233' };
  expect(await otherRuns(client, 'mine', { stateDir: '/state', settings })).toEqual([
    expect.stringMatching(/^also running: a \(step 3\); to stop it/u),
    'other runs that go on could not be listed: no visibility store',
  ]);
});
