import { afterAll, expect, test } from 'vitest';
import { startOrGoOn } from '../../../cli/run-spec.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Nobody works here: what is started waits, as what was interrupted does.
const installation = await startTestInstallation({ processes: [] });
afterAll(() => installation.remove());
const { client } = installation.runs;

test('a demo that was interrupted goes on with its own spec, and refuses another one', async () => {
  const spec = tinySpec();
  const first = await (await startOrGoOn(client, 'demo-mine', spec)).describe();
  const again = await (await startOrGoOn(client, 'demo-mine', structuredClone(spec))).describe();
  expect(again.runId).toBe(first.runId);
  await expect(startOrGoOn(client, 'demo-mine', { ...spec, seed: 7 })).rejects.toMatchObject({
    boundary: 'spec',
    type: 'changed',
  });
  expect((await client.workflow.getHandle('demo-mine').describe()).runId).toBe(first.runId);
});

test('what the Temporal CLI has started is gone on with', async () => {
  const started = await (await installation.runs.start('demo-by-hand', tinySpec())).describe();
  const found = await (await startOrGoOn(client, 'demo-by-hand', tinySpec())).describe();
  expect(found.runId).toBe(started.runId);
});

test('a run whose name another one had, which has ended, says so; one that goes on says nothing', async () => {
  const said: string[] = [];
  const start = () => startOrGoOn(client, 'demo-again', tinySpec(), (text) => said.push(text));
  const first = await start();
  const { runId } = await (await start()).describe();
  expect(said).toEqual([]);
  await first.terminate('ended');
  const second = await start();
  expect(said).toEqual([expect.stringMatching(/^demo-again has ended before, at .*This is another run/)]);
  expect((await second.describe()).runId).not.toBe(runId);
});
