import { execFile } from 'node:child_process';
import path from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { nemoGym } from '../../../environments/connectors/protocols/nemo-gym.ts';
import type { NemoGymChoices } from '../../../environments/connectors/protocols/nemo-gym.ts';
import { playCalls } from '../../support/play-calls.ts';
import { nemoGymPython } from '../../support/protocol-servers/python.ts';
import { ServerProcess } from '../../support/protocol-servers/start.ts';

// A resources server and its rows as PyPI's `nemo-gym` has them: example_session_state_mgmt, a counter a session.

const SERVER = path.resolve(import.meta.dirname, '../../support/protocol-servers/nemo-gym/server.py');
const python = await nemoGymPython();

describe.skipIf(python === undefined)('the server of nemo-gym', () => {
  let server: ServerProcess;
  let rows: string;

  beforeAll(async () => {
    server = await ServerProcess.start(python!, [SERVER, 'PORT']);
    const find =
      'import importlib.util as u; print(u.find_spec("resources_servers.example_session_state_mgmt.app").origin)';
    const { stdout } = await promisify(execFile)(python!, ['-c', find]);
    rows = path.join(path.dirname(stdout.trim()), 'data', 'example.jsonl');
  });
  afterAll(() => server.kill());

  const counter = (more: Partial<NemoGymChoices> = {}) =>
    nemoGym({ name: 'counter', url: server.url, path: rows, split: { heldout: 0.2, test: 0.2 }, ...more });
  const add = (count: number) => ({ name: 'increment_counter', arguments: { count } });
  const get = { name: 'get_counter_value', arguments: {} };

  test('rows are tasks with the tools of their schemas; /verify gives the reward of the calls that they want', async () => {
    const environment = counter();
    expect(environment.tools).toMatchObject([
      { name: 'increment_counter', arguments: { required: ['count'], additionalProperties: false } },
      { name: 'get_counter_value' },
    ]);
    const task = await environment.task({ environment: 'counter', split: 'train', level: 1, index: 0 });
    const [, one, two] = /^add (\d+) then add (\d+) then get the count$/u.exec(task.prompt)!;
    const calls = [add(Number(one)), { ...add(1), arguments: { count: 'x' } }, add(Number(two)), get];
    const { expected_count: expected } = task.info as { expected_count: number };
    const right = await playCalls(environment, calls, { answer: String(expected) });
    expect(right.observations.map(({ text }) => text)).toMatchObject([
      '{"success":true}',
      expect.stringMatching(/^error: arguments count/u) as string,
      '{"success":true}',
      `{"count":${expected}}`,
    ]);
    expect(right.ended.reward).toBe(1);
    expect((await playCalls(environment, [add(1)], { answer: '1' })).ended.reward).toBe(0);
  });

  test('killed in mid-session, where it would count from nothing: replayed, or a failure where it is pinned', async () => {
    const calls = [add(1), add(2), get];
    const alone = await playCalls(counter(), calls);
    const killed = await playCalls(counter(), calls, {
      before: { 1: () => server.killAndStart() },
      moves: [2],
    });
    expect(killed).toMatchObject({ observations: alone.observations, ended: alone.ended });
    const pinned = playCalls(counter({ resume: 'pin' }), calls, {
      before: { 1: () => server.killAndStart() },
    });
    await expect(pinned).rejects.toMatchObject({ type: 'session-lost', retryable: false });
  });
});
