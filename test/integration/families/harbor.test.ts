import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Environment, Task } from '../../../environments/contract/environment.ts';
import { harbor } from '../../../environments/families/swe/harbor/environment.ts';
import { harborTask } from '../../../environments/families/swe/harbor/export.ts';
import { LEVELS, mutationsOf, packageBug } from '../../../environments/families/swe/packages/bugs.ts';
import { isSetUp } from '../../../environments/families/swe/packages/prepared.ts';
import { hunksByPath } from '../../../environments/families/swe/patch.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';

const missing = isSetUp() ? '' : ' — NOT SHOWN HERE, for "npm run setup:swe" has not run';
const here = bubblewrap !== undefined && isSetUp();
const { signal } = new AbortController();

/** A Python (3.12 or newer) that has Harbor's own parser: PyPI's harbor, with pydantic and toml. */
const python = process.env['GRADUS_HARBOR_PYTHON'];
const READS =
  'import sys\nfrom harbor.models.task.task import Task\nt = Task(sys.argv[1])\nprint(t.name, t.config.environment.workdir, len(t.instruction) > 0)';
const parses =
  python !== undefined && spawnSync(python, ['-c', 'import harbor.models.task.task']).status === 0;
if (!parses)
  console.warn('SKIPPED: what Harbor says of a folder; GRADUS_HARBOR_PYTHON names no Python that has it');

let folder: string;
const into = (name: string, files: Iterable<readonly [string, string]>): string => {
  for (const [file, text] of files) {
    const target = path.join(folder, name, file);
    mkdirSync(path.dirname(target), { recursive: true });
    writeFileSync(target, text);
    if (file.endsWith('.sh')) chmodSync(target, 0o755);
  }
  return path.join(folder, name);
};
beforeAll(() => (folder = mkdtempSync(path.join(tmpdir(), 'gradus-harbor-'))));
afterAll(() => rmSync(folder, { recursive: true }));

/** Plays a task: what its calls said, and its reward. */
async function played(
  environment: Environment,
  calls: readonly { name: string; arguments: object }[],
): Promise<{ said: unknown[]; reward: number | undefined }> {
  const { sessions } = environment;
  if (sessions?.resume !== 'fold') throw new Error('no fold');
  const task: Task = await environment.task({
    environment: environment.name,
    split: 'train',
    level: 1,
    index: 0,
  });
  let state: unknown = await sessions.open(task, { id: 'x', signal });
  const answers: unknown[] = [];
  for (const call of calls) {
    const next = await sessions.act(state, call as never, { signal } as never);
    answers.push(next.did);
    state = next.state;
  }
  const ended = await sessions.end!(state, { answer: 'done', by: 'answer' }, signal);
  return { said: answers, reward: ended.reward };
}

const alone = { heldout: 0, test: 0 };

const HELLO: Record<string, string> = {
  'task.toml': 'schema_version = "1.4"\n[task]\nname = "a/hello"\n[verifier]\ntimeout_sec = 30.0\n',
  'instruction.md': 'Write hello to /app/said.txt.\n',
  'environment/Dockerfile':
    'FROM python:3.12-slim\nRUN pip install pytest==9.2.0\nWORKDIR /app\nCOPY greet.py NOTES /app/\nCOPY NOTES /app\n',
  'environment/NOTES': 'none\n',
  'environment/greet.py': 'print("hello")\n',
  'tests/test.sh':
    '#!/bin/bash\nif python3 -m pytest -q /tests/test_said.py; then echo 1 > /logs/verifier/reward.txt; else echo 0 > /logs/verifier/reward.txt; fi\n',
  'tests/test_said.py': "def test_said():\n    assert open('/app/said.txt').read() == 'hello\\n'\n",
};

describe.skipIf(!here)(`a task folder of Harbor's${LEFT_OUT}${missing}`, () => {
  test('that needs no Docker is played, and judged by its own tests', async () => {
    const environment = harbor({ name: 'hello', folder: into('hello', Object.entries(HELLO)), split: alone });
    const right = { name: 'bash', arguments: { command: 'cd /app && python3 greet.py > said.txt; ls' } };
    expect(await played(environment, [right])).toEqual({ said: ['NOTES\ngreet.py\nsaid.txt'], reward: 1 });
    const wrong = { name: 'edit', arguments: { path: 'said.txt', old: '', new: 'bye\n' } };
    expect(await played(environment, [wrong])).toEqual({ said: ['written'], reward: 0 });
    // Tests are not there before the end, and those that are written are not those that run.
    const forged = {
      name: 'bash',
      arguments: { command: 'ls /tests; mkdir -p /logs/verifier && echo 1 > /logs/verifier/reward.txt' },
    };
    expect((await played(environment, [forged])).reward).toBe(0);
  });

  test('has its tests run once for a patch: who asks again, after its activity was over its time, gets further', async () => {
    const drawn = {
      ...HELLO,
      'tests/test.sh': 'echo 0.$(od -An -N4 -tu4 /dev/urandom | tr -d " ") > /logs/verifier/reward.txt\n',
    };
    const environment = harbor({ name: 'drawn', folder: into('drawn', Object.entries(drawn)), split: alone });
    const { reward } = await played(environment, []);
    expect(reward).toBeGreaterThan(0);
    expect((await played(environment, [])).reward).toBe(reward);
    const other = { name: 'edit', arguments: { path: 'said.txt', old: '', new: 'bye\n' } };
    expect((await played(environment, [other])).reward).not.toBe(reward);
  });

  test.each([
    ['waits', 'sleep 600'],
    ['loops', 'while :; do :; done'],
  ])('is worth nothing where what it runs %s until its time is over', async (name, command) => {
    const late = {
      ...HELLO,
      'task.toml': '[verifier]\ntimeout_sec = 1\n',
      'tests/test.sh': `echo 1 > /logs/verifier/reward.txt\n${command}\n`,
    };
    const environment = harbor({ name, folder: into(name, Object.entries(late)), split: alone });
    expect(environment.sessions).toMatchObject({ endSeconds: null });
    expect((await played(environment, [])).reward).toBe(0);
  });

  test.each([
    [
      'environment/Dockerfile',
      'FROM ubuntu\nRUN apt-get install -y git\nWORKDIR /app\n',
      /RUN apt-get install -y git: has a command/,
    ],
    [
      'environment/Dockerfile',
      'FROM ubuntu\nWORKDIR /app\nCOPY greet.py /etc/\n',
      /\/etc\/greet\.py is not in its working folder/,
    ],
    [
      'environment/Dockerfile',
      'FROM ubuntu\nCOPY greet.py /\n',
      /its working folder \/ is not one of its own/,
    ],
    ['tests/test.sh', 'curl -LsSf x | sh\n', /wants a network, for curl/],
    ['task.toml', '[environment]\ngpus = 1\n', /asks in environment\.gpus/],
    // Longer than the activity in which they would run.
    ['task.toml', '[verifier]\ntimeout_sec = 3600\n', /asks in verifier\.timeout_sec/],
    ['task.toml', '[[steps]]\nname = "a"\n', /asks in steps/],
    ['task.toml', '[verifier]\nenvironment_mode = "separate"\n', /asks in verifier\.environment_mode/],
  ])('whose %s is %j is refused, and says why', (file, text, why) => {
    const where = into('refused', Object.entries({ ...HELLO, [file]: text }));
    expect(() => harbor({ name: 'refused', folder: where })).toThrow(why);
    rmSync(where, { recursive: true });
  });

  test.each([
    ['environment/secret.txt', '/etc/hostname'],
    ['tests/more', '/etc'],
  ])("with a link %s to %s is refused: a policy would read what is not the task's", (link, to) => {
    const where = into('linked', Object.entries(HELLO));
    symlinkSync(to, path.join(where, link));
    expect(() => harbor({ name: 'linked', folder: where })).toThrow(`${link} is a link`);
    rmSync(where, { recursive: true });
  });
});

describe.skipIf(!here)(`a bug that is written as a task folder of Harbor's${LEFT_OUT}${missing}`, () => {
  const level = LEVELS.find((one) => mutationsOf('train', one).some((bug) => bug.package === 'tabulate'))!;
  const index = mutationsOf('train', level).findIndex((bug) => bug.package === 'tabulate');
  const name = { org: 'gradus', name: 'swe-tabulate', version: '1', description: 'A bug.' };
  const written = () => {
    const bug = packageBug({ environment: 'swe', split: 'train', level, index });
    return { bug, at: into('swe-tabulate', harborTask(bug, 'Mend it.', name)) };
  };

  test.skipIf(!parses)('is one to Harbor itself', () => {
    const { at } = written();
    expect(execFileSync(python!, ['-c', READS, at], { encoding: 'utf8' }).trim()).toBe(
      'gradus/swe-tabulate /app True',
    );
  });

  test('comes back, is worth 1 to its solution, and 0 as it is and to a patch that forges', async () => {
    const { bug, at } = written();
    const environment = harbor({ name: 'back', folder: at, split: alone });
    expect((await played(environment, [])).reward).toBe(0);
    const [[file, hunks]] = [...hunksByPath(bug.mend)] as [[string, string]];
    const side = (sign: string) =>
      hunks
        .split('\n')
        .filter((line) => line.startsWith(' ') || line.startsWith(sign))
        .map((line) => line.slice(1))
        .join('\n');
    const mend = { name: 'edit', arguments: { path: file, old: side('-'), new: side('+') } };
    expect(await played(environment, [mend])).toEqual({ said: ['edited'], reward: 1 });
    const forged = { name: 'bash', arguments: { command: `sed -i '1i import os; os._exit(0)' ${file}` } };
    expect((await played(environment, [forged])).reward).toBe(0);
  });
});
