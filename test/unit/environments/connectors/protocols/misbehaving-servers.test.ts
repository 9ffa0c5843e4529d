import { once } from 'node:events';
import { createServer } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { TlsOptions, TLSSocket } from 'node:tls';
import type { AddressInfo } from 'node:net';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { WebSocketServer } from 'ws';
import type { WebSocket } from 'ws';
import { nemoGym } from '../../../../../environments/connectors/protocols/nemo-gym.ts';
import { openEnv } from '../../../../../environments/connectors/protocols/openenv.ts';
import { ors } from '../../../../../environments/connectors/protocols/ors.ts';
import { CERTIFICATE } from '../../../../support/certificate.ts';
import { playCalls } from '../../../../support/play-calls.ts';
import { until } from '../../../../support/run-client.ts';

// Servers of ours that speak the protocols as their documentation has them, and then do not. How the real ones are spoken
// to is in test/integration/protocols.

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void | Promise<void>;

const cleanups: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0)) await clean();
});

async function serving(
  handler: Handler,
  port = 0,
  tls?: TlsOptions,
): Promise<{ url: string; port: number; server: Server; stop(): Promise<void> }> {
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => void handler(request, response, body));
  };
  const server = tls ? createSecureServer(tls, listener) : createServer(listener);
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  const at = (server.address() as AddressInfo).port;
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    if (server.listening) await new Promise((resolve) => server.close(resolve));
  };
  cleanups.push(stop);
  return { url: `${tls ? 'https' : 'http'}://127.0.0.1:${at}`, port: at, server, stop };
}

const json = (response: ServerResponse, value: unknown, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));

const MINUTE = 60_000;
/** The minute that a tool has goes by when its server says so, and no other does. */
const withLimit = async (work: () => Promise<void>): Promise<void> => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    await work();
  } finally {
    vi.useRealTimers();
  }
};

/** A schema in so many others. */
const nested = (levels: number): string => `${'{"properties":'.repeat(levels)}{}${'}'.repeat(levels)}`;

describe('ORS', () => {
  const FACTS: Record<string, unknown> = {
    '/list_environments': ['till'],
    '/till/tools': { tools: [{ name: 'pay', description: '', input_schema: null }] },
    '/till/task_tools': { tools: [{ name: 'pay', description: '', input_schema: null }] },
    '/till/splits': [{ name: 'train', type: 'train' }],
    '/till/num_tasks': { num_tasks: 3 },
    '/till/prompt': [{ type: 'text', text: 'Pay.' }],
    '/create': { sid: 's' },
    '/delete': { sid: 's' },
    '/ping': { status: 'ok' },
  };
  const pay = { name: 'pay', arguments: {} };
  const done = JSON.stringify({
    ok: true,
    output: { blocks: [{ type: 'text', text: 'paid' }], reward: 1, finished: true },
  });
  const event = (name: string, data: string): string => `event: ${name}\ndata: ${data}\n\n`;
  const server = async (call: Handler, other: Record<string, Handler> = {}) => {
    const paths: string[] = [];
    const { url } = await serving((request, response, body) => {
      const at = request.url!;
      paths.push(at);
      if (at === '/till/call') return call(request, response, body);
      if (other[at]) return other[at](request, response, body);
      return json(response, FACTS[at], FACTS[at] === undefined ? 404 : 200);
    });
    return { url, paths };
  };

  test('a stream that breaks off is asked for again by the id of its call, which is not made twice', async () => {
    const bodies: unknown[] = [];
    const { url } = await server((_, response, body) => {
      bodies.push(JSON.parse(body));
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      if (bodies.length === 1) {
        response.write(event('task_id', '17'), () => response.destroy());
        return;
      }
      response.end(event('task_id', '17') + event('chunk', done.slice(0, 20)) + event('end', done.slice(20)));
    });
    const { observations } = await playCalls(await ors({ url }), [pay], { attempts: 1 });
    expect(observations).toEqual([{ text: 'paid', reward: 1, done: true }]);
    expect(bodies).toEqual([
      { name: 'pay', input: {} },
      { name: 'pay', input: {}, task_id: '17' },
    ]);
  });

  test('comments of a slow stream are signs of life', async () => {
    let signs = 0;
    const { url } = await server(async (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      for (let n = 0; n < 3; n++) await new Promise((resolve) => response.write(': ping\n\n', resolve));
      response.end(event('end', done));
    });
    await playCalls(await ors({ url }), [pay], { heartbeat: () => signs++ });
    expect(signs).toBe(4);
  });

  test.each<[string, Handler, object]>([
    ['500', (_, response) => json(response, { detail: 'oh' }, 500), { type: 'server-error' }],
    ['a page', (_, response) => void response.end('<html>'), { type: 'server-answer' }],
    [
      'an end that is no JSON',
      (_, response) => void response.end(event('end', 'nul')),
      { type: 'server-answer' },
    ],
    [
      'an outcome that is none',
      (_, response) => void response.end(event('end', '{"ok": 1}')),
      { type: 'server-answer' },
    ],
    [
      'that it knows no such session',
      (_, response) => json(response, { detail: 'no' }, 404),
      { type: 'session-lost' },
    ],
    [
      'nothing, and hangs up',
      (_, response) => void response.destroy(),
      { boundary: 'environment', type: 'server-unreachable' },
    ],
    [
      'where else to ask',
      (_, response) => void response.writeHead(307, { location: '/ping' }).end(),
      { type: 'server-answer', message: expect.stringContaining('leads elsewhere') as string },
    ],
    [
      'more than anybody reads',
      (_, response) => void response.writeHead(404).end('x'.repeat(17 * 2 ** 20)),
      { type: 'server-answer', message: expect.stringContaining('more than 16777216 bytes') as string },
    ],
    [
      'a stream of more than anybody reads',
      (_, response) => {
        const chunk = event('chunk', 'x'.repeat(2 ** 20));
        response.end(chunk.repeat(17) + event('end', done));
      },
      { type: 'server-answer', message: expect.stringContaining('more than 16777216 bytes') as string },
    ],
    [
      'a line without end',
      (_, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ');
        const more = (): void => {
          if (response.destroyed) return;
          for (let ready = true; ready && !response.destroyed;) ready = response.write('x'.repeat(2 ** 20));
          response.once('drain', more);
        };
        more();
      },
      { type: 'server-answer', message: expect.stringContaining('more than 16777216 bytes') as string },
    ],
    [
      'an outcome of 2,000 levels',
      (_, response) => void response.end(event('end', nested(2000))),
      { type: 'server-answer', message: expect.stringContaining('more than 256 levels') as string },
    ],
    ['nothing at all', () => void vi.advanceTimersByTime(MINUTE), { type: 'timeout' }],
  ])('a call that is answered with %s is a failure, and its session is closed', async (_, call, error) => {
    const { url, paths } = await server(call);
    const environment = await ors({ url, limits: { timeoutSeconds: 60 } });
    await withLimit(async () => {
      const playing = playCalls(environment, [pay], { attempts: 1 });
      await expect(playing).rejects.toMatchObject({ boundary: 'tool', ...error });
    });
    // Whoever called does not wait for it.
    await expect.poll(() => paths.at(-1)).toBe('/delete');
  });

  test.each(['/list_environments', '/till/tools', '/till/splits', '/till/num_tasks'])(
    'a connection that is let go of at %s is made anew',
    async (path) => {
      let asked = 0;
      const { url } = await server(() => undefined, {
        [path]: (_, response) => (asked++ === 0 ? void response.destroy() : json(response, FACTS[path])),
      });
      await expect(ors({ url })).resolves.toMatchObject({ name: 'till' });
    },
  );

  test.each<[string, Record<string, Handler>]>([
    ['tools', { '/till/tools': (_, response) => json(response, { tools: 'none' }) }],
    ['splits', { '/till/splits': (_, response) => json(response, { detail: 'no' }, 404) }],
    [
      'schemas of 2,000 levels',
      {
        '/till/tools': (_, response) =>
          void response.end(`{"tools":[{"name":"pay","description":"","input_schema":${nested(2000)}}]}`),
      },
    ],
  ])('%s that are none say so where the environment is made', async (_, other) => {
    const { url } = await server(() => undefined, other);
    await expect(ors({ url })).rejects.toMatchObject({ type: 'server-answer' });
  });
});

describe('OpenEnv', () => {
  const schema = {
    action: { type: 'object', properties: { to: { type: 'string' }, metadata: {} }, required: ['to'] },
  };
  const seen = (text: string, more: object = {}): string =>
    JSON.stringify({
      type: 'observation',
      data: { observation: { text }, reward: null, done: false, ...more },
    });
  const server = async (step: (socket: WebSocket) => void, timeoutSeconds = 60) => {
    const { url, server: http } = await serving((_, response) => json(response, schema));
    const sockets = new WebSocketServer({ server: http });
    let closed = 0;
    sockets.on('connection', (socket) => {
      socket.on('close', () => closed++);
      socket.on('message', (data: Buffer) => {
        const { type } = JSON.parse(data.toString()) as { type: string };
        if (type === 'reset') socket.send(seen('begin'));
        else if (type === 'step') step(socket);
        else socket.send(JSON.stringify({ type: 'state', data: { steps: 1 } }));
      });
    });
    cleanups.push(async () => sockets.close());
    const environment = await openEnv({
      url,
      name: 'e',
      seeds: { train: 3, heldout: 1, test: 1 },
      limits: { timeoutSeconds },
    });
    return { environment, closed: () => closed };
  };
  const act = { name: 'step', arguments: { to: 'there' } };

  test.each<[string, (socket: WebSocket) => void, object]>([
    ['garbage', (socket) => socket.send('<html>'), { type: 'server-answer' }],
    ['bytes', (socket) => socket.send(Buffer.from([1, 2])), { type: 'server-answer' }],
    [
      'another kind of answer',
      (socket) => socket.send('{"type": "state", "data": {}}'),
      { type: 'server-answer' },
    ],
    [
      'no end of it',
      (socket) => socket.send('{"type": "observation", "data": {}}'),
      { type: 'server-answer' },
    ],
    [
      'that there is no room',
      (socket) => socket.send('{"type": "error", "data": {"code": "CAPACITY_REACHED", "message": "full"}}'),
      { type: 'server-error' },
    ],
    ['nothing, and hangs up', (socket) => socket.terminate(), { type: 'session-lost' }],
    ['nothing at all', () => void vi.advanceTimersByTime(MINUTE), { type: 'timeout' }],
  ])('a step that is answered with %s is a failure, and the connection is closed', async (_, step, error) => {
    const { environment, closed } = await server(step);
    await withLimit(async () => {
      const playing = playCalls(environment, [act], { attempts: 1 });
      await expect(playing).rejects.toMatchObject({ boundary: 'tool', ...error });
    });
    await expect.poll(closed).toBe(2);
  });

  test('tools that an environment lists are called by name; what they would not do is the policy’s to read', async () => {
    const { url, server: http } = await serving((_, response) =>
      json(response, { action: { properties: { tool_name: { type: 'string' } } } }),
    );
    const sockets = new WebSocketServer({ server: http });
    cleanups.push(async () => sockets.close());
    const inputSchema = { type: 'object', properties: { n: { type: 'integer' } } };
    const results: Record<number, object> = {
      1: { result: { content: [{ type: 'text', text: 'one' }, { type: 'image' }] } },
      2: { result: { content: [{ type: 'text', text: 'too many' }], is_error: true } },
      3: { error: { error_type: 'invalid_args', message: 'no such n' } },
      4: { error: { error_type: 'timeout', message: 'too slow' } },
    };
    sockets.on('connection', (socket) =>
      socket.on('message', (text: Buffer) => {
        const { type, data } = JSON.parse(text.toString()) as {
          type: string;
          data?: { arguments?: { n: number } };
        };
        if (type === 'reset') return socket.send(seen('begin'));
        if (type === 'state') return socket.send('{"type": "state", "data": {}}');
        if (type === 'mcp') {
          const listed = { result: { tools: [{ name: 'count', description: 'Counts.', inputSchema }] } };
          return socket.send(JSON.stringify({ type, data: listed }));
        }
        expect(data).toMatchObject({ type: 'call_tool', tool_name: 'count' });
        const observation = { tool_name: 'count', ...results[data!.arguments!.n] };
        socket.send(JSON.stringify({ type: 'observation', data: { observation, done: false } }));
      }),
    );
    const environment = await openEnv({ url, name: 'e', seeds: { train: 3, heldout: 1, test: 1 } });
    expect(environment.tools).toMatchObject([
      { name: 'count', description: 'Counts.', arguments: inputSchema },
    ]);
    const count = (n: number) => ({ name: 'count', arguments: { n } });
    const { observations } = await playCalls(environment, [count(1), count(2), count(3)]);
    expect(observations).toEqual([
      { text: 'one\n[image]' },
      { text: 'error: too many', error: 'tool-error' },
      { text: 'error: no such n', error: 'tool-error' },
    ]);
    await expect(playCalls(environment, [count(4)])).rejects.toMatchObject({ type: 'server-error' });
  });

  test('an answer that comes too late is not the answer to what is asked next', async () => {
    let unanswered: WebSocket | undefined;
    const step = (socket: WebSocket): void => {
      if (unanswered === undefined) {
        unanswered = socket;
        return;
      }
      unanswered.send(seen('too late'));
      socket.send(seen('in time'));
    };
    const { environment } = await server(step, 0.3);
    // On a slow machine other attempts are given up, too.
    const { observations } = await playCalls(environment, [act, act], { attempts: 100 });
    expect(observations.map(({ text }) => text)).toEqual(['in time', 'in time']);
  });

  test('a beginning that is not what the task had is a failure that names the seed', async () => {
    let begun = 0;
    const { url, server: http } = await serving((_, response) => json(response, schema));
    const sockets = new WebSocketServer({ server: http });
    cleanups.push(async () => sockets.close());
    sockets.on('connection', (socket) => socket.on('message', () => socket.send(seen(`begin ${++begun}`))));
    const environment = await openEnv({ url, name: 'e', seeds: { train: 3, heldout: 1, test: 1 } });
    await expect(playCalls(environment, [act])).rejects.toMatchObject({
      type: 'replay-differs',
      message: expect.stringContaining('"seed":0') as string,
    });
  });
});

describe('NeMo Gym', () => {
  const tool = (name: string) => ({
    type: 'function',
    name,
    description: '',
    parameters: { type: 'object', properties: {} },
  });
  const environmentAt = async (url: string, more: object = {}) => {
    const folder = await mkdtemp(path.join(tmpdir(), 'gradus-nemo-'));
    cleanups.push(() => rm(folder, { recursive: true }));
    const rows = [['add'], ['add'], ['add', 'get']].map((names, n) => ({
      responses_create_params: {
        input: [
          { role: 'system', content: 'Count.' },
          { role: 'user', content: `To ${n}.` },
        ],
        tools: names.map(tool),
      },
      expected: n,
    }));
    await writeFile(path.join(folder, 'rows.jsonl'), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
    return nemoGym({
      name: 'nemo',
      url,
      path: path.join(folder, 'rows.jsonl'),
      split: { heldout: 0, test: 0 },
      ...more,
    });
  };
  /** Counts by cookie, as a resources server does: it takes any cookie, and begins at nothing where it knows none. */
  const counting = (other: Record<string, Handler> = {}): Handler => {
    const counts = new Map<string, number>();
    let sessions = 0;
    return (request, response, body) => {
      const at = request.url!;
      if (other[at]) return other[at](request, response, body);
      const known = /counter=(\w+)/u.exec(request.headers.cookie ?? '')?.[1];
      const id = known ?? `s${++sessions}`;
      response.setHeader('set-cookie', `counter=${id}; path=/; httponly`);
      const count = counts.get(id) ?? 0;
      if (at === '/seed_session') return json(response, {});
      if (at === '/verify') {
        const { response: said, expected } = JSON.parse(body) as {
          response: { output: unknown[] };
          expected: number;
        };
        return json(response, {
          ...JSON.parse(body),
          reward: Number(count === expected),
          items: said.output.length,
        });
      }
      counts.set(id, count + 1);
      json(response, { count: count + 1 });
    };
  };
  const add = { name: 'add', arguments: {} };

  test('rows are tasks with tools of their own; calls, answers and the last word go to /verify', async () => {
    const { url } = await serving(counting());
    const environment = await environmentAt(url);
    const [one, last] = [0, 2].map((index) =>
      environment.task({ environment: 'nemo', split: 'train', level: 1, index }),
    );
    expect([await one, await last]).toMatchObject([
      { prompt: 'Count.\n\nTo 0.' },
      { tools: [{ name: 'add' }, { name: 'get' }] },
    ]);
    expect([environment.tools.map(({ name }) => name), (await one)!.tools]).toEqual([['add'], undefined]);
    const played = await playCalls(environment, [add, { name: 'get', arguments: {} }], {
      task: { index: 2 },
      answer: 'two',
    });
    expect(played.observations.map(({ text }) => text)).toEqual(['{"count":1}', '{"count":2}']);
    expect(played.ended).toEqual({ reward: 1, info: { items: 5 } });
  });

  test('a server that was started anew, and takes the old cookie for one without a past, is noticed: replay or failure', async () => {
    for (const resume of ['replay', 'pin'] as const) {
      const first = await serving(counting());
      const environment = await environmentAt(first.url, { resume });
      const playing = playCalls(environment, [add, add], {
        task: { index: 2 },
        before: {
          1: async () => {
            await first.stop();
            await serving(counting(), first.port);
          },
        },
      });
      if (resume === 'pin')
        await expect(playing).rejects.toMatchObject({ type: 'session-lost', retryable: false });
      else
        expect(await playing).toMatchObject({
          observations: [{ text: '{"count":1}' }, { text: '{"count":2}' }],
          ended: { reward: 1 },
        });
    }
  });

  describe('over https', () => {
    afterEach(() => {
      delete process.env['NODE_TLS_REJECT_UNAUTHORIZED'];
    });

    test('the connection beside a session lasts', async () => {
      process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
      const { url, server } = await serving(counting(), 0, { ...CERTIFICATE, handshakeTimeout: MINUTE });
      let withoutHandshake = 0;
      server.on('connection', () => withoutHandshake++).on('secureConnection', () => withoutHandshake--);
      server.on('tlsClientError', () => withoutHandshake--);
      const settled = (): Promise<void> =>
        until(
          () => Promise.resolve(withoutHandshake === 0 || undefined),
          2 * MINUTE,
          () => 'the server waits for a handshake still',
        ).then(() => undefined);
      const environment = await environmentAt(url, { resume: 'pin' });
      const { observations } = await playCalls(environment, [add, add], { before: { 1: settled } });
      expect(observations.map(({ text }) => text)).toEqual(['{"count":1}', '{"count":2}']);
    });

    test('the connection beside a session says which server it is for, as its requests do', async () => {
      process.env['NODE_TLS_REJECT_UNAUTHORIZED'] = '0';
      const { port, server } = await serving(counting(), 0, CERTIFICATE);
      const asked: unknown[] = [];
      server.on('secureConnection', ({ servername }: TLSSocket) => asked.push(servername));
      await playCalls(await environmentAt(`https://localhost:${port}`), [add]);
      expect(asked.length).toBeGreaterThan(1);
      expect(new Set(asked)).toEqual(new Set(['localhost']));
    });

    test('a server that shows no certificate to be trusted is told nothing', async () => {
      const { url } = await serving(() => expect.fail('it was asked'), 0, CERTIFICATE);
      const playing = playCalls(await environmentAt(url), [add], { attempts: 1 });
      await expect(playing).rejects.toMatchObject({ type: 'server-unreachable' });
    });
  });

  test.each<[string, Record<string, Handler>, object]>([
    [
      '500 of a tool',
      { '/add': (_, response) => json(response, 'KeyError()', 500) },
      { boundary: 'tool', type: 'server-error' },
    ],
    [
      'a tool that is not there',
      { '/add': (_, response) => json(response, { detail: 'Not Found' }, 404) },
      { boundary: 'tool', type: 'nemo-gym' },
    ],
    [
      'a tool that hangs',
      { '/add': () => void vi.advanceTimersByTime(MINUTE) },
      { boundary: 'tool', type: 'timeout' },
    ],
    [
      'a seed that is refused',
      { '/seed_session': (_, response) => json(response, {}, 422) },
      { type: 'server-answer' },
    ],
    [
      'a verdict without reward',
      { '/verify': (_, response) => json(response, { score: 1 }) },
      { type: 'server-answer' },
    ],
    [
      'a verdict that is no JSON',
      { '/verify': (_, response) => void response.end('yes') },
      { type: 'server-answer' },
    ],
  ])('%s is a failure, never a zero', async (_, other, error) => {
    const { url } = await serving(counting(other));
    const environment = await environmentAt(url, { limits: { timeoutSeconds: 60 } });
    await withLimit(async () => {
      const playing = playCalls(environment, [add], { attempts: 1 });
      await expect(playing).rejects.toMatchObject({ boundary: 'environment', ...error });
    });
  });

  test('what a tool’s server would not take is the policy’s to read', async () => {
    const { url } = await serving(
      counting({ '/add': (_, response) => json(response, { detail: 'too many' }, 422) }),
    );
    const { observations } = await playCalls(await environmentAt(url), [add]);
    expect(observations).toEqual([{ text: 'error: {"detail":"too many"}', error: 'tool-error' }]);
  });
});
