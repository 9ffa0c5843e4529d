import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ToolCall } from '../../../../core/episode/episode.ts';
import type { Incident } from '../../../../core/episode/incidents.ts';
import { callBlocksMs, EnvironmentHost } from '../../../../environments/host/environment-host.ts';
import { toolLimitsOf } from '../../../../environments/contract/environment.ts';
import type { HostedVerdict } from '../../../../environments/host/asks.ts';
import type { HostedEnvironment } from '../../../../environments/host/hosted-environment.ts';
import { someSession } from '../../../support/some-session.ts';

const MODULE = path.resolve('test/support/hostile-environments.ts');
const MEMORY = 400 * 2 ** 20;

let host: EnvironmentHost;
const lines: string[] = [];

beforeAll(async () => {
  process.env['HOSTILE_KEY'] = 'a key';
  process.env['HOSTILE_SECRET'] = 'a secret';
  host = await EnvironmentHost.open({
    modules: [MODULE],
    memoryBytes: MEMORY,
    log: (line) => lines.push(line),
  });
});
afterAll(() => host.close());

const environment = (kind: string): HostedEnvironment => host.environments.get(kind)!;
const call: ToolCall = { name: 'calculator', arguments: { expression: '2+3' } };
const { signal } = new AbortController();

/** Calls of the first group are the unlucky ones. */
function callAs(kind: string, group: number, incidents: Incident[] = [], attempt = 1) {
  return environment(kind).call(call, {
    idempotencyKey: `run/rl/1/${group}/0/1`,
    attempt,
    signal,
    session: someSession,
    incident: (incident) => incidents.push(incident),
  });
}

describe('a tool that', () => {
  test.each([
    ['spin', 'hung', /no sign of life/],
    ['heap', 'memory', /took more than 400 MB/],
    ['buffers', 'memory', /took more than 400 MB/],
    ['exit', 'crashed', /exit code 3/],
    ['abort', 'crashed', /SIGABRT/],
    ['descriptor', 'crashed', /sent what is none of its own messages/],
  ])('does %s is charged; those beside it are not, and answer', async (kind, how, message) => {
    const incidents: Incident[] = [];
    const unlucky = callAs(`hostile-${kind}`, 0, incidents).catch((error: unknown) => error);
    const others = await Promise.all([1, 2, 3].map((group) => callAs(`hostile-${kind}`, group, incidents)));
    expect(others.map(({ observation }) => observation.text)).toEqual(['5', '5', '5']);
    expect(await unlucky).toMatchObject({
      boundary: 'tool',
      type: 'host-died',
      retryable: true,
      message: expect.stringMatching(message) as string,
    });
    expect(incidents).toEqual([
      expect.objectContaining({
        environment: `hostile-${kind}`,
        file: MODULE,
        function: 'tool calculator',
        kind: how,
        count: 1,
      }),
    ]);
    expect(lines.some((line) => line.includes('tool calculator') && line.includes(MODULE))).toBe(true);
  });

  test('hangs without blocking is out of time, and its host lives on', async () => {
    await expect(callAs('hostile-hang', 0)).rejects.toMatchObject({ boundary: 'tool', type: 'timeout' });
  });

  test('leaves errors behind that nobody waits for harms nobody, and is told of', async () => {
    const incidents: Incident[] = [];
    expect((await callAs('hostile-late', 0, incidents)).observation.text).toBe('5');
    await expect
      .poll(async () => {
        await callAs('hostile-late', 1, incidents);
        return incidents.map(({ kind, message }) => `${kind}: ${message}`);
      })
      .toEqual(expect.arrayContaining(['late-error: nor for this']));
  });

  test('leaves a thousand errors behind fills no log', async () => {
    await callAs('hostile-late-often', 0);
    await expect.poll(() => lines.some((line) => /rejection \d+ \(512 times by now\)/.test(line))).toBe(true);
    expect(lines.filter((line) => line.includes('rejection')).length).toBeLessThan(12);
  });

  test('breaks what everybody stands on keeps nobody waiting for ever, and is charged', async () => {
    await expect(callAs('hostile-no-promise', 0)).rejects.toMatchObject({
      type: 'host-died',
      message: expect.stringContaining('changed Promise') as string,
    });
    expect((await callAs('calculator', 1)).observation.text).toBe('5');
  });

  test('says to whoever has started it that it is ready is not heard', async () => {
    expect((await callAs('hostile-ready', 0)).observation.text).toBe('5');
  });

  test('throws what cannot be looked at is tried again, as after any other error', async () => {
    await expect(callAs('hostile-odd-error', 0)).rejects.toMatchObject({
      boundary: 'tool',
      type: 'failed',
      retryable: true,
    });
  });

  test('is called with what cannot be sent is an error of that call alone', async () => {
    const deep = JSON.parse(`{"expression":${'['.repeat(50_000)}${']'.repeat(50_000)}}`) as never;
    const calling = environment('calculator').call(
      { ...call, arguments: deep },
      { idempotencyKey: 'x', attempt: 1, signal, session: someSession },
    );
    const beside = callAs('calculator', 1);
    await expect(calling).rejects.toMatchObject({ boundary: 'tool', type: 'not-json' });
    expect((await beside).observation.text).toBe('5');
  });

  test('claims that the object store is damaged is a tool that failed, in few words', async () => {
    const error: unknown = await callAs('hostile-fake-damage', 0).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ boundary: 'tool', retryable: false });
    expect((error as Error).message.length).toBeLessThan(3000);
  });

  test('checks its arguments for ever is out of time', async () => {
    await expect(callAs('hostile-arguments', 0)).rejects.toMatchObject({
      boundary: 'tool',
      type: 'arguments',
      retryable: true,
    });
  });

  test('ends and leaves a process behind takes it along', async () => {
    let child = 0;
    const calling = environment('hostile-child').call(call, {
      idempotencyKey: 'run/rl/1/0/0/1',
      attempt: 1,
      signal,
      session: someSession,
      heartbeat: (pid) => (child = pid as number),
    });
    await expect(calling).rejects.toMatchObject({ type: 'host-died' });
    expect(child).toBeGreaterThan(0);
    await expect.poll(() => isRunning(child)).toBe(false);
  });

  test('says 10 MB is cut where it runs', async () => {
    expect((await callAs('hostile-huge', 0)).observation.text).toMatch(
      /^x{4096} \[cut: 10000000 characters in all\]$/u,
    );
  });

  test('asks what it may know of its surroundings finds no secret there', async () => {
    const { text } = (await callAs('hostile-environment', 0)).observation;
    expect(JSON.parse(text)).toHaveProperty('PATH');
    expect(text).not.toContain('HOSTILE');
  });

  test('is called off ends with the reason', async () => {
    const controller = new AbortController();
    const calling = environment('hostile-hang').call(call, {
      idempotencyKey: 'run/rl/1/0/0/1',
      attempt: 1,
      session: someSession,
      signal: controller.signal,
      heartbeat: () => undefined,
    });
    const reason = new Error('the run was cancelled');
    controller.abort(reason);
    await expect(calling).rejects.toBe(reason);
  });
});

describe('a verifier that', () => {
  const ref = { environment: 'x', split: 'train', level: 1, index: 0 } as const;
  const turn = { start: 0, end: 1, text: '', action: { kind: 'answer', answer: '5' } } as const;
  const candidate = (turns: number) => ({
    ref,
    episode: {
      turns: Array.from({ length: turns }, () => turn),
      status: { kind: 'answered', answer: '5' } as const,
    },
  });
  const judged = (kind: string, incidents: Incident[]) =>
    environment(kind).verdicts(['odd', 'format'], [candidate(2), candidate(1), candidate(2)], {
      signal,
      incident: (incident) => incidents.push(incident),
    });

  test('ends its process is the culprit; the other candidates are judged', async () => {
    const incidents: Incident[] = [];
    const [good, bad, alsoGood] = await judged('hostile-verifier-exit', incidents);
    for (const one of [good, alsoGood]) expect(one).toMatchObject([{ score: 1 }, { verifier: 'format' }]);
    expect(bad).toMatchObject({ boundary: 'verifier', message: expect.stringContaining(MODULE) as string });
    expect(new Set(incidents.map((incident) => incident.function))).toEqual(new Set(['verifier odd']));
    expect(incidents).toHaveLength(2);
  });

  test('throws abstains, as before, and is told of', async () => {
    const incidents: Incident[] = [];
    const [, bad] = await judged('hostile-verifier-throws', incidents);
    expect(bad).toMatchObject([{ score: null, evidence: 'threw: no dictionary' }, { verifier: 'format' }]);
    expect(incidents).toMatchObject([{ function: 'verifier odd', kind: 'threw', message: 'no dictionary' }]);
  });

  test('changes what it is shown changes nothing for the others', async () => {
    const [, one] = await environment('hostile-verifier-changes').verdicts(
      ['odd', 'exact-match', 'format'],
      [candidate(2), candidate(1)],
      { signal },
    );
    const [, alone] = await environment('hostile-verifier-changes').verdicts(
      ['exact-match', 'format'],
      [candidate(2), candidate(1)],
      { signal },
    );
    expect((one as HostedVerdict[]).slice(1)).toEqual(alone);
  });

  test('is of a tier has its key, and no other has it', async () => {
    const said = await environment('hostile-tiers').find('tier-key', {}, { signal });
    expect(said).toMatchObject({ kind: 'scored', evidence: 'a key' });
  });

  test('is of a tier and waits for a process is not silent meanwhile', async () => {
    const fresh = await EnvironmentHost.open({ modules: [path.resolve('test/support/loads-slowly.ts')] });
    try {
      let signs = 0;
      // The function itself gives none; its process has to be started, which takes longer than a sign is away.
      await fresh.environments
        .get('hostile-tiers')!
        .find('tier-key', {}, { signal, heartbeat: () => void signs++ });
      expect(signs).toBeGreaterThan(0);
    } finally {
      await fresh.close();
    }
  });

  test('is of a tier and says that it is alive is heard, without details too', async () => {
    let signs = 0;
    const said = await environment('hostile-tiers').find(
      'tier-beats',
      {},
      { signal, heartbeat: () => void signs++ },
    );
    expect(said).toEqual({ kind: 'scored', score: 1 });
    expect(signs).toBeGreaterThan(0);
  });

  test('is of a tier and throws has its other attempts', async () => {
    await expect(environment('hostile-tiers').find('tier-throws', {}, { signal })).rejects.toMatchObject({
      boundary: 'verifier',
      retryable: true,
      message: expect.stringContaining('a licence is missing') as string,
    });
  });

  test('is of a tier and hangs is an error of the verifier', async () => {
    await expect(environment('hostile-tiers').find('tier-spin', {}, { signal })).rejects.toMatchObject({
      boundary: 'verifier',
      type: 'host-died',
      retryable: true,
    });
  });

  test('gives a score that is text is an error of the verifier', async () => {
    await expect(environment('hostile-tiers').find('tier-text', {}, { signal })).rejects.toMatchObject({
      boundary: 'verifier',
      type: 'bad-answer',
    });
  });

  test('cannot say its subject is an error that names it', async () => {
    const [said] = await environment('hostile-tiers').subjects('tier-subject', [candidate(1)], { signal });
    expect(said).toMatchObject({ message: expect.stringContaining('tier-subject') as string });
  });
});

test('tasks that cannot be made are errors of the environment; the others are made', async () => {
  const refs = (['train', 'heldout'] as const).map((split) => ({
    environment: 'hostile-task',
    split,
    level: 1,
    index: 0,
  }));
  const incidents: Incident[] = [];
  const [train, heldout] = await environment('hostile-task').tasks(refs, {
    signal,
    incident: (incident) => incidents.push(incident),
  });
  expect(train).toMatchObject({
    boundary: 'environment',
    message: expect.stringContaining('task() is broken') as string,
  });
  expect(heldout).toEqual({ prompt: expect.any(String) as string });
  expect(incidents).toMatchObject([{ kind: 'threw', function: 'task()' }]);
  expect((await environment('hostile-prompt').tasks(refs, { signal }))[0]).toMatchObject({
    message: expect.stringContaining('prompt') as string,
  });
});

test('molecules are judged by what their host loads for them', async () => {
  const ref = { environment: 'molecules', split: 'train', level: 1, index: 0 } as const;
  const status = { kind: 'answered', answer: 'OCC' } as const;
  const candidates = [{ ref, episode: { turns: [], status } }];
  const [said] = await environment('molecules').verdicts(['molecule'], candidates, { signal });
  expect(said).toMatchObject([{ verifier: 'molecule', evidence: expect.stringMatching(/^CCO:/u) as string }]);
});

test('a number of tasks that is none is said where it is asked for', () => {
  expect(() => environment('hostile-count').taskCount('train', 1)).toThrow(/said NaN/u);
});

test('a module that never ends loading is named', async () => {
  const module = path.resolve('test/support/never-loads.ts');
  await expect(EnvironmentHost.open({ modules: [module], loadMs: 1000 })).rejects.toMatchObject({
    boundary: 'environment',
    type: 'module',
    message: expect.stringContaining(module) as string,
  });
});

test('an environment that is not there when its module is loaded again is an error that says so', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'gradus-changing-'));
  const module = path.join(folder, 'changing.mjs');
  const gives = (names: string[]): void =>
    writeFileSync(
      module,
      `export default ${JSON.stringify(names)}.map((name) => ({
        name, levels: [1], tools: [], verifiers: [],
        task: () => process.exit(3), demonstrate: () => ({}), taskCount: () => 1 }))`,
    );
  gives(['stays', 'goes']);
  const changing = await EnvironmentHost.open({ modules: [module], log: () => undefined });
  try {
    gives(['stays']);
    const ref = { environment: 'goes', split: 'train', level: 1, index: 0 } as const;
    const [said] = await changing.environments.get('goes')!.tasks([ref], { signal });
    expect(said).toMatchObject({ boundary: 'environment', type: 'module' });
  } finally {
    await changing.close();
    rmSync(folder, { recursive: true });
  }
});

test('a host ends with its worker, also when it hangs and the worker is killed', async () => {
  const { stdout } = spawnSync(
    process.execPath,
    ['--import', 'tsx', path.resolve('test/support/worker-with-hanging-host.ts')],
    { encoding: 'utf8', timeout: 200_000 },
  );
  const pid = Number(stdout.trim());
  expect(pid).toBeGreaterThan(0);
  await expect.poll(() => isRunning(pid)).toBe(false);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('how long a call may wait for something is not how long it may hold up its process', () => {
  const blocks = (placement: 'inline' | 'long', limits: { timeoutSeconds: number }) =>
    callBlocksMs({ placement, limits: toolLimitsOf({ placement, limits }) });
  expect(blocks('inline', { timeoutSeconds: 1 })).toBe(1000);
  expect(blocks('inline', { timeoutSeconds: 1200 })).toBe(10_000);
  expect(blocks('long', { timeoutSeconds: 1200 })).toBe(10_000);
});
