import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Environment } from '../../../environments/contract/environment.ts';
import { openEnv } from '../../../environments/connectors/protocols/openenv.ts';
import type { OpenEnvChoices } from '../../../environments/connectors/protocols/openenv.ts';
import { playCalls } from '../../support/play-calls.ts';
import { protocolPython } from '../../support/protocol-servers/python.ts';
import { ServerProcess } from '../../support/protocol-servers/start.ts';
import { until } from '../../support/run-client.ts';

// The server of PyPI's `openenv`, with an environment of ours: test/support/protocol-servers/openenv_server.py.

const SERVER = path.resolve(import.meta.dirname, '../../support/protocol-servers/openenv_server.py');
/** The packages may have to be installed first. */
const SETUP_MS = 600_000;
let server: ServerProcess;

beforeAll(async () => {
  server = await ServerProcess.start(await protocolPython(), [SERVER, 'PORT']);
}, SETUP_MS);
afterAll(() => server.kill());

const corridor = (choices: Partial<OpenEnvChoices> = {}): Promise<Environment> =>
  openEnv({
    url: server.url,
    name: 'corridor',
    seeds: { train: 100, heldout: 20, test: 20 },
    levels: [{ length: 3 }, { length: 9 }],
    ...choices,
  });

const step = (to: string) => ({ name: 'step', arguments: { to } });
const steps = (environment: Environment, prompt: string) => {
  const [, count, side] = /is (\d+) steps to the (\w+)/u.exec(prompt)!;
  expect(environment.tools.map(({ name }) => name)).toEqual(['step']);
  return Array.from({ length: Number(count) }, () => step(side!));
};
/** A task of level 2 whose lamp is a few steps away. */
async function farTask(environment: Environment) {
  for (let index = 0; ; index++) {
    const ref = { environment: 'corridor', split: 'train' as const, level: 2, index };
    const { prompt } = await environment.task(ref);
    if (Number(/is (\d+)/u.exec(prompt)![1]) >= 4) return { prompt, task: { level: 2, index } };
  }
}

test('tasks are seeds: the same each time, and others in each split and level; the tool has the schema of an action', async () => {
  const [one, again] = [await corridor(), await corridor()];
  expect([one.levels, one.taskCount('train', 2), one.version]).toEqual([[1, 2], 100, again.version]);
  expect(one.tools[0]).toMatchObject({
    name: 'step',
    placement: 'inline',
    description: 'Takes one step.',
    arguments: { properties: { to: { pattern: '^(left|right|nowhere)$' } }, required: ['to'] },
  });
  const refs = (['train', 'heldout', 'test'] as const).flatMap((split) =>
    [1, 2].flatMap((level) => [0, 1, 2].map((index) => ({ environment: 'corridor', split, level, index }))),
  );
  const tasks = await Promise.all(refs.map(async (ref) => one.task(ref)));
  expect(await Promise.all(refs.map(async (ref) => again.task(ref)))).toEqual(tasks);
  expect(new Set(tasks.map(({ info }) => (info as { seed: number }).seed)).size).toBe(refs.length);
});

test('an episode is played to its end with rewards, and its connection is closed', async () => {
  const environment = await corridor();
  const { prompt, task } = await farTask(environment);
  const calls = steps(environment, prompt);
  const { observations, ended } = await playCalls(environment, calls, { task });
  expect(observations.map(({ reward }) => reward)).toEqual([...calls.slice(1).map(() => 0), 1]);
  expect(observations.at(-1)).toMatchObject({
    done: true,
    text: expect.stringMatching(/^You are at -?\d+\.$/u) as string,
  });
  expect(ended).toMatchObject({ info: { step_count: calls.length } });
  const { episode_id } = ended.info as { episode_id: string };
  await until(
    async () => server.said.includes(`closed ${episode_id}`) || undefined,
    30_000,
    () => 'the session is not closed',
  );
});

test('an action that its schema or the server has not is the policy’s to read', async () => {
  const environment = await corridor({ refuses: (message) => message.includes('floor') });
  const calls = [step('up'), step('nowhere'), step('left')];
  const { observations } = await playCalls(environment, calls, { task: { level: 2 } });
  expect(observations).toMatchObject([
    { error: 'invalid-arguments' },
    { error: 'tool-error', text: 'error: the floor is gone' },
    { text: 'You are at -1.' },
  ]);
});

test('what the environment’s own code throws is a failure, and its session is closed', async () => {
  const before = server.said.length;
  await expect(playCalls(await corridor(), [step('nowhere')])).rejects.toMatchObject({
    boundary: 'tool',
    type: 'server-error',
    message: expect.stringContaining('the floor is gone') as string,
  });
  // Three attempts, and one for the prompt.
  await until(
    async () => server.said.length >= before + 4 || undefined,
    30_000,
    () => 'sessions are not closed',
  );
});

test('a server killed in mid-session, or another process, brings the same by replay', async () => {
  const environment = await corridor();
  const { prompt, task } = await farTask(environment);
  const calls = steps(environment, prompt);
  const alone = await playCalls(environment, calls, { task });
  const killed = await playCalls(environment, calls, { task, before: { 2: () => server.killAndStart() } });
  const moved = await playCalls(environment, calls, { task, moves: [1, 3] });
  expect([killed.observations, moved.observations]).toEqual([alone.observations, alone.observations]);
});

test('a pinned session that its server has lost is a failure, and no reward of zero', async () => {
  const environment = await corridor({ resume: 'pin' });
  const { task } = await farTask(environment);
  const playing = playCalls(environment, [step('left'), step('left')], {
    task,
    before: { 1: () => server.killAndStart() },
  });
  await expect(playing).rejects.toMatchObject({
    boundary: 'environment',
    type: 'session-lost',
    retryable: false,
  });
});

test('a server that hangs is waited for no longer than its tool may take, and found again when it goes on', async () => {
  const environment = await corridor({ limits: { timeoutSeconds: 1 } });
  const playing = playCalls(environment, [step('left'), step('left')], {
    task: { level: 2 },
    attempts: 1,
    before: { 1: async () => server.signal('SIGSTOP') },
  });
  await expect(playing).rejects.toMatchObject({ boundary: 'tool', type: 'timeout', retryable: true });
  server.signal('SIGCONT');
  // Within the second that a call has there, which it may take a busy machine more than one try to do.
  const { observations } = await until(
    () => playCalls(environment, [step('left')], { task: { level: 2 } }).catch(() => undefined),
    300_000,
    () => 'the server is not found again',
  );
  expect(observations).toMatchObject([{ text: 'You are at -1.' }]);
});

test('a server that is away says so where the environment is made', async () => {
  await expect(corridor({ url: 'http://127.0.0.1:1' })).rejects.toMatchObject({
    type: 'server-unreachable',
    retryable: true,
  });
});
