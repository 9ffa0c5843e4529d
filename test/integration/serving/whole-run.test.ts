import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { storedEpisode } from '../../../activities/replay/stored-episode.ts';
import { exportModel } from '../../../cli/export-model.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import type { Role } from '../../../core/names.ts';
import type { CurriculumResult } from '../../../core/training/curriculum.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { sampledPieces } from '../../../store/rollout/sampled-pieces.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { SERVED_IMPORTANCE_CAP } from '../../../core/schema/policy.ts';
import { specOfRun } from '../../../store/run/find-run.ts';
import { checkpointOf } from '../../../store/training/find-checkpoints.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { decide } from '../../../workflows/control/messages.ts';
import { isDone } from '../../support/ended.ts';
import { killAndReplace } from '../../support/kill-workers.ts';
import { startPolicyServer } from '../../support/policy-server/start-policy-server.ts';
import type { PolicyServer } from '../../support/policy-server/start-policy-server.ts';
import { RunClient } from '../../support/run-client.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// A whole curriculum whose policy is on two servers, one of which is killed, as the rollout worker is: nothing is sampled
// twice, and what was sampled can be trained on again to the same weights.

const processes: Role[][] = [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']];
const tiny = tinySpec({ maxSteps: 4, groupsPerStep: 8, groupsPerWorkflow: 4 });
const [warmStart, rl] = tiny.stages;
// Enough for most episodes to be well formed.
const shown = { updatesPerRound: 300, maxRounds: 1, optimizer: { learningRate: 0.01 } };
const spec = { ...tiny, stages: [{ ...warmStart, ...shown }, rl] };

let folder: string;
let stack: Stack;
let workers: Workers;
let runs: RunClient;
let store: ObjectStore;
let local: CurriculumResult;
const servers: PolicyServer[] = [];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-served-run-'));
  stack = await startStack(path.join(folder, 'stack'), { ui: false });
  const settings = settingsFor(stack, {});
  workers = await startWorkers(settings, { processes, logFile: path.join(folder, 'workers.log') });
  store = await ObjectStore.connect(settings.store);
  runs = await RunClient.connect(settings);
  local = await (await runs.start('local', spec)).result();
  const base = path.join(folder, 'base');
  const first = await checkpointOf(store, { run: 'local', step: 1 });
  await exportModel(store, first, base, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
  for (let i = 0; i < 2; i++)
    servers.push(await startPolicyServer({ dialect: 'vllm', model: base, weightVersions: true }));
}, 600_000);

afterAll(async () => {
  await Promise.all(servers.map((server) => server.kill()));
  store?.close();
  await runs?.close();
  await workers?.stop();
  await stack?.stop();
  await rm(folder, { recursive: true, force: true });
});

async function piecesOf(run: string) {
  const listed = await store.list(`runs/${run}/parts/`);
  const keys = listed.map(({ key }) => key).filter((key) => key.includes('/sampled-'));
  return Promise.all(keys.map((key) => store.find(key, sampledPieces)));
}

/** Standard errors that two shares of as many tasks may be apart. */
const MOST_ERRORS = 4;

/**
 * Seeds of a served run are those of the decoder, but draws are not: the same policy within the error of what was measured.
 * A policy of this size hardly solves a task, but it has learnt to call the tool and to answer as it should, which the first
 * weights do not.
 */
function expectAsGood(served: CurriculumResult): void {
  const share = ({ after }: CurriculumResult) => {
    const { compliant, episodes } = after!.conduct![0]!;
    return { share: compliant / episodes, trials: episodes };
  };
  const [one, other] = [share(local), share(served)];
  expect(one.share).toBeGreaterThan(0.5);
  const mean = (one.share + other.share) / 2;
  const error = Math.sqrt(Math.max(0.01, mean * (1 - mean)) * (1 / one.trials + 1 / other.trials));
  expect(Math.abs(one.share - other.share)).toBeLessThan(MOST_ERRORS * error);
}

test('a server and the rollout worker are killed in the middle, and the run ends as well as with the decoder', async () => {
  const urls = servers.map(({ url }) => url);
  const policy = {
    kind: 'http',
    server: 'vllm',
    urls,
    folder: path.join(folder, 'staged'),
    tolerance: 1e-3,
    maxLogprobGap: 0.01,
  };
  const handle = await runs.start('served', { ...spec, policy });
  const busy = 300_000;
  await runs.progress(handle, ({ phase, step }) => phase === 'rl' && (step?.stageStep ?? 0) >= 1, busy);
  await servers[0]!.kill();
  await runs.progress(handle, ({ step }) => (step?.stageStep ?? 0) >= 2, busy);
  await killAndReplace(workers, 'rollout');
  await servers[0]!.restart();
  const served = await handle.result();
  // Whether one of its few successes is drawn is chance, and `end` says no more than that: all steps are done.
  expect(['completed', 'no-success']).toContain(served.end);
  expect(served.steps).toBe(local.steps);

  const parts = await store.list('runs/served/parts/rl/');
  expect(parts.some(({ key }) => key.includes('/sampled-'))).toBe(true);
  const pieces = await piecesOf('served');
  expect(pieces.length).toBeGreaterThan(100);
  for (const piece of pieces) {
    const { weights, versions } = piece!.served!;
    expect(versions).toEqual([{ version: weights, start: 0, end: piece!.tokens.length }]);
  }
  // What a server sampled is not sampled again by a decoder.
  const place = { run: 'served', stage: 'rl', step: 1, group: 0, episode: 0 };
  await expect(storedEpisode(store, place)).rejects.toMatchObject({ boundary: 'store', type: 'served' });
  expectAsGood(served);

  const again = await (
    await runs.start('recorded', { ...spec, policy: { kind: 'recorded', run: 'served' } })
  ).result();
  expect(again.checkpoint.weights).toBe(served.checkpoint.weights);
}, 600_000);

/** Rounds weights to bfloat16 for the servers, which sample with them in float32. */
const roundedPolicy = (over: object = {}) => ({
  kind: 'http',
  server: 'vllm',
  urls: servers.map(({ url }) => url),
  folder: path.join(folder, 'staged'),
  dtype: 'bfloat16',
  ...over,
});
const rlSteps = async (run: string) => (await readSteps(store, run)).filter(({ stage }) => stage === 'rl');

test('with weights in bfloat16 on the servers the run ends as well, and each step says how far they are from the learner', async () => {
  const served = await (await runs.start('rounded', { ...spec, policy: roundedPolicy() })).result();
  expect(isDone(served.end)).toBe(true);
  expect(served.steps).toBe(local.steps);
  expectAsGood(served);
  const steps = await rlSteps('rounded');
  expect(steps).toHaveLength(4);
  for (const { learner } of steps) {
    // Far above the rounding of engines in float32, and within what a step is trained on.
    expect(learner!.logprobGapMean).toBeGreaterThan(1e-4);
    expect(learner!.logprobGapMean).toBeLessThan(0.02);
    expect(learner!.logprobGapMax).toBeGreaterThanOrEqual(learner!.logprobGapMean!);
    // Its tokens are weighed by importance, and the weights are near to 1.
    expect(learner!.effectiveSamples!.tokens).toBeGreaterThan(0.9);
    expect(learner!.effectiveSamples!.tokens).toBeLessThan(1);
  }
  const written = (await specOfRun(store, 'rounded', { damaged: [] }))!.stages[1];
  expect(written).toMatchObject({ plan: { objective: { importanceCap: SERVED_IMPORTANCE_CAP } } });
  for (const piece of await piecesOf('rounded')) {
    const { weights, versions } = piece!.served!;
    expect(versions).toEqual([{ version: weights, start: 0, end: piece!.tokens.length }]);
  }
}, 600_000);

test('a step whose samples are further from the learner than the bound asks before it trains anything', async () => {
  const handle = await runs.start('bounded', { ...spec, policy: roundedPolicy({ maxLogprobGap: 1e-5 }) });
  const { question, step } = await runs.progress(handle, ({ status }) => status === 'waiting', 300_000);
  expect(question!.reason).toMatch(
    /step 1 was not trained: .* nats a token from the learner's, with a bound of 0.00001/,
  );
  expect(step).toMatchObject({ stage: 'rl', stageStep: 1 });
  await handle.executeUpdate(decide, { args: ['stop', question!.id] });
  const { end, checkpoint } = await handle.result();
  expect(end).toBe('stopped');
  const [warmStart, asked] = await readSteps(store, 'bounded');
  expect(checkpoint.weights).toBe(warmStart!.checkpoint.weights);
  expect(asked).toMatchObject({ stage: 'rl', learner: null });
}, 600_000);

test('a run whose servers cannot do what it asks fails before anything is spent, and says why', async () => {
  const old = await startPolicyServer({
    dialect: 'vllm',
    model: path.join(folder, 'base'),
    scaleOut: false,
  });
  servers.push(old);
  const policy = { kind: 'http', server: 'vllm', urls: [old.url], folder: path.join(folder, 'staged') };
  const handle = await runs.start('refused', { ...spec, policy });
  await expect(handle.result()).rejects.toMatchObject({
    cause: { cause: { message: expect.stringMatching(/does not say which weights made a token/) as string } },
  });
  expect(await store.list('runs/refused/checkpoints/')).toEqual([]);
}, 600_000);
