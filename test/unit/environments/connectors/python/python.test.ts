import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { createInterface } from 'node:readline';
import path from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import type { Json } from '../../../../../core/json/json.ts';
import type { Task } from '../../../../../environments/contract/environment.ts';
import { ToolRefusal } from '../../../../../environments/contract/environment.ts';
import { python } from '../../../../../environments/connectors/python/python.ts';
import type { PythonModule } from '../../../../../environments/connectors/python/python.ts';
import { PythonServer } from '../../../../../environments/connectors/python/python-server.ts';
import { isAlive } from '../../../../../infra/setup/file-lock.ts';
import { until } from '../../../../support/run-client.ts';

const FILE = path.resolve('test/support/misbehaving.py');
const misbehaving = python(FILE, { processes: 2 });
const modules: PythonModule[] = [misbehaving];
const alone = (options: Parameters<typeof python>[1]): PythonModule => {
  const module = python(FILE, options);
  modules.push(module);
  return module;
};

afterAll(async () => {
  for (const module of modules) await module.close();
});

const TASK: Task = {
  ref: { environment: 'counter', split: 'train', level: 1, index: 0 },
  prompt: 'Count.',
  info: { start: 0 },
};
const place = (): { id: string; signal: AbortSignal } => ({ id: 'e', signal: new AbortController().signal });
const context = (signal = new AbortController().signal) => ({
  idempotencyKey: 'k',
  attempt: 1,
  signal,
  heartbeat: () => undefined,
  task: () => Promise.resolve(TASK),
});
const call = (name: string, args: Json = {}) => ({ name, arguments: args });
/** For what comes in a moment, on however slow a machine. */
const SOON = { timeout: 120_000 };
/** The ids of processes that a module writes to a file, a line each. */
const idsIn = (file: string, count = 1): Promise<number[]> =>
  vi.waitFor(async () => {
    const lines = (await readFile(file, 'utf8')).split('\n').slice(0, -1);
    expect(lines).toHaveLength(count);
    return lines.map(Number);
  }, SOON);
const toBeGone = (pid: number): Promise<void> => vi.waitFor(() => expect(isAlive(pid)).toBe(false), SOON);

test('a function is called with JSON, whatever else is printed', async () => {
  expect(await misbehaving.call('add', [2, 3])).toBe(5);
  expect(await misbehaving.call('add', ['a ', 'é\n']).catch(String)).toBe('a é\n');
  expect(await misbehaving.call('chatter')).toBe('returned');
  expect(await misbehaving.call('add', [2, 4])).toBe(6);
});

test('what it draws depends on what it is asked, not on who asked before', async () => {
  const drawn = [await misbehaving.call('draw'), await misbehaving.call('draw')];
  await misbehaving.call('add', [1, 1]);
  expect(new Set([...drawn, await misbehaving.call('draw')]).size).toBe(1);
});

test('a refusal is the policy’s, an exception tells its traceback, and what is no JSON is said to be none', async () => {
  await expect(misbehaving.call('refuse', ['not today'])).rejects.toThrow(ToolRefusal);
  await expect(misbehaving.call('refuse', ['not today'])).rejects.toThrow(/^not today$/);
  await expect(misbehaving.call('fail')).rejects.toMatchObject({
    type: 'python-raised',
    retryable: false,
    message: expect.stringMatching(/ValueError: no such luck[^]*in fail/) as string,
  });
  await expect(misbehaving.call('no_such')).rejects.toThrow(/has no function no_such/);
  for (const name of ['nonsense', 'not_a_number']) {
    await expect(misbehaving.call(name)).rejects.toMatchObject({ type: 'python-no-json' });
  }
  await expect(misbehaving.call('leave')).rejects.toMatchObject({ type: 'python-raised' });
  expect(await misbehaving.call('add', [1, 1])).toBe(2);
});

test('one that hangs is ended at its time-out, and the next has a process at once', async () => {
  await expect(misbehaving.call('hang', [], { timeoutSeconds: 0.2 })).rejects.toMatchObject({
    type: 'python-timeout',
    retryable: true,
  });
  // What hangs would hang for an hour.
  expect(await misbehaving.call('add', [1, 1])).toBe(2);
});

test('an answer that comes after its time-out is nobody’s', async () => {
  const one = alone({ processes: 1 });
  await one.prepare();
  const numbers = Array.from({ length: 40 }, (_, n) => n);
  const late = one.call('slow', [0.4, 'late'], { timeoutSeconds: 0.3 }).catch(() => 'timed out');
  const asked = numbers.map((n) => one.call('slow', [0.001, n]));
  expect(await Promise.all(asked)).toEqual(numbers);
  // This process reads what has come before it calls anybody late: it may not have run in the tenth of a second between.
  expect(['timed out', 'late']).toContain(await late);
});

test('many calls at once each get their own answer', async () => {
  const asked = Array.from({ length: 300 }, (_, n) => misbehaving.call('slow', [0.001 * (n % 3), n]));
  expect(await Promise.all(asked)).toEqual(Array.from({ length: 300 }, (_, n) => n));
});

test('one that dies fails as retryable, and others go on', async () => {
  const died = misbehaving.call('die').catch((error: unknown) => error);
  expect(await misbehaving.call('add', [1, 1])).toBe(2);
  expect(await died).toMatchObject({ type: 'python-died', retryable: true, message: /exit code 3/ });
});

test('one that eats memory is stopped at its limit', async () => {
  const small = alone({ memoryBytes: 2 ** 30 });
  await expect(small.call('eat')).rejects.toMatchObject({ type: 'python-memory', retryable: true });
  expect(await small.call('add', [1, 1])).toBe(2);
});

test('one that writes to what it was not given is not believed', async () => {
  const reply = await misbehaving.call('forge').catch((error: { type: string }) => error.type);
  expect(['returned', 'python-died']).toContain(reply);
  expect(await misbehaving.call('add', [1, 1])).toBe(2);
});

test('what a process has started ends with it', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
  const controller = new AbortController();
  const called = misbehaving.call('breed', [path.join(folder, 'pid')], { signal: controller.signal });
  const ended = called.catch((error: unknown) => error);
  const [bred] = await idsIn(path.join(folder, 'pid'));
  controller.abort('called off');
  expect(await ended).toBe('called off');
  await toBeGone(bred!);
  await rm(folder, { recursive: true });
});

test.each(['hangs', 'dies', 'is closed'])(
  'a daemon that a process has started ends with it where that %s',
  async (how) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
    const file = path.join(folder, 'pid');
    const module = alone({ processes: 1, timeoutSeconds: 240 });
    const controller = new AbortController();
    const called = module.call('breed_away', [file, how], { signal: controller.signal });
    const ended = called.catch((error: unknown) => error);
    const [daemon] = await idsIn(file);
    if (how === 'hangs') controller.abort('called off');
    expect(await ended).toEqual(
      { hangs: 'called off', dies: expect.objectContaining({ type: 'python-died' }) as unknown }[how] ??
        'returned',
    );
    if (how === 'is closed') await module.close();
    await toBeGone(daemon!);
    await rm(folder, { recursive: true });
  },
);

test('one that dies while what it has forked holds its descriptors is missed at once', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
  const file = path.join(folder, 'pid');
  await expect(misbehaving.call('die_with_heir', [file], { timeoutSeconds: 240 })).rejects.toMatchObject({
    type: 'python-died',
    message: expect.stringContaining('exit code 3') as string,
  });
  const [heir] = await idsIn(file);
  await toBeGone(heir!);
  await rm(folder, { recursive: true });
});

test('a process that has gathered ended ones, for which nobody waits, is followed by another', async () => {
  const one = alone({ processes: 1 });
  expect(await one.call('adopt', [2])).toBe(await one.call('adopt', [2]));
  const pids = new Set<Json>();
  for (let n = 0; n < 30; n++) pids.add(await one.call('adopt', [4]));
  expect(pids.size).toBeGreaterThan(1);
});

test('processes that do not end are told, also where nobody listens any more', () => {
  const program = `
import os, descendants
reading, writing = os.pipe()
os.close(reading)
os.dup2(writing, 1)
os.dup2(writing, 2)
descendants.end_all(lambda: [2 ** 30], 0)
`;
  const env = { ...process.env, PYTHONPATH: path.resolve('environments/connectors/python/runner') };
  const { status, signal } = spawnSync('python3', ['-c', program], { env });
  expect({ status, signal }).toEqual({ status: 0, signal: null });
});

test('what comes to a process while it looks who is below it is ended, too', () => {
  const program = `
import os, signal, subprocess, time, descendants, worker
worker.keep_orphans()
script = "import subprocess; print(subprocess.Popen(['sleep', '600'], start_new_session=True, stdin=-3, stdout=-3, stderr=-3).pid, flush=True); input()"
parent = subprocess.Popen(["python3", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
orphan = int(parent.stdout.readline())
below = descendants.below
def ends_while_we_look(pid):
    if pid == parent.pid:
        os.kill(pid, signal.SIGKILL)
        while not descendants.has_ended(pid):
            time.sleep(0.001)
    return below(pid)
descendants.below = ends_while_we_look
descendants.end_children(set(), time.monotonic() + 60)
print(descendants.has_ended(orphan), descendants.children_of(os.getpid()))
`;
  const env = { ...process.env, PYTHONPATH: path.resolve('environments/connectors/python/runner') };
  const { stdout, stderr } = spawnSync('python3', ['-c', program], { env, encoding: 'utf8' });
  expect({ stdout, stderr }).toEqual({ stdout: 'True []\n', stderr: '' });
});

const STARTS = path.resolve('test/support/starts-while-imported.py');

test.each(['is imported', 'fails', 'hangs'])(
  'what an import has started ends with the host’s process group, where it %s',
  async (then) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
    const STARTED = path.join(folder, 'pids');
    const host = spawn(process.execPath, ['--import', 'tsx', 'test/support/prepares-python.ts', STARTS], {
      env: { ...process.env, STARTED, THEN: then },
      stdio: 'ignore',
      detached: true,
    });
    const exited = once(host, 'exit');
    const started = await idsIn(STARTED, 2);
    if (then === 'fails') await exited;
    else process.kill(-host.pid!, 'SIGKILL');
    for (const pid of started) await toBeGone(pid);
    await rm(folder, { recursive: true });
  },
);

test.each(['is imported', 'fails', 'hangs'])(
  'what an import has started is gone when the module is closed, where it %s',
  async (then) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
    const STARTED = path.join(folder, 'pids');
    const options = {
      python: 'python3',
      module: STARTS,
      memoryBytes: 2 ** 30,
      startSeconds: 600,
      variables: { STARTED, THEN: then },
    };
    const server = new PythonServer(options);
    const up = server.up().then(
      () => 'is imported',
      () => 'is not',
    );
    const started = await idsIn(STARTED, 2);
    if (then !== 'hangs') expect(await up).toBe(then === 'fails' ? 'is not' : then);
    await server.closed();
    expect(started.filter(isAlive)).toEqual([]);
    await rm(folder, { recursive: true });
  },
);

test.each(['ends by itself', 'is killed'])(
  'a process that used Python and %s leaves nothing behind',
  async (how) => {
    const child = spawn(process.execPath, ['--import', 'tsx', 'test/support/uses-python.ts', how], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    const lines = createInterface({ input: child.stdout });
    const [line] = (await once(lines, 'line')) as [string];
    const pid = Number(line);
    if (how === 'is killed') child.kill('SIGKILL');
    expect(await exited).toEqual(how === 'is killed' ? [null, 'SIGKILL'] : [0, null]);
    await toBeGone(pid);
  },
);

test('a call that is called off ends at once, and so does one that waits for its turn', async () => {
  const controller = new AbortController();
  const asked = [1, 2, 3].map(() => misbehaving.call('hang', [], { signal: controller.signal }));
  const ended = Promise.allSettled(asked);
  controller.abort(new Error('nobody wants it'));
  expect((await ended).map((one) => (one as PromiseRejectedResult).reason as Error)).toEqual(
    asked.map(() => new Error('nobody wants it')),
  );
  expect(await misbehaving.call('add', [1, 1])).toBe(2);
});

test('a module that cannot be imported says why, and is tried again', async () => {
  await expect(python('no_such_module').prepare()).rejects.toMatchObject({
    type: 'python-import',
    message: expect.stringContaining('No module named') as string,
  });
  await expect(python('antigravity_', { python: '/no/such/python' }).prepare()).rejects.toMatchObject({
    type: 'python-start',
  });
});

test('packages that are not set up are named with the command that does it', async () => {
  const requirements = path.resolve('test/fixtures/python/never-made/requirements.txt');
  await expect(python('textwrap', { requirements }).prepare()).rejects.toMatchObject({
    type: 'python-packages',
    message: expect.stringContaining(`npm run setup:python -- ${requirements}`) as string,
  });
});

test('an import is on no call’s clock', async () => {
  const folder = await mkdtemp(path.join(tmpdir(), 'gradus-python-'));
  /** One whose import has begun, and ends when it is let go. */
  const importing = (name: string, options: Parameters<typeof python>[1]) => {
    const [BEGUN, GO] = ['begun', 'go'].map((what) => path.join(folder, `${name}-${what}`));
    const variables = { BEGUN: BEGUN!, GO: GO! };
    const module = python('test/support/imports-slowly.py', { processes: 1, variables, ...options });
    modules.push(module);
    // `expect.poll` would have the seconds go by.
    const begun = () =>
      until(
        async () => existsSync(BEGUN!) || undefined,
        SOON.timeout,
        () => 'the import does not begin',
      );
    return { module, begun, letGo: () => writeFile(GO!, '') };
  };
  // Seconds go by when the test says so.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  try {
    const slow = importing('slow', { timeoutSeconds: 0.5, startSeconds: 60 });
    const answered = slow.module.call('answer').catch((error: unknown) => error);
    await slow.begun();
    await vi.advanceTimersByTimeAsync(50_000);
    await slow.letGo();
    expect(await answered).toBe(42);
    const late = importing('late', { startSeconds: 0.3 });
    const prepared = late.module.prepare().catch((error: unknown) => error);
    await late.begun();
    await vi.advanceTimersByTimeAsync(300);
    expect(await prepared).toMatchObject({
      type: 'python-start',
      retryable: true,
      message: expect.stringContaining('took longer than 0.3 s to import') as string,
    });
  } finally {
    vi.useRealTimers();
    await rm(folder, { recursive: true });
  }
});

test('sessions feel nothing of each other, and the same calls bring the same', async () => {
  const [one, two] = await Promise.all([misbehaving.open(TASK, place()), misbehaving.open(TASK, place())]);
  const drawn = await one.act(call('draw'), context());
  expect(await one.act(call('add', { by: 2 }), context())).toEqual({ text: '2', done: false });
  expect(await two.act(call('draw'), context())).toBe(drawn);
  expect(await two.act(call('add', { by: 3 }), context())).toEqual({ text: '3', reward: 0.5, done: false });
  expect(await one.act(call('add', { by: 2 }), context())).toEqual({ text: '4', reward: 0.5, done: true });
  expect(await one.end!({ answer: 'x', by: 'answer' }, new AbortController().signal)).toEqual({
    reward: 4,
    info: { answer: 'x', by: 'answer' },
  });
  await one.close!();
  expect(await two.act(call('add', { by: 1 }), context())).toEqual({ text: '4', reward: 0.5, done: true });
  await two.close!();
  await expect(two.act(call('draw'), context())).rejects.toMatchObject({
    type: 'python-died',
    retryable: true,
  });
});

test('a session that hangs ends alone', async () => {
  const [one, two] = await Promise.all([misbehaving.open(TASK, place()), misbehaving.open(TASK, place())]);
  const signal = AbortSignal.timeout(200);
  await expect(one.act(call('hang'), context(signal))).rejects.toThrow(/timeout/);
  await expect(one.act(call('draw'), context())).rejects.toMatchObject({
    type: 'python-died',
    retryable: true,
  });
  expect(await two.act(call('add', { by: 2 }), context())).toEqual({ text: '2', done: false });
  await one.close!();
  await two.close!();
});

test('a server that is killed takes its processes with it, and the next call has another', async () => {
  const killed = alone({ processes: 1, timeoutSeconds: 240 });
  const worker = (await killed.call('pid')) as number;
  const parent = Number(
    spawnSync('ps', ['-o', 'ppid=', '-p', String(worker)], { encoding: 'utf8' }).stdout.trim(),
  );
  const hanging = killed.call('hang').catch((error: unknown) => error);
  process.kill(parent, 'SIGKILL');
  expect(await hanging).toMatchObject({ type: 'python-died', retryable: true });
  await toBeGone(worker);
  expect(await killed.call('add', [1, 1])).toBe(2);
});
