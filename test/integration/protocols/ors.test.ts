import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Environment } from '../../../environments/contract/environment.ts';
import { hostedHere } from '../../../environments/host/hosted-environment.ts';
import { PlayedSession } from '../../../environments/host/played-session.ts';
import { ors } from '../../../environments/connectors/protocols/ors.ts';
import type { OrsChoices } from '../../../environments/connectors/protocols/ors.ts';
import { playCalls } from '../../support/play-calls.ts';
import { protocolPython } from '../../support/protocol-servers/python.ts';
import { ServerProcess } from '../../support/protocol-servers/start.ts';
import { until } from '../../support/run-client.ts';

// The server of PyPI's `ors-sdk`, with an environment of ours: test/support/protocol-servers/ors_server.py. PyPI's
// `openreward` speaks the same: GRADUS_ORS_PYTHON names a Python that has it.

const SERVER = path.resolve(import.meta.dirname, '../../support/protocol-servers/ors_server.py');
/** The packages may have to be installed first. */
const SETUP_MS = 600_000;
let server: ServerProcess;

beforeAll(async () => {
  const openreward = process.env['GRADUS_ORS_PYTHON'];
  server = openreward
    ? await ServerProcess.start(openreward, [SERVER, 'PORT', 'openreward.environments'])
    : await ServerProcess.start(await protocolPython(), [SERVER, 'PORT']);
}, SETUP_MS);
afterAll(() => server.kill());

const till = (choices: Partial<OrsChoices> = {}): Promise<Environment> =>
  ors({ url: server.url, ...choices });
const pay = (amount: number) => ({ name: 'pay', arguments: { amount } });
const count = { name: 'count', arguments: {} };

test('what there is comes from the server: splits by type, tools with their schemas, tasks with their prompts', async () => {
  const environment = await till();
  expect(environment).toMatchObject({ name: 'till', levels: [1], version: (await till()).version });
  expect((['train', 'heldout', 'test'] as const).map((split) => environment.taskCount(split, 1))).toEqual([
    20, 4, 3,
  ]);
  expect(environment.tools.map(({ name }) => name)).toEqual(['break_down', 'count', 'pay', 'wait']);
  expect(environment.tools[2]).toMatchObject({
    description: 'Puts coins into the till.',
    arguments: { type: 'object', properties: { amount: { minimum: 1, maximum: 9 } } },
    // Nobody has said that a call may be made again.
    effect: 'once',
    placement: 'long',
  });
  const task = (split: 'train' | 'heldout' | 'test') =>
    environment.task({ environment: 'till', split, level: 1, index: 2 });
  expect([(await task('train')).prompt, (await task('heldout')).prompt, (await task('test')).prompt]).toEqual(
    ['Pay 5 coins.', 'Pay 25 coins.', 'Pay 29 coins.'],
  );
});

test('splits can be parts of one of the server’s, and may have no task in common', async () => {
  const environment = await till({
    splits: { train: { of: 'train', to: 15 }, heldout: { of: 'train', from: 15 } },
  });
  expect((['train', 'heldout', 'test'] as const).map((split) => environment.taskCount(split, 1))).toEqual([
    15, 5, 0,
  ]);
  const held = await environment.task({ environment: 'till', split: 'heldout', level: 1, index: 0 });
  expect(held.prompt).toBe('Pay 18 coins.');
  await expect(till({ splits: { train: 'train', test: { of: 'train', from: 19 } } })).rejects.toMatchObject({
    type: 'ors',
    message: expect.stringContaining('in common') as string,
  });
});

test('an episode is played to its end with rewards, what its schema has not is refused, and the session is let go of', async () => {
  const { observations } = await playCalls(await till(), [pay(2), pay(99), pay(3)], { task: { index: 2 } });
  expect(observations).toMatchObject([
    { text: '2 of 5', reward: 0 },
    { error: 'invalid-arguments' },
    { text: '5 of 5', reward: 1, done: true },
  ]);
  // One session for the prompt, one for the episode.
  await until(
    async () => server.said.filter((line) => line === 'closed 5').length >= 2 || undefined,
    30_000,
    () => `sessions are not closed: ${server.said.join()}`,
  );
});

test('another process goes on with the session that the server has', async () => {
  const { observations } = await playCalls(await till(), [pay(1), count, pay(1), count], {
    task: { index: 9 },
    moves: [1, 3],
  });
  expect(observations.map(({ text }) => text)).toEqual(['1 of 12', '1', '2 of 12', '2']);
});

test('a late call of an attempt that was cut off does nothing in the session of the next', async () => {
  const ref = { environment: 'till', split: 'train' as const, level: 1, index: 9 };
  const attempts = await Promise.all(
    ['first', 'next'].map(
      async (name) => new PlayedSession(hostedHere(await till({ name })), ref, `late/${process.pid}`),
    ),
  );
  const [first, next] = attempts as [PlayedSession, PlayedSession];
  const { signal } = new AbortController();
  expect((await first.call(pay(1), { signal })).text).toBe('1 of 12');
  expect((await next.call(pay(1), { signal })).text).toBe('1 of 12');
  await first.call(pay(5), { signal });
  expect((await next.call(count, { signal })).text).toBe('1');
  await Promise.all(attempts.map((attempt) => attempt.close({ signal })));
});

test('a server killed in mid-session has lost it: failed, and no reward of zero', async () => {
  const playing = till().then((environment) =>
    playCalls(environment, [pay(1), pay(1)], {
      task: { index: 9 },
      before: { 1: () => server.killAndStart() },
    }),
  );
  await expect(playing).rejects.toMatchObject({ boundary: 'environment', type: 'session-lost' });
});

test('with `replay` a server killed in mid-session brings the same', async () => {
  const environment = await till({ resume: 'replay' });
  const calls = [pay(1), pay(2), count];
  const alone = await playCalls(environment, calls, { task: { index: 9 } });
  const killed = await playCalls(environment, calls, {
    task: { index: 9 },
    before: { 2: () => server.killAndStart() },
  });
  expect(killed.observations).toEqual(alone.observations);
});

test('a tool that fails there is a failure here, and its session is closed', async () => {
  const before = server.said.length;
  const calls = [{ name: 'break_down', arguments: {} }];
  await expect(playCalls(await till(), calls)).rejects.toMatchObject({
    boundary: 'tool',
    type: 'server-error',
    message: expect.stringContaining('the till is jammed') as string,
  });
  await until(
    async () => server.said.length >= before + 2 || undefined,
    30_000,
    () => 'the session is not closed',
  );
});

test('a slow call gives signs of life, and one that is called off is left alone', async () => {
  let signs = 0;
  const wait = (seconds: number) => ({ name: 'wait', arguments: { seconds } });
  const slow = await playCalls(await till(), [wait(0.2)], { heartbeat: () => signs++ });
  expect([slow.observations[0]!.text, signs > 0]).toEqual(['waited; 1', true]);
  const hurried = await till({ limits: { timeoutSeconds: 0.5 } });
  await expect(playCalls(hurried, [wait(30)], { attempts: 1 })).rejects.toMatchObject({
    type: 'timeout',
  });
});
