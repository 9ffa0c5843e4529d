import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { connect } from '../../../activities/rollout/served/connection.ts';
import { tinker } from '../../../activities/rollout/served/tinker.ts';
import { TinkerClient } from '../../../activities/training/tinker/client.ts';
import { createTinkerTraining } from '../../../activities/training/tinker/learner.ts';
import { exportModel } from '../../../cli/export-model.ts';
import type { CheckpointRef } from '../../../core/refs.ts';
import type { TrainRequest } from '../../../core/requests/learner.ts';
import { createLocalLearner } from '../../../engine/learner/local-learner.ts';
import { putBatch } from '../../../store/training/batches.ts';
import { metricsKey, tinkerKey } from '../../../store/keys.ts';
import { serverStates } from '../../../store/training/server-states.ts';
import { caseBatch } from '../../support/engine/learner-cases.ts';
import { caseOf } from '../../support/learner-steps.ts';
import { openTestStore } from '../../support/test-store.ts';
import { lora, OBJECTIVES } from '../../support/tinker-server/objectives.ts';
import { TinkerServer } from '../../support/tinker-server/start-tinker-server.ts';
import type { TinkerFault } from '../../support/tinker-server/start-tinker-server.ts';

// What a server of Tinker's API, or what stands before it, answers in place of an answer: nothing wrong is ever committed, what
// passes is waited for, and what does not pass is said once.

const { store } = await openTestStore();
const { signal } = new AbortController();
const OBJECTIVE = OBJECTIVES['clipped']!;

let folder: string;
let server: TinkerServer;
let runs = 0;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-tinker-hostile-'));
  const { first } = await caseOf(store, 'base', { name: 'base', objective: { kind: 'supervised' } });
  const model = path.join(folder, 'base');
  await exportModel(store, first, model, { dtype: 'F32', maxShardBytes: 1e9, onnx: false });
  server = await TinkerServer.start({ model, state: path.join(folder, 'state') });
}, 600_000);

afterAll(async () => {
  await server?.kill();
  await rm(folder, { recursive: true, force: true });
});

const trainer = (reference = false) =>
  createTinkerTraining({
    store,
    client: new TinkerClient(connect(server.url, 60), 60),
    ...(reference && { reference: () => createLocalLearner() }),
  });

/** The first step of a new run. */
async function firstStep(): Promise<TrainRequest> {
  const run = `hostile-${++runs}`;
  const one = { name: run, objective: OBJECTIVE, updates: { minibatch: 5, epochs: 2 } };
  const { first, request } = await caseOf(store, run, one);
  const { ref } = await putBatch(store, `runs/${run}/own.safetensors`, caseBatch(one));
  const asked = request(1, first);
  return { ...asked, batch: ref, lora, optimizer: { ...asked.optimizer, maxGradientNorm: 0 } };
}

const committed = async ({ run, stage, stageStep }: TrainRequest): Promise<boolean> =>
  Boolean(await store.head(metricsKey(run, stage, stageStep)));

const html = (status: number, headers: Record<string, string> = {}) => ({
  status,
  body: '<html><body>a proxy says something</body></html>',
  headers: { 'content-type': 'text/html', ...headers },
});

/** A step is tried once under a fault. Returns what it threw; nothing where it was made. */
async function tryStep(fault: TinkerFault, reference = false): Promise<unknown> {
  await server.fault(fault);
  const request = await firstStep();
  const tinker = trainer(reference);
  try {
    await tinker.trainStep(request, signal);
    return undefined;
  } catch (error) {
    expect(await committed(request)).toBe(false);
    return error;
  } finally {
    tinker.close();
  }
}

test.each([
  ['an empty body', { status: 200 }],
  ['HTML', html(200)],
  ['an error that is no text', { status: 200, body: { error: { message: 'out of memory' } } }],
  ['another computation', { status: 200, body: { type: 'save_weights', path: 'tinker://m/weights/x' } }],
  ['bytes that are called protobuf', html(200, { 'content-type': 'application/x-protobuf' })],
])(
  'a state that was loaded with %s as the answer is not trained on',
  async (_, answer) => {
    expect(await tryStep({ route: 'load_weights', kind: 'result', times: 1, answer })).toMatchObject({
      boundary: 'learner',
      retryable: true,
    });
  },
  300_000,
);

test('a step is not taken as made for bytes that are called protobuf', async () => {
  const answer = html(200, { 'content-type': 'application/x-protobuf' });
  // The first ones find out what the server makes of losses.
  for (const times of [1, 1000]) {
    const error = await tryStep({ route: 'optim_step', kind: 'result', times, answer });
    await server.restart();
    expect(error).toMatchObject({ boundary: 'learner', type: 'server-answer', retryable: true });
  }
}, 300_000);

test.each([
  ['forward', 'of before the step'],
  ['forward_backward', 'of an update'],
  ['archive', 'of the adapter that comes back'],
])(
  'numbers of %s that are not finite are said once, as our own learner says them',
  async (route) => {
    const times = route === 'archive' ? 1 : 1000;
    const error = await tryStep({ route, kind: 'not-finite', times });
    await server.restart();
    expect(error).toMatchObject({ boundary: 'learner', type: 'diverged', retryable: false });
  },
  300_000,
);

test('a norm that is not said is no norm', async () => {
  const error = await tryStep({ route: 'optim_step', kind: 'not-finite', times: 1000 });
  await server.restart();
  expect(error).toBeUndefined();
}, 600_000);

test('what a server asks for time for is waited for', async () => {
  const later = (status: number) => html(status, { 'retry-after': '1' });
  const faults: TinkerFault[] = [
    // Refused before it was taken on, so it can be asked again.
    { route: 'forward_backward', kind: 'answer', times: 2, answer: later(429) },
    { route: 'retrieve_future', kind: 'answer', times: 2, answer: later(429) },
    { route: 'retrieve_future', kind: 'answer', times: 2, answer: later(503) },
    { route: 'archive', kind: 'answer', times: 2, answer: later(503) },
    { route: 'archive', kind: 'cut', times: 1 },
  ];
  for (const fault of faults) {
    const before = (await server.asked()).length;
    expect(await tryStep(fault), JSON.stringify(fault)).toBeUndefined();
    const asked = (await server.asked()).slice(before).filter((route) => route === fault.route);
    const undisturbed = (await server.asked()).length;
    expect(await tryStep({ route: 'none', kind: 'still', times: 1 })).toBeUndefined();
    const usual = (await server.asked()).slice(undisturbed).filter((route) => route === fault.route);
    // Not once every fifth of a second.
    if (fault.route !== 'retrieve_future') expect(asked).toHaveLength(usual.length + fault.times);
  }
}, 600_000);

test.each([
  [200, 'server-answer', true],
  [403, 'server-refused', false],
])(
  'an archive that is HTML, with status %i, is no archive',
  async (status, type, retryable) => {
    const answer = html(status);
    expect(await tryStep({ route: 'archive', kind: 'answer', times: 1, answer })).toMatchObject({
      boundary: 'learner',
      type,
      retryable,
    });
  },
  300_000,
);

test('an address where nobody speaks the API is said at the first request, and once', async () => {
  const elsewhere = new TinkerClient(connect(`${server.url}/elsewhere`, 60), 60);
  const tinker = createTinkerTraining({ store, client: elsewhere });
  const before = (await server.asked()).length;
  await expect(tinker.trainStep(await firstStep(), signal)).rejects.toMatchObject({
    boundary: 'learner',
    type: 'server-refused',
    retryable: false,
    message: expect.stringMatching(/answered 404.*without its \/api\/v1$/) as string,
  });
  expect((await server.asked()).slice(before)).toHaveLength(1);
}, 60_000);

const refusals: [what: string, fault: Omit<TinkerFault, 'times'>, why: RegExp][] = [
  [
    'a key that the server does not know',
    { route: 'create_model', kind: 'answer', answer: { status: 401, body: { detail: 'API key not found' } } },
    /answered 401.*GRADUS_TINKER_KEY/,
  ],
  [
    'a server without sessions',
    { route: 'create_session', kind: 'answer', answer: { status: 404, body: { detail: 'Not Found' } } },
    /answered 404.*without its \/api\/v1/,
  ],
  [
    'a body that the server does not take',
    { route: 'optim_step', kind: 'answer', answer: { status: 422, body: { detail: 'eps is missing' } } },
    /answered 422.*eps is missing/,
  ],
  [
    'a server that gives no archives',
    { route: 'archive', kind: 'answer', answer: { status: 404, body: { detail: 'Not Found' } } },
    /answered 404.*Start a server that sends it/,
  ],
  [
    'an archive on the server’s own disk, as TuFT 0.2.2 has it',
    {
      route: 'archive',
      kind: 'answer',
      answer: { status: 302, headers: { location: 'file:///saved/adapter' } },
    },
    /the adapter is at file:.*Start a server that sends it/,
  ],
  [
    'an archive at no address',
    { route: 'archive', kind: 'answer', answer: { status: 302, headers: { location: 'http://' } } },
    /redirects to what is no address/,
  ],
  [
    'an archive at an address of another kind',
    { route: 'archive', kind: 'answer', answer: { status: 302, headers: { location: 's3://bucket/a' } } },
    /redirects to an address of s3:/,
  ],
  [
    'an archive behind a password',
    {
      route: 'archive',
      kind: 'answer',
      answer: { status: 302, headers: { location: 'http://us:secret@localhost/a' } },
    },
    /^(?!.*secret).*redirects to an address with a password/,
  ],
  [
    'an archive behind a page to log in',
    { route: 'archive', kind: 'answer', answer: html(401, { location: '/login' }) },
    /archive answered 401.*GRADUS_TINKER_KEY/,
  ],
];
test.each(refusals)(
  '%s is said once',
  async (_, fault, why) => {
    expect(await tryStep({ ...fault, times: 1 })).toMatchObject({
      boundary: 'learner',
      type: 'server-refused',
      retryable: false,
      message: expect.stringMatching(why) as string,
    });
  },
  60_000,
);

test.each([
  ['a future that expired, as Tinker says it', 'retrieve_future', 410, 'Promise expired'],
  ['a future of before a restart', 'retrieve_future', 404, 'Future not found'],
  ['a model that is gone', 'forward', 404, 'Model not found'],
  ['a session that is gone', 'create_model', 404, 'Session not found'],
])(
  '%s is got anew by another attempt',
  async (_, route, status, detail) => {
    const answer = { status, body: { detail } };
    expect(await tryStep({ route, kind: 'answer', times: 1, answer })).toMatchObject({
      type: 'server-forgot',
      retryable: true,
    });
    expect(await tryStep({ route: 'none', kind: 'still', times: 1 })).toBeUndefined();
  },
  60_000,
);

test('an adapter of another alpha, which computes otherwise, is refused', async () => {
  expect(await tryStep({ route: 'archive', kind: 'alpha', times: 1 })).toMatchObject({
    type: 'settings',
    retryable: false,
    message: expect.stringMatching(/trains one of rank 4 and alpha 8/) as string,
  });
}, 60_000);

test('an archive that is far larger than the adapter is none', async () => {
  expect(await tryStep({ route: 'archive', kind: 'bomb', times: 1 })).toMatchObject({
    type: 'server-answer',
    retryable: true,
  });
}, 60_000);

test('a computation that failed on TuFT 0.2.2, which answers 422, is made again', async () => {
  const answer = { status: 422, body: { detail: 'Future failed: Server error: ray actor died' } };
  expect(await tryStep({ route: 'retrieve_future', kind: 'answer', times: 1, answer })).toMatchObject({
    type: 'server-failed',
    retryable: true,
  });
}, 60_000);

test('what a server says of another’s 429 is no 429: nobody knows whether it has taken the gradient', async () => {
  const countOf = async () => (await server.asked()).filter((one) => one === 'forward_backward').length;
  const before = await countOf();
  const answer = { status: 503, body: { detail: 'gateway: backend answered 429: later' } };
  expect(await tryStep({ route: 'forward_backward', kind: 'answer', times: 1, answer })).toMatchObject({
    type: 'server-away',
    retryable: true,
  });
  expect(await countOf()).toBe(before + 1);
}, 60_000);

test('a server that did not publish its schema this time is trusted with no clip', async () => {
  const request = await firstStep();
  await server.fault({ route: '/openapi.json', kind: 'answer', times: 1, answer: html(200) });
  const clipped = { ...request, optimizer: { ...request.optimizer, maxGradientNorm: 0.5 } };
  await expect(trainer().trainStep(clipped, signal)).rejects.toMatchObject({
    type: 'settings',
    message: expect.stringMatching(/a clip of the gradient norm/) as string,
  });
  await server.fault({ route: '/openapi.json', kind: 'answer', times: 1, answer: html(200) });
  await expect(trainer().trainStep(request, signal)).rejects.toMatchObject({
    type: 'server-refused',
    message: expect.stringMatching(/expected JSON.*asked in protobuf.*openapi/) as string,
  });
}, 60_000);

test('a saved state that was deleted on the server is said once, by its name', async () => {
  const request = await firstStep();
  const first = await trained(request);
  const { state: path } = (await store.find(tinkerKey(request.run, first.weights), serverStates))!;
  const next = { ...request, parent: first, step: 2, stageStep: 2 };
  const lost = {
    boundary: 'learner',
    type: 'state-lost',
    retryable: false,
    message: expect.stringContaining(`no longer has the state ${path}`) as string,
  };
  // SkyRL refuses it before it takes it on.
  const answer = { status: 404, body: { detail: 'Checkpoint not found' } };
  await server.fault({ route: 'load_weights', kind: 'answer', times: 1, answer });
  await expect(trained(next)).rejects.toMatchObject(lost);
  // The same words of a model that is gone are said of what another attempt has anew.
  await server.fault({ route: 'load_weights', kind: 'answer', times: 1, answer });
  await server.fault({ route: 'optim_step', kind: 'answer', times: 5, answer });
  await expect(trained(next)).rejects.toMatchObject({ type: 'server-forgot', retryable: true });
  await server.restart();
  await rm(path.replace('tinker://', `${folder}/state/`).replace('/weights/', '/'));
  await expect(trained(next)).rejects.toMatchObject(lost);
  expect(await committed(next)).toBe(false);
  // Who samples there is told so, too.
  const api = tinker(connect(server.url, 60));
  await expect(api.loadAdapter('one', path, signal)).rejects.toMatchObject({
    boundary: 'policy',
    type: 'server-request',
    retryable: false,
    message: expect.stringMatching(/no longer has that saved state/) as string,
  });
}, 120_000);

/** A step by a learner of its own. */
async function trained(request: TrainRequest): Promise<CheckpointRef> {
  const training = trainer();
  try {
    return (await training.trainStep(request, signal)).checkpoint;
  } finally {
    training.close();
  }
}

test('a model of an attempt that failed is left to nobody', async () => {
  const countOf = async (route: string) => (await server.asked()).filter((one) => one === route).length;
  const faults: TinkerFault[] = [
    // While it is compared with the base that the run begins with, and while it is made ready.
    { route: 'forward', kind: 'error-server', times: 1 },
    { route: 'load_weights', kind: 'error-server', times: 1 },
    { route: 'forward_backward', kind: 'error-server', times: 1 },
  ];
  for (const fault of faults) {
    const [opened, left] = [await countOf('create_model'), await countOf('unload_model')];
    expect(await tryStep(fault, true), fault.route).toMatchObject({ retryable: true });
    expect(await countOf('unload_model'), fault.route).toBe(left + (await countOf('create_model')) - opened);
  }
  const { parent, run } = await firstStep();
  await server.fault({ route: 'forward', kind: 'error-server', times: 1 });
  const [opened, left] = [await countOf('create_model'), await countOf('unload_model')];
  await expect(trainer().probePolicy({ run, checkpoint: parent }, signal)).rejects.toThrow(/engine failed/);
  expect(await countOf('unload_model')).toBe(left + (await countOf('create_model')) - opened);
}, 600_000);

test('a future that never comes is given up as soon as the step is called off', async () => {
  await server.fault({ route: 'retrieve_future', kind: 'try-again', times: 1e9 });
  const request = await firstStep();
  const called = new AbortController();
  const tinker = trainer();
  const trying = tinker.trainStep(request, called.signal);
  const seen = expect(trying).rejects.toThrow('called off');
  await expect.poll(async () => (await server.asked()).includes('retrieve_future')).toBe(true);
  const start = performance.now();
  called.abort(new Error('called off'));
  await seen;
  // Its requests have a minute.
  expect(performance.now() - start).toBeLessThan(30_000);
  tinker.close();
  await server.restart();
}, 600_000);
