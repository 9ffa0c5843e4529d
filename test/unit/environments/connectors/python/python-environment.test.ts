import { afterAll, expect, test } from 'vitest';
import type { ToolCall } from '../../../../../core/episode/episode.ts';
import { sessionTool } from '../../../../../environments/contract/environment.ts';
import { loadEnvironments } from '../../../../../environments/families/index.ts';
import {
  pythonEnvironment,
  pythonVerifier,
} from '../../../../../environments/connectors/python/python-environment.ts';
import { python } from '../../../../../environments/connectors/python/python.ts';
import { READY } from '../../../../../environments/host/ready.ts';
import { environmentReward } from '../../../../../environments/verifiers/environment-reward.ts';
import { play, tasksOf } from '../../../../support/ready-environments.ts';

const module = python('test/support/misbehaving.py', { processes: 1 });
const counter = pythonEnvironment({
  name: 'counter',
  module,
  levels: [1],
  tools: ['add', 'draw', 'die'].map((name) =>
    sessionTool({
      name,
      description: name,
      arguments: { type: 'object', properties: { by: { type: 'integer' } } },
    }),
  ),
  verifiers: [environmentReward({ most: 10 }), pythonVerifier(module, { name: 'verify', version: '1' })],
});
const ref = { environment: 'counter', split: 'train' as const, level: 1, index: 1 };
const call = (name: string, by = 1): ToolCall => ({ name, arguments: { by } });

afterAll(() => module.close());

test('tasks, sessions and verifiers are those of the module', async () => {
  const [first] = await tasksOf(counter, 1, 2);
  expect(first!.task).toMatchObject({ prompt: 'train 1 0', info: { start: 0 } });
  const played = await play(counter, ref, [call('add'), call('add', 2)]);
  expect(played.observations).toEqual([{ text: '2' }, { text: '4', reward: 0.5, done: true }]);
  expect(played.ended).toEqual({ reward: 4, info: { answer: null, by: 'environment' } });
  // Without an answer the module's verifier says None, which is no zero.
  expect(played.scores).toEqual([0.4, null]);
});

test('a session whose process is gone comes back by its calls, also what it drew', async () => {
  const calls = [call('draw'), call('add', 0), call('draw'), call('add'), call('draw')];
  const straight = await play(counter, ref, calls);
  expect(new Set(straight.observations.map(({ text }) => text)).size).toBe(5);
  expect(await play(counter, ref, calls, [1, 3, 4])).toEqual(straight);
});

test('one that dies in a call fails as what can be tried again', async () => {
  await expect(play(counter, ref, [call('add'), call('die')])).rejects.toMatchObject({
    type: 'python-died',
    retryable: true,
  });
});

test('ready environments are loaded by name, without their packages, and only then', async () => {
  const without = await loadEnvironments([]);
  expect([...without.keys()].filter((name) => READY.some((ready) => name.startsWith(ready)))).toEqual([]);
  const loaded = await loadEnvironments(READY);
  expect([...loaded.keys()]).toEqual(
    expect.arrayContaining([
      'bfcl-multi-turn',
      'gymnasium-taxi',
      'reasoning-gym-maze',
      'textarena-nim',
      'textworld',
    ]),
  );
});
