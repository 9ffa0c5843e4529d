import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { setTimeout as delay } from 'node:timers/promises';
import path from 'node:path';
import { Server, ServerCredentials } from '@grpc/grpc-js';
import { Client } from '@temporalio/client';
import getPort from 'get-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepMadeRun } from '../../support/keep-made-run.ts';
import { MADE_STAGE } from '../../support/made-run.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { fromTemporal } from '../../../runs/temporal/from-temporal.ts';
import { openConnection } from '../../../runs/temporal/temporal-connection.ts';
import { inParallel } from '../../../store/in-parallel.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { COMMAND } from '../../support/gradus-command.ts';
import { ROOT } from '../../support/markdown.ts';
import { pagesOf } from './plain-runs.ts';
import { until } from '../../support/run-client.ts';
import { openTestStore } from '../../support/test-store.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// Who looks while Temporal or the store is away is told so at once, and sees what the other one has.

const SIZE = { steps: 2, groups: 2, samples: 4 };
const { server, store } = await openTestStore();
const port = await getPort({ host: '127.0.0.1' });
const nowhere = `127.0.0.1:${port}`;
let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-away-'));
  await keepMadeRun(store, 'made', SIZE);
}, 600_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

const gradus = (...args: string[]) => {
  const env = { ...server.environment(), TEMPORAL_ADDRESS: nowhere };
  return runCommand(process.execPath, [...COMMAND.split(' '), ...args], { env, cwd: ROOT });
};

test('every command that needs Temporal says at once who is away, where, and what to do', async () => {
  const spec = path.join(folder, 'tiny.json');
  await writeFile(spec, JSON.stringify(tinySpec()));
  const episode = `made/${MADE_STAGE}/1/0/0`;
  const commands = [
    ['operations'],
    ['timeline', episode],
    ['review', 'list'],
    ['review', 'show', 'none'],
    ['review', 'submit', 'none', '--reviewer', 'a', '--score', '1'],
    ['pause', 'made'],
    ['decide', 'made'],
    ['set', 'made', '--max-steps', `${MADE_STAGE}=9`],
    ['delete', 'made', '--yes', 'made'],
    ['start', spec, '--no-check'],
    ['reverify', 'made', '--verifier', 'exact', '--version', '1'],
  ];
  // The first one makes the bundle.
  await gradus('runs');
  // That nobody listens is said by those alone who did not wait until their time was over.
  const said = new RegExp(
    `^\\s*infra/temporal-unreachable: Temporal does not answer: nobody listens at ${nowhere}\\. .*TEMPORAL_ADDRESS\\s*$`,
  );
  await inParallel(
    commands,
    async (command) => {
      const { code, stderr } = await gradus(...command);
      expect([command, code, stderr]).toEqual([command, 1, expect.stringMatching(said)]);
    },
    2,
  );
}, 600_000);

test('what the store has of runs is shown, with who is away and as of when', async () => {
  const runs = await gradus('runs');
  expect(runs).toMatchObject({ code: 0, stdout: expect.stringMatching(/made.*unknown.*2\/2/) as string });
  expect(runs.stderr).toContain(`Temporal does not answer: nobody listens at ${nowhere}`);
  const why = await gradus('why', 'made');
  expect(why.stdout).toMatch(/made: unknown, \S+, step 2\n.*its last step was stored .* UTC/);
  expect(why).toMatchObject({ code: 1, stderr: runs.stderr.replace(/^/, '  (').replace(/\n$/, ')\n') });
  const unknown = await gradus('why', 'nobody');
  expect(unknown).toMatchObject({ code: 1, stderr: expect.stringContaining(nowhere) as string });
}, 600_000);

test('pages show what the store has, and say at once that Temporal is away', async () => {
  const look = pagesOf(store, nowhere);
  // What is loaded when it is needed is loaded then.
  await look('/');
  const paths = [
    '/',
    '/runs/made',
    '/reviews',
    '/operations',
    `/runs/made/episodes/${MADE_STAGE}/1/0/0/timeline`,
  ];
  for (const path of paths) {
    const { status, text } = await look(path);
    expect([path, status, text]).toEqual([
      path,
      200,
      expect.stringContaining(`Temporal does not answer: nobody listens at ${nowhere}`),
    ]);
    if (path.startsWith('/runs') && !path.includes('timeline')) expect(text).toContain('Held-out success');
  }
});

test('a server that is there and slow has the time that it is given', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port: at } = silent.address() as AddressInfo;
  const connection = openConnection(`127.0.0.1:${at}`);
  const temporal = new Client({ connection });
  const started = performance.now();
  const asked = fromTemporal(temporal, 3000, () => connection.workflowService.getSystemInfo({}));
  await expect(asked).rejects.toMatchObject({
    type: 'temporal-unreachable',
    message: expect.stringContaining('did not answer in time') as string,
  });
  expect(performance.now() - started).toBeGreaterThan(2900);
  await connection.close();
  for (const socket of sockets) socket.destroy();
  silent.close();
});

test('of a Temporal that takes questions and answers none every page says so before a person is told to wait', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => sockets.push(socket));
  silent.listen(0, '127.0.0.1');
  await once(silent, 'listening');
  const { port: at } = silent.address() as AddressInfo;
  const look = pagesOf(store, `127.0.0.1:${at}`);
  const paths = [
    '/',
    '/runs/made',
    '/reviews',
    '/operations',
    `/runs/made/episodes/${MADE_STAGE}/1/0/0/timeline`,
  ];
  const pages = await Promise.all(paths.map((page) => look(page, { accept: 'text/html' })));
  for (const [i, { status, text }] of pages.entries()) {
    expect([paths[i], status, text]).toEqual([
      paths[i],
      200,
      expect.stringContaining('did not answer in time') as string,
    ]);
  }
  for (const socket of sockets) socket.destroy();
  silent.close();
}, 600_000);

test('a server that is back is found without a new connection', async () => {
  const address = `127.0.0.1:${await getPort({ host: '127.0.0.1' })}`;
  const connection = openConnection(address);
  const temporal = new Client({ connection });
  const ask = () =>
    fromTemporal(temporal, 3000, () => connection.workflowService.getSystemInfo({})).then(
      () => 'answered',
      (error: { type: string }) => error.type,
    );
  expect(await ask()).toBe('temporal-unreachable');
  // It speaks gRPC, and knows nothing of Temporal.
  const back = new Server();
  await new Promise<void>((resolve, reject) =>
    back.bindAsync(address, ServerCredentials.createInsecure(), (error) =>
      error ? reject(error) : resolve(),
    ),
  );
  await until(
    async () => ((await ask()) === 'temporal-refused' ? true : undefined),
    300_000,
    () => 'the server that is back is not found',
  );
  await connection.close();
  back.forceShutdown();
});

const STORE_AWAY = /object store at \S+, .*(no answer within 2 s|ECONNREFUSED)/;

test.each(['silent', 'gone'])(
  'pages say once that the store is %s, and recover by themselves',
  async (how) => {
    const most = how === 'silent' ? 4 : 12;
    const timeoutMs = 2000;
    const failingFast = ObjectStore.open(server.options({ timeoutMs, failFast: true }));
    const look = pagesOf(failingFast, nowhere);
    const paths = [
      '/runs/made',
      `/runs/made/steps/${MADE_STAGE}/1`,
      `/runs/made/episodes/${MADE_STAGE}/1/0/0`,
      '/find?run=made',
    ];
    // What is loaded when it is needed is loaded then.
    await look('/');
    await (how === 'silent' ? server.silentWhile(assertAway) : whileGone(assertAway));
    const back = () => look('/runs/made').then(({ text }) => (STORE_AWAY.test(text) ? undefined : text));
    expect(await until(back, 120_000, () => 'the store that is back is not found')).toContain('step 2 of 2');
    failingFast.close();

    async function assertAway(): Promise<void> {
      for (const path of paths) {
        // What the page before has found out is forgotten.
        await delay(1100);
        const tried = triesAt(server.port);
        const { text } = await look(path);
        expect([path, text]).toEqual([path, expect.stringMatching(STORE_AWAY)]);
        // A page asks three things at once; who is silent is asked once, and who is gone three times.
        expect([path, tried.stop()]).toEqual([path, expect.toSatisfy((tries: number) => tries <= most)]);
      }
      const { text } = await look('/');
      expect(text).toContain('the store does not answer');
      expect(text).not.toContain('There is no run yet');
    }
  },
  300_000,
);

test('commands say soon that the store is silent', async () => {
  const { code, stderr } = await server.silentWhile(() => gradus('checkpoints', 'made'));
  expect({ code, stderr }).toEqual({
    code: 1,
    stderr: expect.stringContaining('no answer within 4 s') as string,
  });
}, 600_000);

async function whileGone<T>(use: () => Promise<T>): Promise<T> {
  await server.kill();
  try {
    return await use();
  } finally {
    await server.restart();
  }
}

/** How often a connection to a port of this machine is tried. */
function triesAt(port: number): { stop: () => number } {
  let count = 0;
  const heard = (message: unknown): void => {
    const { socket } = message as { socket: Socket };
    socket.once('connectionAttempt', (_, at: number) => (count += at === port ? 1 : 0));
  };
  subscribe('net.client.socket', heard);
  return {
    stop: () => {
      unsubscribe('net.client.socket', heard);
      return count;
    },
  };
}
