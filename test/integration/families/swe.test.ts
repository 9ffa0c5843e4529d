import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Act } from '../../../core/episode/acts.ts';
import type { EpisodeSession, ToolCall } from '../../../core/episode/episode.ts';
import { EnvironmentHost } from '../../../environments/host/environment-host.ts';
import { patchBetween, patched } from '../../../environments/families/swe/patch.ts';
import { toolsOf, type CheckedOutBug } from '../../../environments/families/swe/tools.ts';
import { swePackagesEnvironment } from '../../../environments/families/swe/packages/environment.ts';
import { ToolRefusal } from '../../../environments/contract/environment.ts';
import { sweSmallEnvironment } from '../../../environments/families/swe/small/environment.ts';
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
        running: 'Runs tests of files',
        killed: program,
      });
      expect(again.observation.text).toMatch(/1 failed, \d passed$/u);
      expect(again.session).toEqual(session);
    },
  );
});

// At once: some of them wait until a limit is reached.
describe.skipIf(!bubblewrap).concurrent(`what a policy runs beside us${LEFT_OUT}`, () => {
  const place: CheckedOutBug = {
    style: 'plain',
    sourceRoots: [''],
    tests: [],
    testFiles: ['test_m.py'],
    cpuSeconds: 1,
  };
  const [bash, runTests, edit] = toolsOf(['bash', 'run_tests', 'edit']);
  const inShell = (command: string) => bash!.act(place, new Map([['m.py', '']]), { command }, signal);

  test.each([
    ['ends the shell', 'kill -9 $PPID'],
    ['stops the shell', 'kill -STOP $PPID'],
    [
      'brings back too much',
      'for i in 1 2 3 4 5 6 7 8; do head -c 1000000 /dev/zero | tr "\\0" a > $i; done',
    ],
  ])('is told so where its command %s', async (_, command) => {
    const refusal = await Promise.resolve(inShell(command)).catch((error: unknown) => error);
    expect(refusal).toBeInstanceOf(ToolRefusal);
    expect((refusal as Error).message).toMatch(/^what the command changed is lost: /u);
  });

  // What fails before the program in the sandbox is up counts as ours, and nowhere: each of these is answered or refused.
  test.each([
    { text: '\ud800' },
    { text: 'x = "\udfff"\n' },
    { text: 'a\0b' },
    { text: '\ufeff\u{1f468}\u2028\x85\r\v' },
    { path: 'a'.repeat(200) },
    { path: `${'b/'.repeat(99)}c` },
    { path: '__proto__' },
    { path: '~/-rf/=@' },
    { path: 'm.py/n.py' },
    { path: 'a\0b' },
    { path: '\udc80' },
    { command: 'echo \ud800' },
    { command: 'echo a\0b' },
    {
      command:
        'touch "$(printf \'\\377\')" "$(printf \'a\\nb\')"; mkfifo p; ln -s /proc/self l; mkdir d; echo x > __proto__',
    },
  ])('is answered whatever it writes: %j', async ({ text = 'x', path = 'n.py', command = 'ls -aR' }) => {
    const base = new Map([['m.py', '']]);
    const answers = async (): Promise<string> => {
      const written = await edit!.act(place, base, { path, old: '', new: text }, signal);
      const kept = patched(base, patchBetween(base, written.tree));
      const ran = await bash!.act(place, kept, { command }, signal);
      patchBetween(base, ran.tree);
      return 'answered';
    };
    const answer = await answers().catch((error: unknown) =>
      error instanceof ToolRefusal ? 'refused' : error,
    );
    expect(['answered', 'refused']).toContain(answer);
  });

  test('is told so where its command waits, and keeps what was changed before', async () => {
    const { tree, text } = await inShell('echo x > new.txt; sleep 60');
    expect([tree.get('new.txt'), text]).toEqual(['x\n', '[ended after 20 s]']);
  });

  test('is told so where its tests stop who reports', async () => {
    const stops =
      'import os, signal\n\ndef test_it():\n    os.kill(os.getppid(), signal.SIGSTOP)\n    while True: pass\n';
    const tests = Promise.resolve(runTests!.act(place, new Map([['test_m.py', stops]]), {}, signal));
    await expect(tests).rejects.toThrow(new ToolRefusal('the tests came to no end'));
  });
});

test('judging has no limit around those of its tests and sandboxes', () => {
  for (const environment of [sweSmallEnvironment(), swePackagesEnvironment()])
    expect(environment.sessions).toMatchObject({ endSeconds: null });
});
