import type { Client } from '@temporalio/client';
import { expect, test } from 'vitest';
import { otherRuns } from '../../../cli/other-runs.ts';

test('a list of other runs that cannot be had is said, and ends nothing', async () => {
  const list = async function* () {
    yield { workflowId: 'a', typedSearchAttributes: { get: () => 3 } };
    throw new Error('no visibility store');
  };
  const client = { workflow: { list } } as unknown as Client;
  expect(await otherRuns(client, 'mine', '/a state')).toEqual([
    "also running: a (step 3); to stop it after the step in flight: npm run gradus -- stop a --state-dir '/a state'",
    'other runs that go on could not be listed: no visibility store',
  ]);
});
