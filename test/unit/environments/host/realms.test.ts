import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import type { Observation } from '../../../../core/episode/episode.ts';
import type { Incident } from '../../../../core/episode/incidents.ts';
import { EnvironmentHost } from '../../../../environments/host/environment-host.ts';
import { someSession } from '../../../support/some-session.ts';

// What one module's tool does to the language in its process no other module feels, and its own neighbours are asked again.

const MODULE = path.resolve('test/support/polluting-environments.ts');
const SECOND = path.resolve('test/support/second-module.ts');

let host: EnvironmentHost;
const lines: string[] = [];
beforeAll(async () => {
  host = await EnvironmentHost.open({ modules: [MODULE, SECOND], log: (line) => lines.push(line) });
});
afterAll(() => host.close());

const call = { name: 'calculator', arguments: { expression: '2+3' } };

/** Calls of the first group pollute. */
async function callAs(
  environment: string,
  group: number,
  incidents: Incident[] = [],
  heartbeat?: (details?: unknown) => void,
): Promise<Observation> {
  const { observation } = await host.environments.get(environment)!.call(call, {
    idempotencyKey: `run/rl/1/${group}/0/1`,
    attempt: 1,
    signal: AbortSignal.timeout(240_000),
    session: someSession,
    incident: (incident) => incidents.push(incident),
    ...(heartbeat && { heartbeat }),
  });
  const { seconds: _, ...said } = observation;
  return said;
}

describe('a tool that', () => {
  test.each([
    ['reward', /changed Object\.prototype\.done/],
    ['thenable', /changed Object\.prototype\.then/],
    ['map', /changed Array\.prototype\.map/],
    ['to-json', /changed Object\.prototype\.toJSON/],
    ['promise-then', /changed Promise\.prototype\.then/],
    ['prototype', /changed the prototype of Array\.prototype/],
    ['species', /changed Array\.Symbol\(Symbol\.species\)/],
    ['chdir', /changed the working directory/],
    ['frozen', /changed Object\.prototype, which was frozen/],
  ])(
    'changes the language (%s) is named, and every other call in and beside its process is answered as ever',
    async (kind, what) => {
      const incidents: Incident[] = [];
      const unlucky = callAs(`polluting-${kind}`, 0, incidents).catch((error: unknown) => error);
      const beside = Array.from({ length: 34 }, (_, i) =>
        callAs(i % 2 === 0 ? 'calculator' : 'polluting-none', i + 1, incidents),
      );
      expect(await Promise.all(beside)).toEqual(beside.map(() => ({ text: '5' })));
      expect(await unlucky).toMatchObject({
        boundary: 'tool',
        type: 'host-died',
        message: expect.stringMatching(what) as string,
      });
      expect(incidents).toEqual([
        expect.objectContaining({
          environment: `polluting-${kind}`,
          file: MODULE,
          function: 'tool calculator',
          kind: 'crashed',
          message: expect.stringMatching(what) as string,
        }),
      ]);
      expect(await callAs('polluting-none', 1)).toEqual({ text: '5' });
    },
  );

  test.each([
    // Node may end it first: nothing keeps its event loop any more.
    ['close', /closed its channel|ended its process/],
    ['forge', /sent what is none of its own messages/],
  ])('does %s to the way to the worker has crashed, and nobody has its answers', async (kind, how) => {
    const incidents: Incident[] = [];
    await expect(callAs(`polluting-${kind}`, 0, incidents)).rejects.toMatchObject({ type: 'host-died' });
    expect(incidents).toMatchObject([
      {
        environment: `polluting-${kind}`,
        kind: 'crashed',
        message: expect.stringMatching(how) as string,
      },
    ]);
    expect(await callAs(`polluting-${kind}`, 1)).toEqual({ text: '5' });
  });

  test.each([
    ['microtasks', /gave no sign of life/],
    ['descriptors', /closed|ended its process/],
  ])(
    'keeps everybody from their turn (%s) is ended and named, and its neighbours are answered',
    async (kind, how) => {
      const incidents: Incident[] = [];
      const unlucky = callAs(`polluting-${kind}`, 0, incidents).catch((error: unknown) => error);
      const beside = Array.from({ length: 4 }, (_, i) => callAs('polluting-none', i + 1));
      expect(await Promise.all(beside)).toEqual(beside.map(() => ({ text: '5' })));
      expect(await unlucky).toMatchObject({
        type: 'host-died',
        message: expect.stringMatching(how) as string,
      });
      expect(incidents).toMatchObject([{ environment: `polluting-${kind}` }]);
    },
  );

  test('gives a hundred thousand heartbeats in a loop has the worker hear the last', async () => {
    const heard: unknown[] = [];
    expect(await callAs('polluting-beats', 0, [], (details) => heard.push(details))).toEqual({ text: '5' });
    expect(heard.at(-1)).toBe(1e5);
    expect(heard.length).toBeLessThan(10);
  });

  test('prints a hundred megabytes leaves a megabyte in the log, and a line that says so', async () => {
    let [printed, text] = [0, ''];
    const writing = vi.spyOn(process.stderr, 'write').mockImplementation((output) => {
      printed += output.length;
      if (output.length < 1000) text += Buffer.from(output as string).toString();
      return true;
    });
    try {
      expect(await callAs('polluting-flood', 0)).toEqual({ text: '5' });
      // What was printed comes by another way than the answer.
      await expect.poll(() => text).toContain(`[the code of ${MODULE} prints more than`);
    } finally {
      writing.mockRestore();
    }
    expect(printed).toBeGreaterThan(1e6);
    expect(printed).toBeLessThan(4e6);
  });

  test('ends its process leaves no detached process behind', async () => {
    let children: number[] = [];
    const calling = callAs('polluting-detached-exit', 0, [], (pids) => (children = pids as number[]));
    await expect(calling).rejects.toMatchObject({ type: 'host-died' });
    expect(children).toHaveLength(1);
    await expect.poll(() => children.filter(isRunning)).toEqual([]);
  });
});

test('environments of different modules run in different processes', async () => {
  const ref = { environment: 'second', split: 'train', level: 1, index: 0 } as const;
  const { signal } = new AbortController();
  const [second] = await host.environments.get('second')!.tasks([ref], { signal });
  expect(second).toEqual({ prompt: expect.stringMatching(/^\d+$/u) as string });
  const pids = host.pids();
  expect(new Set(pids).size).toBe(pids.length);
  expect(pids).toContain(Number((second as { prompt: string }).prompt));
  // Gradus's own environments are at home in another one.
  expect(pids.length).toBeGreaterThanOrEqual(2);
});

test('what users started detached ends when their host is closed', async () => {
  const own = await EnvironmentHost.open({ modules: [MODULE], log: () => undefined });
  let children: number[] = [];
  const started = new Promise<void>((resolve) => {
    own.environments
      .get('polluting-detached')!
      .call(call, {
        idempotencyKey: 'run/rl/1/0/0/1',
        attempt: 1,
        signal: new AbortController().signal,
        session: someSession,
        heartbeat: (pids) => {
          children = pids as number[];
          resolve();
        },
      })
      .catch(() => undefined);
  });
  await started;
  expect(children.filter(isRunning)).toHaveLength(2);
  await own.close();
  await expect.poll(() => children.filter(isRunning)).toEqual([]);
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}
