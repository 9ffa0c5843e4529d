import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { findCheckpoints } from '../../../store/training/find-checkpoints.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { ids } from '../../../core/names.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { killInActivity } from '../../support/kill-workers.ts';
import { RunClient } from '../../support/run-client.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// A run that trains an adapter resumes as exactly as one that trains all weights.

let stateDir: string;
let stack: Stack;
let workers: Workers;
let runs: RunClient;
let store: ObjectStore;
const spec = {
  ...tinySpec({ maxSteps: 3, groupsPerStep: 32, groupsPerWorkflow: 32, lora: { rank: 4 } }),
  learner: { gradientCheckpointing: true, microBatchTokens: 1024 },
};

beforeAll(async () => {
  stateDir = await mkdtemp(path.join(tmpdir(), 'gradus-lora-'));
  stack = await startStack(stateDir, { ui: false });
  const settings = settingsFor(stack, {});
  workers = await startWorkers(settings, {
    processes: [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']],
    logFile: path.join(stateDir, 'logs', 'workers.log'),
  });
  runs = await RunClient.connect(settings);
  store = await ObjectStore.connect(settings.store);
}, 600_000);

afterAll(async () => {
  store?.close();
  await runs?.close();
  await workers?.stop();
  await stack?.stop();
  await rm(stateDir, { recursive: true, force: true });
});

test('a LoRA run whose learner is killed in mid-step ends with the same adapter', async () => {
  const alone = await runs.start('left-alone', spec);
  const leftAlone = await alone.result();

  const handle = await runs.start('killed', spec);
  await killInActivity({ workers, runs }, () => ids.stage('killed', 'warm-start'), 'trainStep', 'learner');
  const result = await handle.result();
  expect(result.checkpoint.weights).toBe(leftAlone.checkpoint.weights);

  const { checkpoints } = await findCheckpoints(store, 'killed');
  const [base, ...adapters] = checkpoints;
  expect(base!.ref.step).toBe(0);
  expect(adapters.length).toBeGreaterThan(0);
  for (const { manifest } of adapters) {
    expect(manifest.base).toEqual(base!.ref);
    expect(Object.keys(manifest.files)).not.toContain('model.safetensors');
  }
}, 600_000);
