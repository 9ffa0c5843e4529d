import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { demonstrationCorpus } from '../../../activities/training/corpus.ts';
import { settingsFor } from '../../../cli/stack-with-workers.ts';
import { ids } from '../../../core/names.ts';
import type { Role } from '../../../core/names.ts';
import { SPECIAL_TOKENS } from '../../../engine/dialect/gradus/special-tokens.ts';
import { trainTokenizer } from '../../../engine/tokenizer/train-bpe.ts';
import { calculatorEnvironment } from '../../../environments/families/calculator/environment.ts';
import { startStack } from '../../../infra/dev/stack.ts';
import type { Stack } from '../../../infra/dev/stack.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { importModel } from '../../../store/training/import-model.ts';
import { readSteps } from '../../../store/training/step-facts.ts';
import { startWorkers } from '../../../workers/all-in-one.ts';
import type { Workers } from '../../../workers/all-in-one.ts';
import { isDone } from '../../support/ended.ts';
import { killAndReplace, killInActivity } from '../../support/kill-workers.ts';
import { RunClient } from '../../support/run-client.ts';
import { TinkerServer } from '../../support/tinker-server/start-tinker-server.ts';
import { tinySpec } from '../../support/tiny-spec.ts';
import { writeTinyQwen } from '../../support/tiny-qwen.ts';

// A whole run that is trained on a server of Tinker's API, and perhaps sampled there: its learner's worker is killed in a
// step, and then all, while the server is started again and has forgotten sessions and models. It comes to the weights of
// a run that nobody disturbed.

const processes: Role[][] = [['orchestrator', 'verifier', 'tool'], ['rollout'], ['learner']];
const tiny = tinySpec({ maxSteps: 4, groupsPerStep: 4, groupsPerWorkflow: 4 });
const [warmStart, rl] = tiny.stages;
const { model: _, ...rest } = tiny;
const spec = {
  ...rest,
  model: { from: 'brought', lora: { rank: 4, alpha: 32 } },
  stages: [
    { ...warmStart, updatesPerRound: 8, maxRounds: 1 },
    { ...rl, algorithm: { ...rl.algorithm, beta: 0 } },
  ],
};

let folder: string;
let stack: Stack;
let workers: Workers;
let runs: RunClient;
let store: ObjectStore;
let server: TinkerServer;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-tinker-run-'));
  const tokenizer = trainTokenizer(demonstrationCorpus([calculatorEnvironment()], 50), 400, SPECIAL_TOKENS);
  const model = path.join(folder, 'brought');
  await writeTinyQwen(model, JSON.stringify(tokenizer), { maxPositions: 128 });
  server = await TinkerServer.start({ model, state: path.join(folder, 'state'), flags: ['--grad-clip'] });
  stack = await startStack(path.join(folder, 'stack'), { ui: false });
  const settings = settingsFor(stack, { GRADUS_TINKER_URL: server.url });
  workers = await startWorkers(settings, { processes, logFile: path.join(folder, 'workers.log') });
  store = await ObjectStore.connect(settings.store);
  await importModel(store, model, 'brought');
  runs = await RunClient.connect(settings);
}, 600_000);

afterAll(async () => {
  await server?.kill();
  store?.close();
  await runs?.close();
  await workers?.stop();
  await stack?.stop();
  await rm(folder, { recursive: true, force: true });
});

const factsOf = async (run: string) =>
  (await readSteps(store, run)).map(({ stage, stageStep, learner, checkpoint }) => ({
    stage,
    stageStep,
    loss: learner?.loss,
    weights: checkpoint.weights,
  }));

test('what a later stage asks for and the server lacks is said before anything is spent', async () => {
  // The KL of the tiny run, behind a warm start that the server can train.
  const stages = [spec.stages[0], rl];
  const handle = await runs.start('refused', { ...spec, stages });
  await expect(handle.result()).rejects.toMatchObject({
    cause: {
      cause: {
        message: expect.stringMatching(/^stage rl: Tinker's API has not: a KL to a reference/) as string,
      },
    },
  });
  expect(await server.asked()).toEqual(['get_server_capabilities', '/openapi.json']);
  expect(await store.list('runs/refused/')).toEqual([]);
}, 600_000);

const trained = { workers: ['learner'], policy: () => ({}) };
const sampledToo = {
  workers: ['learner', 'rollout'],
  policy: () => ({ policy: { kind: 'http', server: 'tinker', urls: [server.url] } }),
};

test.each([
  ['trains', trained],
  ['trains and samples', sampledToo],
] as const)(
  'killed workers, and a server that %s and forgot its models, change nothing of what a run comes to',
  async (how, { policy, workers: roles }) => {
    const [quiet, name] = [`left-alone-${how}`, `killed-${how}`].map((one) => one.replaceAll(' ', '-'));
    const asked = { ...spec, ...policy() };
    const alone = await (await runs.start(quiet!, asked)).result();
    expect(isDone(alone.end)).toBe(true);
    const handle = await runs.start(name!, asked);
    await killInActivity({ workers, runs }, () => ids.stage(name!, 'warm-start'), 'trainStep', 'learner');
    await runs.progress(handle, ({ step }) => step?.stage === 'rl' && step.stageStep >= 1);
    await server.restart();
    await killAndReplace(workers, ...(roles as Role[]));
    const killed = await handle.result();
    expect(killed.checkpoint.weights).toBe(alone.checkpoint.weights);
    expect(await factsOf(name!)).toEqual(await factsOf(quiet!));
    const moved = new Set((await factsOf(name!)).map(({ weights }) => weights));
    expect(moved.size).toBeGreaterThan(2);
    const parts = await store.list(`runs/${name}/parts/rl/`);
    expect(parts.some(({ key }) => key.includes('/sampled-'))).toBe(how === 'trains and samples');
  },
  600_000,
);
