import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { connect } from '../../../activities/rollout/served/connection.ts';
import { createTraining } from '../../../activities/training/learner.ts';
import { TinkerClient } from '../../../activities/training/tinker/client.ts';
import { createTinkerTraining } from '../../../activities/training/tinker/learner.ts';
import { exportModel } from '../../../cli/export-model.ts';
import type { Objective } from '../../../core/algorithms/objective.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import type { Learner, TrainBatch } from '../../../engine/learner/contract.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { putBatch } from '../../../store/training/batches.ts';
import { loadCheckpoint } from '../../../store/training/checkpoints.ts';
import { caseBatch } from '../../support/engine/learner-cases.ts';
import { apart, caseOf, sizeOf } from '../../support/learner-steps.ts';
import { openTestStore } from '../../support/test-store.ts';
import { TinkerServer } from '../../support/tinker-server/start-tinker-server.ts';
import type { TinkerFault, TinkerFlag } from '../../support/tinker-server/start-tinker-server.ts';
import { lora, OBJECTIVES } from '../../support/tinker-server/objectives.ts';

// A learner on a server of Tinker's API makes the steps of our own, each once, whatever is lost on the way.

const { store } = await openTestStore();
const { signal } = new AbortController();
/** Part of what the two steps have moved that learners may differ by. */
const MOST_APART = 2e-3;

let folder: string;
let learner: Learner;
const servers: TinkerServer[] = [];
let runs = 0;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-tinker-'));
  learner = await createLocalLearner();
  const { first } = await caseOf(store, 'base', { name: 'base', objective: { kind: 'supervised' } });
  await exportModel(store, first, path.join(folder, 'base'), {
    dtype: 'F32',
    maxShardBytes: 1e9,
    onnx: false,
  });
}, 600_000);

// Each holds half a gigabyte.
afterEach(() => Promise.all(servers.map((server) => server.kill())));

afterAll(async () => {
  await learner?.close();
  await rm(folder, { recursive: true, force: true });
});

async function serverWith(...flags: TinkerFlag[]): Promise<TinkerServer> {
  const options = {
    model: path.join(folder, 'base'),
    state: path.join(folder, `state-${servers.length}`),
    flags,
  };
  const server = await TinkerServer.start(options);
  servers.push(server);
  return server;
}

const trainerOf = (server: TinkerServer, key?: string) =>
  createTinkerTraining({
    store,
    client: new TinkerClient(connect(server.url, 60, key), 60),
    key,
    reference: () => createLocalLearner(),
  });

/** Requests of a new run: its first step, and one that goes on. */
async function requestsOf(
  objective: Objective,
  maxGradientNorm = 0,
  edit: (batch: TrainBatch) => void = () => undefined,
) {
  const run = `run-${++runs}`;
  const updates = objective.kind === 'supervised' ? undefined : { minibatch: 5, epochs: 2 };
  const one = { name: run, objective, ...(updates && { updates }) };
  const { first, request } = await caseOf(store, run, one);
  const batch = caseBatch(one);
  edit(batch);
  const { ref } = await putBatch(store, `runs/${run}/own.safetensors`, batch);
  return (step: number, parent = first): TrainRequest => {
    const asked = request(step, parent);
    return { ...asked, batch: ref, lora, optimizer: { ...asked.optimizer, maxGradientNorm } };
  };
}

const weightsOf = async (ref: TrainRequest['parent']) =>
  (await loadCheckpoint(store, ref)).state.adapter!.weights;

/** Two steps here and two by our own learner move the weights alike; the second begins with empty moments. */
async function expectSame(
  server: TinkerServer,
  objective: Objective,
  maxGradientNorm = 0,
  edit?: (batch: TrainBatch) => void,
): Promise<void> {
  const tinker = trainerOf(server);
  const own = createTraining({ store, learner });
  const [here, there] = [
    await requestsOf(objective, maxGradientNorm, edit),
    await requestsOf(objective, maxGradientNorm, edit),
  ];
  let [a, b] = [here(1).parent, there(1).parent];
  for (const step of [1, 2, 3]) {
    const more = { resetOptimizer: step === 3 };
    const [one, other] = [
      await tinker.trainStep({ ...here(step, a), ...more }, signal),
      await own.trainStep({ ...there(step, b), ...more }, signal),
    ];
    [a, b] = [one.checkpoint, other.checkpoint];
    expect(one.metrics.loss).toBeCloseTo(other.metrics.loss!, 3);
    expect(one.metrics.gradientNorm).toBeCloseTo(other.metrics.gradientNorm!, 3);
    expect(one.metrics.updates).toBe(other.metrics.updates);
    expect('effectiveSamples' in one.metrics).toBe('effectiveSamples' in other.metrics);
    // Our own learner has those of before the first update where its loss reads them.
    if (['clipped', 'cispo'].includes(objective.kind))
      expect(one.metrics.logprobGapMean).toBeCloseTo(other.metrics.logprobGapMean!, 4);
  }
  const [made, expected] = [await weightsOf(a), await weightsOf(b)];
  expect(apart(made, expected) / sizeOf(expected)).toBeLessThan(MOST_APART);
  tinker.close();
}

test.each(Object.entries(OBJECTIVES))(
  'a server that sums its losses makes the steps of %s',
  async (_, objective) => expectSame(await serverWith('--grad-clip'), objective, 0.5),
  120_000,
);

test.each(['supervised', 'clipped'])(
  'one that takes means of them, and has no clip of the gradient, makes those of %s',
  async (name) => expectSame(await serverWith('--mean'), OBJECTIVES[name]!),
  120_000,
);

test('a server that is asked in protobuf makes the steps that one in JSON makes, to the bit', async () => {
  const [json, protobuf] = [await serverWith(), await serverWith('--protobuf')];
  for (const [name, objective] of Object.entries(OBJECTIVES)) {
    const expected = await twoSteps(json, objective);
    const made = await twoSteps(protobuf, objective);
    expect(made.failures).toBe(0);
    expect(apart(made.weights, expected.weights), name).toBe(0);
  }
}, 120_000);

test('a server that does not publish its schema is asked as its own client asks', async () => {
  const server = await serverWith('--protobuf');
  const answer = { status: 404, body: { detail: 'Not Found' } };
  await server.fault({ route: '/openapi.json', kind: 'answer', times: 10, answer });
  await expectSame(server, OBJECTIVES['cispo']!);
}, 120_000);

test('an update in which nothing has an advantage counts for Adam, as with our own learner', async () => {
  await expectSame(await serverWith('--protobuf'), OBJECTIVES['clipped']!, 0, ({ updates, ...batch }) => {
    for (const sequence of updates[1]!)
      batch.streams.advantages!.fill(0, batch.offsets[sequence], batch.offsets[sequence + 1]);
  });
}, 120_000);

test('the key of the API goes to the server, and not to where an archive lies', async () => {
  const server = await serverWith('--key=ours');
  const request = await requestsOf(OBJECTIVES['clipped']!);
  await expect(trainerOf(server).trainStep(request(1), signal)).rejects.toMatchObject({
    type: 'server-refused',
    message: expect.stringMatching(/GRADUS_TINKER_KEY/) as string,
  });
  const made = await trainerOf(server, 'ours').trainStep(request(1), signal);
  expect(made.metrics.updates).toBeGreaterThan(0);
}, 120_000);

test.each([
  ['sums', []],
  ['takes means of', ['--mean' as const]],
])(
  'a batch that is cut by tokens makes the step of the whole, where a server %s losses',
  async (_, flags) => {
    const server = await serverWith(...flags);
    const request = (await requestsOf(OBJECTIVES['clipped']!))(1);
    const stepOf = async (run: string, microBatchTokens: number) => {
      const before = (await server.asked()).length;
      const tinker = trainerOf(server);
      const compute = { precision: 'float32' as const, gradientCheckpointing: false, microBatchTokens };
      const { checkpoint } = await tinker.trainStep({ ...request, run, compute }, signal);
      tinker.close();
      const asked = (await server.asked()).slice(before).filter((route) => route === 'forward_backward');
      return { weights: await weightsOf(checkpoint), requests: asked.length };
    };
    const whole = await stepOf(`whole-${flags.length}`, 0);
    const cut = await stepOf(`cut-${flags.length}`, 30);
    expect(cut.requests).toBeGreaterThan(whole.requests);
    // Log-probs of another batch are rounded otherwise, in float32.
    expect(apart(cut.weights, whole.weights) / sizeOf(whole.weights)).toBeLessThan(1e-6);
  },
  120_000,
);

/** What two steps come to when nothing goes wrong. */
async function undisturbed(server: TinkerServer) {
  return twoSteps(server, OBJECTIVES['clipped']!);
}

/** Each step is tried until it is made, as Temporal does; a failure must say that this can help. */
async function twoSteps(
  server: TinkerServer,
  objective: Objective,
  disturb: (step: number) => Promise<void> = async () => undefined,
) {
  const request = await requestsOf(objective);
  let parent = request(1).parent;
  let failures = 0;
  for (const step of [1, 2]) {
    await disturb(step);
    for (;;) {
      // The worker was killed: nothing is left but what is stored.
      const tinker = trainerOf(server);
      try {
        parent = (await tinker.trainStep(request(step, parent), signal)).checkpoint;
        break;
      } catch (error) {
        if (++failures > 10) throw error;
        expect(error).toMatchObject({ boundary: 'learner', retryable: true });
      } finally {
        tinker.close();
      }
    }
  }
  return { weights: await weightsOf(parent), failures };
}

test.each([
  ['JSON', []],
  ['protobuf', ['--protobuf' as const]],
])(
  'whatever is lost in the middle of a step, the step is made once, in %s',
  async (wire, flags) => {
    const server = await serverWith(...flags);
    const expected = await undisturbed(server);
    expect(expected.failures).toBe(0);
    const lost: [TinkerFault, number][] = [
      // The gradient was added, and nobody heard of it.
      [{ route: 'forward_backward', kind: 'cut', times: 1 }, 1],
      // The weights were moved, and nobody heard of it.
      [{ route: 'optim_step', kind: 'cut', times: 1 }, 1],
      [{ route: 'save_weights', kind: 'cut', times: 1 }, 1],
      [{ route: 'forward_backward', kind: 'error-server', times: 1 }, 1],
      [{ route: 'forward_backward', kind: 'no-logprobs', times: 1 }, 1],
      [{ route: 'create_model', kind: 'unavailable', times: 1 }, 1],
      // What only looks is looked at again.
      [{ route: 'retrieve_future', kind: 'unavailable', times: 2 }, 0],
      [{ route: 'retrieve_future', kind: 'cut', times: 2 }, 0],
      [{ route: 'retrieve_future', kind: 'still', times: 2 }, 0],
      [{ route: 'retrieve_future', kind: 'try-again', times: 2 }, 0],
      // What is counted has a place in the sequence, which nobody knows now.
      [{ route: 'forward', kind: 'cut', times: 1 }, wire === 'JSON' ? 0 : 1],
    ];
    for (const [fault, failures] of lost) {
      const made = await twoSteps(server, OBJECTIVES['clipped']!, async (step) => {
        if (step === 2) await server.fault(fault);
      });
      expect(made.failures, JSON.stringify(fault)).toBe(failures);
      expect(apart(made.weights, expected.weights), JSON.stringify(fault)).toBe(0);
    }
  },
  600_000,
);

test('a server that knows a place in the sequence is asked again, and adds the gradient once', async () => {
  const server = await serverWith('--seq-id');
  const expected = await undisturbed(server);
  const made = await twoSteps(server, OBJECTIVES['clipped']!, async () => {
    await server.fault({ route: 'forward_backward', kind: 'cut', times: 2 });
    await server.fault({ route: 'optim_step', kind: 'cut', times: 2 });
  });
  expect(made.failures).toBe(0);
  expect(apart(made.weights, expected.weights)).toBe(0);
}, 600_000);

test('a server that was started again and forgot its models goes on from what it has saved', async () => {
  const server = await serverWith();
  const expected = await undisturbed(server);
  const request = await requestsOf(OBJECTIVES['clipped']!);
  const tinker = trainerOf(server);
  const first = await tinker.trainStep(request(1), signal);
  await server.restart();
  const second = request(2, first.checkpoint);
  await expect(tinker.trainStep(second, signal)).rejects.toMatchObject({
    type: 'server-forgot',
    retryable: true,
  });
  const made = await tinker.trainStep(second, signal);
  expect(apart(await weightsOf(made.checkpoint), expected.weights)).toBe(0);
  // What was committed counts, and the server is not asked.
  const before = (await server.asked()).length;
  expect(await trainerOf(server).trainStep(second, signal)).toMatchObject({ checkpoint: made.checkpoint });
  expect(await server.asked()).toHaveLength(before);
  tinker.close();
}, 600_000);

test('an error that is called the user’s is not tried again', async () => {
  const server = await serverWith();
  await server.fault({ route: 'forward_backward', kind: 'error-user', times: 1 });
  const request = await requestsOf(OBJECTIVES['clipped']!);
  await expect(trainerOf(server).trainStep(request(1), signal)).rejects.toMatchObject({
    type: 'server-refused',
    retryable: false,
  });
}, 600_000);

test('a server that holds another model than the run begins with is found out before anything is trained', async () => {
  const { first } = await caseOf(store, 'other', {
    name: 'other',
    objective: { kind: 'supervised' },
    reference: true,
  });
  const reference = (
    await caseOf(store, 'other', { name: 'other', objective: { kind: 'supervised' }, reference: true })
  ).request(1, first).reference!;
  const request = await requestsOf(OBJECTIVES['clipped']!);
  const server = await serverWith();
  await expect(
    trainerOf(server).trainStep({ ...request(1, reference), run: 'other-reference' }, signal),
  ).rejects.toMatchObject({
    type: 'settings',
    message: expect.stringMatching(/nats a token apart/) as string,
  });
}, 600_000);

test('what the API or the server lacks is refused by name, and nothing is computed', async () => {
  const server = await serverWith();
  const tinker = trainerOf(server);
  const clipped = OBJECTIVES['clipped']! as Extract<Objective, { kind: 'clipped' }>;
  const request = await requestsOf(clipped);
  const base = request(1);
  const refused: [Partial<TrainRequest>, RegExp][] = [
    [{ objective: null }, /a critic/],
    [{ critic: { clip: 0, optimizer: base.optimizer } }, /a critic/],
    [
      {
        objective: { kind: 'dpo', variant: 'sigmoid', beta: 0.1, labelSmoothing: 0, temperature: 1, topK: 0 },
      },
      /the loss dpo/,
    ],
    [
      { objective: { kind: 'gspo', clipRatioLow: 0.1, clipRatioHigh: 0.1, temperature: 1, topK: 0 } },
      /the loss gspo/,
    ],
    [{ objective: { ...clipped, beta: 0.01 } }, /a KL to a reference/],
    [{ objective: { ...clipped, temperature: 0.7 } }, /temperature 0.7/],
    [{ objective: { ...clipped, topK: 4 } }, /likeliest tokens/],
    [{ objective: { ...clipped, entropyBonus: 0.1 } }, /an entropy bonus/],
    [{ objective: { ...clipped, importanceRule: 'difference' } }, /the rule "difference"/],
    [{ reference: base.parent }, /a reference/],
    [{ teachers: [base.parent] }, /teachers/],
    [{ optimizer: { ...base.optimizer, maxGradientNorm: 1 } }, /a clip of the gradient norm/],
    [
      { compute: { precision: 'bfloat16', gradientCheckpointing: false, microBatchTokens: 0 } },
      /a precision/,
    ],
    [{ lora: undefined }, /training of all weights/],
    [{ lora: { ...lora, alpha: 16 } }, /scaled otherwise than by 32/],
    [{ lora: { ...lora, targetModules: ['q_proj'] } }, /an adapter of some modules/],
  ];
  for (const [change, why] of refused)
    await expect(tinker.trainStep({ ...base, ...change }, signal), String(why)).rejects.toMatchObject({
      boundary: 'learner',
      type: 'settings',
      retryable: false,
      message: expect.stringMatching(why) as string,
    });
  await expect(tinker.judgeEpisodes({} as never, signal)).rejects.toMatchObject({ type: 'settings' });
  await expect(tinker.scoreTokens({} as never, signal)).rejects.toMatchObject({ type: 'settings' });
  expect(new Set(await server.asked())).toEqual(new Set(['get_server_capabilities', '/openapi.json']));
}, 600_000);
