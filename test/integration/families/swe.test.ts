import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Act } from '../../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall } from '../../../core/episode/episode.ts';
import { EnvironmentHost } from '../../../environments/host/environment-host.ts';
import { sweSmallEnvironment } from '../../../environments/swe/small/environment.ts';
import { HOLDERS, killedInCourse } from '../../support/processes-below.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';

const { signal } = new AbortController();
const ref = { environment: 'swe-small', split: 'train', level: 3, index: 3 } as const;

describe.skipIf(!bubblewrap)(`a tree with a bug${LEFT_OUT}`, () => {
  let host: EnvironmentHost;
  beforeAll(async () => {
    host = await EnvironmentHost.open({ modules: [], memoryBytes: 2 ** 30, log: () => undefined });
  });
  afterAll(() => host.close());

  const act = (call: ToolCall, kept?: EpisodeSession, acts: readonly Act[] = []) =>
    host.environments.get('swe-small')!.call(call, {
      session: { ref, id: 'episode', acts, kept },
      idempotencyKey: 'key',
      attempt: 1,
      signal,
      heartbeat: () => undefined,
      incident: () => undefined,
    });

  test('is mended by what the expert does, whose observations are those of the tools', async () => {
    const environment = sweSmallEnvironment();
    for (const level of environment.levels) {
      const task = await environment.task({ ...ref, level });
      const { turns } = await environment.demonstrate!(task, 0);
      const sessions = environment.sessions!;
      if (sessions.resume !== 'fold') throw new Error('no fold');
      let state: unknown = await sessions.open(task, { id: 'x', signal });
      for (const { call, observation } of turns) {
        if (call === undefined) continue;
        const next = await sessions.act(state, call, { signal } as never);
        expect(next.did).toBe(observation);
        state = next.state;
      }
      expect(await sessions.end!(state, { answer: 'mended', by: 'answer' }, signal)).toMatchObject({
        reward: 1,
      });
    }
  });

  test.each(HOLDERS)(
    'a call in which %s is killed says the same when it is made again',
    async (_, program) => {
      // Tests that take long enough to be met.
      const slow = { path: 'm.py', old: 'def ', new: `import time; time.sleep(1.5)\ndef ` };
      const { text } = (await act({ name: 'view', arguments: { path: 'm.py' } })).observation;
      const first = text.split('\n')[0]!;
      const { session } = await act({
        name: 'edit',
        arguments: { ...slow, old: first, new: slow.new.replace('def ', first) },
      });
      const call: ToolCall = { name: 'run_tests', arguments: {} };
      const again = await killedInCourse(() => act(call, session), {
        running: 'run_plainly',
        killed: program,
      });
      expect(again.observation.text).toMatch(/1 failed, \d passed$/u);
      expect(again.session).toEqual(session);
    },
  );
});
