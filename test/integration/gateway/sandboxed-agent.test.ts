import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { homedir, tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { randomKey } from '../../../core/random.ts';
import type { AgentSandbox } from '../../../core/schema/agent.ts';
import { sandboxProblems } from '../../../gateway/agent-sandbox.ts';
import type { AgentRun } from '../../../gateway/agent-run.ts';
import { runAgent } from '../../../gateway/run-agent.ts';
import type { AgentCommand } from '../../../gateway/run-agent.ts';
import { serveGateway } from '../../../gateway/server.ts';
import { episodeOptions, randomPolicy } from '../../support/gateway.ts';
import { processesBelow } from '../../support/processes-below.ts';
import { until } from '../../support/run-client.ts';
import { openTestStore } from '../../support/test-store.ts';
import { bubblewrap, LEFT_OUT } from '../sandbox/available.ts';

const { server, store } = await openTestStore();
const policy = await randomPolicy();
const gateway = await serveGateway();
const scratch = await mkdtemp(path.join(tmpdir(), 'gradus-test-'));
const folder = path.join(scratch, 'agent');
const secrets = path.join(scratch, 'secrets');
beforeAll(async () => {
  await mkdir(folder);
  await chmod(folder, 0o755);
  await mkdir(secrets);
  await writeFile(path.join(secrets, 'keys'), 'hunter2', { mode: 0o644 });
});
afterAll(async () => {
  await gateway.close();
  await policy.close();
  await rm(scratch, { recursive: true, force: true });
});

const sandbox: AgentSandbox = { folder, read: [], memoryMiB: 512, processes: 64, writableMiB: 32 };

let opened = 0;
async function ran(
  argv: AgentCommand['argv'],
  more: Partial<AgentCommand> = {},
  options: Parameters<typeof episodeOptions>[3] = {},
): Promise<AgentRun> {
  const episode = await gateway.open(episodeOptions(policy, store, `boxed-${opened++}`, options));
  return runAgent(gateway, episode, {
    argv,
    task: 'a task',
    timeoutSeconds: 60,
    sandbox,
    signal: new AbortController().signal,
    ...more,
  });
}

/** What a script, which asks the policy once, finds out: `found` is what it leaves as its answer. */
async function findings(script: string): Promise<unknown> {
  const { status } = await ran([
    process.execPath,
    '--input-type=module',
    '-e',
    `import { readFileSync, readdirSync, writeFileSync } from 'node:fs';
    const { OPENAI_BASE_URL, OPENAI_MODEL, GRADUS_ANSWER } = process.env;
    await fetch(OPENAI_BASE_URL + '/chat/completions', {
      method: 'POST', body: JSON.stringify({ model: OPENAI_MODEL, messages: [{ role: 'user', content: 'a' }] }) });
    const found = [];
    ${script}
    writeFileSync(GRADUS_ANSWER, JSON.stringify(found));`,
  ]);
  expect(status).toMatchObject({ kind: 'answered' });
  return JSON.parse((status as { answer: string }).answer);
}

const failed = (why: RegExp) => ({
  status: { kind: 'failed', boundary: 'environment', reason: expect.stringMatching(why) as string },
  row: null,
});

describe.skipIf(!bubblewrap)(`an agent in the sandbox${LEFT_OUT}`, { timeout: 300_000 }, () => {
  test('works to its end with the SDK that it is used to, and samples what it samples without a sandbox', async () => {
    const checkout = fileURLToPath(new URL('../../../', import.meta.url));
    const examples = path.join(checkout, 'examples');
    const shown = { ...sandbox, folder: examples, read: [path.join(checkout, 'node_modules')] };
    const inBoth = (where: string, more: Partial<AgentCommand>) =>
      ran(
        ['node', 'agent.mjs'],
        { task: 'What is 12 + 7?', ...more },
        { key: randomKey('same'), folder: where },
      );
    const boxed = await inBoth('boxed/same', { sandbox: shown });
    expect(boxed.status.kind).toBe('answered');
    expect(boxed.row!.mask).toContain(1);
    expect(boxed).toEqual(await inBoth('free/same', { sandbox: undefined, cwd: examples }));
  });

  test('reaches its episode, and nothing else on this machine that listens', async () => {
    let asked = 0;
    const other = createServer((_, response) => response.end(String(++asked)));
    await once(other.listen(0, '127.0.0.1'), 'listening');
    const own = await gateway.open(episodeOptions(policy, store, 'of-another'));
    const urls = [
      `http://127.0.0.1:${(other.address() as AddressInfo).port}/`,
      `${gateway.variablesFor(own)['OPENAI_BASE_URL']}/models`,
    ];
    const found = await findings(`
      const status = (url) => fetch(url).then((one) => one.status, ({ cause }) => cause?.code ?? 'no answer');
      for (const url of ${JSON.stringify(urls)}) found.push(await status(url));
      found.push(await status(OPENAI_BASE_URL + '/models'));
      found.push(await status(OPENAI_BASE_URL.replace(/episodes\\/[^/]+/, 'episodes/of-another') + '/models'));`);
    expect(found).toEqual(['ECONNREFUSED', 'ECONNREFUSED', 200, 404]);
    expect(asked).toBe(0);
    await new Promise((resolve) => other.close(resolve));
  });

  test("reads neither the home, nor another folder, nor the worker's variables, and writes nothing in its own", async () => {
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', 'hunter2');
    await writeFile(path.join(folder, 'own'), 'mine', { mode: 0o644 });
    const found = await findings(`
      const tried = (work) => { try { return work(); } catch ({ code }) { return code; } };
      for (const file of ${JSON.stringify([path.join(secrets, 'keys'), '/etc/shadow', homedir(), import.meta.filename])})
        found.push(tried(() => readFileSync(file, 'utf8')));
      found.push(JSON.stringify(process.env).includes('hunter2'));
      found.push(tried(() => readFileSync('own', 'utf8')));
      found.push(tried(() => writeFileSync('own', 'changed')));
      found.push(tried(() => readdirSync(${JSON.stringify(scratch)})));`);
    vi.unstubAllEnvs();
    const none = expect.stringMatching(/^(ENOENT|EACCES|EISDIR)$/) as string;
    expect(found).toEqual([none, 'ENOENT', none, 'ENOENT', false, 'mine', 'EROFS', ['agent']]);
  });

  test('that takes more than it may has failed, says what, and harms nobody', async () => {
    const mark = `600.${process.pid}3`;
    const bomb = `b() { sleep ${mark} & b & b; }; b`;
    const forks = ran(['/bin/sh', '-c', bomb], { timeoutSeconds: 5 });
    const filled = 'const all = []; for (;;) all.push(Buffer.alloc(2 ** 24, 1));';
    const memory = await ran(['node', '-e', filled], { sandbox: { ...sandbox, memoryMiB: 128 } });
    expect(memory).toEqual(failed(/raise agent.sandbox.memoryMiB|it ended with/));
    const spun = await ran(['node', '-e', 'for (;;);'], { sandbox: { ...sandbox, cpuSeconds: 1 } });
    expect(spun).toEqual(failed(/raise agent.sandbox.cpuSeconds/));
    expect(await forks).toEqual(failed(/had not ended after 5 s|it ended with|raise agent.sandbox/));
    expect(processesBelow(mark)).toEqual([]);
    const long = `require('fs').writeFileSync(process.env.GRADUS_ANSWER, 'a'.repeat(2 ** 20 + 1))`;
    expect(await ran(['node', '-e', long])).toEqual(failed(/more than 1048576 bytes/));
    expect(await findings('found.push(1)')).toEqual([1]);
  });

  test('that fails says why, is killed when it is called off, and is started again where somebody else killed it', async () => {
    expect(await ran(['node', '-e', 'console.error("no luck"); process.exit(3)'])).toEqual(
      failed(/it ended with 3: no luck/),
    );
    expect(await ran(['no-such-agent'])).toEqual(failed(/no-such-agent could not be started/));
    expect(await ran(['node', '-e', ''])).toEqual(failed(/asked the policy for nothing/));
    const killed = await ran(['node', '-e', 'process.kill(process.pid, "SIGKILL")']);
    expect(killed).toEqual({ ...failed(/it ended with SIGKILL/), killed: true });
    const off = new AbortController();
    const mark = `600.${process.pid}4`;
    const running = ran(['sleep', mark], { signal: off.signal });
    const seen = () => Promise.resolve(processesBelow(mark).length > 0 || undefined);
    await until(seen, 120_000, () => 'the agent was not started');
    off.abort(new Error('called off'));
    await expect(running).rejects.toThrow('called off');
    expect(processesBelow(mark)).toEqual([]);
  });

  test('ends with the process that runs it, however that ends', async () => {
    const mark = `600.${process.pid}5`;
    const script = fileURLToPath(new URL('serve-sandboxed.ts', import.meta.url));
    const command = ['/bin/sh', '-c', `setsid sleep ${mark} & sleep ${mark}`];
    const worker = spawn(
      process.execPath,
      ['--import', 'tsx', script, JSON.stringify(server.options()), folder, ...command],
      { stdio: ['ignore', 'ignore', 'inherit'] },
    );
    const alive = (): number[] => processesBelow(`sleep\0${mark}`);
    await until(
      () => Promise.resolve(alive().length >= 2 || undefined),
      300_000,
      () => 'the agent was not started',
    ).finally(() => worker.kill('SIGKILL'));
    const pids = alive();
    await until(
      () => Promise.resolve(pids.some(isThere) ? undefined : true),
      300_000,
      () => 'the agent goes on without its worker',
    );
  });

  test.each<[string, string, Partial<AgentSandbox>, RegExp]>([
    ['a program that is not shown', 'no-such-agent', {}, /"no-such-agent" is no program that the sandbox/],
    ['a folder that is not there', 'node', { folder: '/no/such/folder' }, /which is not there/],
    ['the home', 'node', { folder: homedir() }, /the home of the rollout worker/],
    ['what the home is in', 'node', { read: ['/'] }, /the home of the rollout worker/],
  ])('is refused %s before it is started', async (_, program, more, why) => {
    const problems = await sandboxProblems(program, { ...sandbox, ...more });
    expect(problems.map(({ message }) => message)).toEqual([expect.stringMatching(why)]);
  });

  test('is refused the folder of the store and its keys, and what lies in it', async () => {
    vi.stubEnv('GRADUS_STATE_DIR', secrets);
    for (const shown of [scratch, secrets, path.join(secrets, 'keys')])
      expect(await sandboxProblems('node', { ...sandbox, read: [shown] })).toEqual([
        {
          path: ['sandbox', 'read', 0],
          message: expect.stringContaining('the store and its keys') as string,
        },
      ]);
    vi.unstubAllEnvs();
    expect(await sandboxProblems('node', sandbox)).toEqual([]);
  });
});

function isThere(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    expect(error).toMatchObject({ code: 'ESRCH' });
    return false;
  }
}
