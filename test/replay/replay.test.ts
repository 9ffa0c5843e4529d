import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { historyFromJSON } from '@temporalio/common/lib/proto-utils.js';
import { bundleWorkflowCode, DefaultLogger, Runtime, Worker } from '@temporalio/worker';
import { DeterminismViolationError } from '@temporalio/workflow';
import { beforeAll, describe, expect, test } from 'vitest';

// Runs that were started with an earlier version go on with the workflows of today: the histories that it left must
// replay. `record.ts` says what to do when one does not.

const HISTORIES = path.join(import.meta.dirname, 'histories');
const logger = new DefaultLogger('ERROR');

type Bundle = Awaited<ReturnType<typeof bundleWorkflowCode>>;
const bundle = (workflowsPath: string): Promise<Bundle> => bundleWorkflowCode({ workflowsPath, logger });
const workflowsOfToday = fileURLToPath(new URL('../../workflows/index.ts', import.meta.url));

const replay = (workflowBundle: Bundle, version: string, name: string): Promise<void> => {
  const text = readFileSync(path.join(HISTORIES, version, `${name}.json`), 'utf8');
  return Worker.runReplayHistory({ workflowBundle }, historyFromJSON(JSON.parse(text)), name);
};

let today: Bundle;
beforeAll(async () => {
  Runtime.install({ logger, telemetryOptions: { logging: { filter: 'error' } } });
  today = await bundle(workflowsOfToday);
});

describe.each(readdirSync(HISTORIES))('histories of %s', (version) => {
  test.each(readdirSync(path.join(HISTORIES, version)).map((file) => path.basename(file, '.json')))(
    '%s replays',
    (name) => replay(today, version, name),
  );
});

test('a history says nothing of the machine that recorded it, and all of them are small', () => {
  let bytes = 0;
  for (const version of readdirSync(HISTORIES)) {
    for (const file of readdirSync(path.join(HISTORIES, version))) {
      const text = readFileSync(path.join(HISTORIES, version, file), 'utf8');
      bytes += text.length;
      expect(text).not.toMatch(/stackTrace|@[\w.-]+:/);
    }
  }
  // Every clone carries them: fourteen kinds of workflows, at 44 kB each.
  expect(bytes).toBeLessThan(640_000);
});

test.each([
  ['a workflow that does things in another order', 'verifies-first', 'rollout-group'],
  ['a workflow that only waits a little before it does the same', 'waits-first', 'stage'],
])('%s is found out', async (_, changed, history) => {
  const workflows = await bundle(path.join(import.meta.dirname, 'changed', `${changed}.ts`));
  await expect(replay(workflows, '0.1.0', history)).rejects.toThrow(DeterminismViolationError);
});
