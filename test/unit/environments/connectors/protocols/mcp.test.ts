import { once } from 'node:events';
import { createServer } from 'node:http';
import type { ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { json } from 'node:stream/consumers';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Json } from '../../../../../core/json/json.ts';
import type { ToolCall } from '../../../../../core/episode/episode.ts';
import { defineEnvironment } from '../../../../../environments/contract/environment.ts';
import type { Environment, Tool, ToolContext } from '../../../../../environments/contract/environment.ts';
import { mcpSessions, mcpTools } from '../../../../../environments/connectors/protocols/mcp.ts';
import type { ActedFully } from '../../../../../environments/contract/session.ts';
import { isAlive } from '../../../../../infra/setup/file-lock.ts';
import { playCalls } from '../../../../support/play-calls.ts';
import { ServerProcess } from '../../../../support/protocol-servers/start.ts';
import { until } from '../../../../support/run-client.ts';

const root = path.resolve(import.meta.dirname, '../../../../..');
const COUNTER = path.join(root, 'test/support/protocol-servers/mcp-server.mjs');
const EVERYTHING = path.join(root, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const counter = { command: process.execPath, args: [COUNTER] };

const contextWith = (more: Partial<ToolContext> = {}): ToolContext => ({
  idempotencyKey: 'run/1',
  attempt: 1,
  signal: new AbortController().signal,
  heartbeat: () => undefined,
  task: () => Promise.reject(new Error('nobody asks')),
  ...more,
});
const run = async (
  tools: readonly Tool[],
  name: string,
  args: Record<string, Json> = {},
  more: Partial<ToolContext> = {},
) => {
  const said = await tools.find((tool) => tool.name === name)!.run!(args, contextWith(more));
  if (typeof said === 'string') return said;
  const { text, images } = said;
  return images ? said : text;
};

describe('server-everything from npm', () => {
  let http: ServerProcess;
  beforeAll(async () => {
    http = await ServerProcess.start(process.execPath, [EVERYTHING, 'streamableHttp']);
  });
  afterAll(() => http.kill());

  test.each(['stdio', 'streamable HTTP'])(
    'gives its tools by %s, with their schemas, and they answer',
    async (way) => {
      const server =
        way === 'stdio'
          ? { command: process.execPath, args: [EVERYTHING, 'stdio'] }
          : { url: `${http.url}/mcp` };
      const tools = await mcpTools({
        server,
        only: ['echo', 'get-sum', 'trigger-long-running-operation', 'get-tiny-image'],
      });
      expect(tools.find(({ name }) => name === 'get-sum')).toMatchObject({
        arguments: { type: 'object', properties: { a: { type: 'number' } }, required: ['a', 'b'] },
        effect: 'once',
        placement: 'long',
      });
      expect(await run(tools, 'echo', { message: 'hello' })).toBe('Echo: hello');
      expect(await run(tools, 'get-sum', { a: 2, b: 3 })).toContain('5');
      expect(await run(tools, 'get-tiny-image')).toMatchObject({
        images: [{ mediaType: 'image/png', data: expect.stringMatching(/^iVBORw0KGgo/u) as string }],
      });
      const signs: unknown[] = [];
      // It goes on until two are heard: the library forgets signs that it reads together with the end.
      const heard = new AbortController();
      const slow = { duration: 600, steps: 12_000 };
      const running = run(tools, 'trigger-long-running-operation', slow, {
        signal: heard.signal,
        heartbeat: (details) => signs.push(details) === 2 && heard.abort(new Error('enough')),
      });
      await expect(running).rejects.toThrow('enough');
      expect(signs.slice(0, 2)).toEqual([
        { progress: 1, total: 12_000 },
        { progress: 2, total: 12_000 },
      ]);
    },
  );

  test('a server by HTTP that was killed and is back is connected to anew', async () => {
    const tools = await mcpTools({ server: { url: `${http.url}/mcp` }, only: ['echo'] });
    expect(await run(tools, 'echo', { message: 'before' })).toBe('Echo: before');
    await http.kill();
    await expect(run(tools, 'echo', { message: 'while' })).rejects.toMatchObject({
      boundary: 'infra',
      retryable: true,
    });
    await http.up();
    expect(await run(tools, 'echo', { message: 'after' })).toBe('Echo: after');
    // Nobody has called while it was away: the new one refuses the old session.
    await http.kill();
    await http.up();
    expect(await run(tools, 'echo', { message: 'again' })).toBe('Echo: again');
  });
});

test('a server by HTTP that closes connections without a request answers calls', async () => {
  let done = 0;
  const sockets = new Set<Socket>();
  const http = createServer((request, response) => {
    if (request.method !== 'POST') {
      response.writeHead(405).end();
      return;
    }
    void json(request).then((message) => {
      const { id, method, params } = message as {
        id?: number;
        method: string;
        params?: Record<string, Json>;
      };
      if (id === undefined) return response.writeHead(202).end();
      const results: Record<string, Json> = {
        initialize: {
          protocolVersion: params?.['protocolVersion'] ?? '',
          capabilities: { tools: {} },
          serverInfo: { name: 'slow', version: '1' },
        },
        'tools/list': { tools: [{ name: 'slow', inputSchema: { type: 'object' } }] },
        'tools/call': { content: [{ type: 'text', text: method === 'tools/call' ? `done ${++done}` : '' }] },
      };
      const say = (): void =>
        void response
          .writeHead(200, { 'content-type': 'application/json', 'mcp-session-id': 'one' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }));
      return method === 'tools/call' ? setTimeout(say, 400) : say();
    });
  }).listen(0, '127.0.0.1');
  http.on('connection', (socket: Socket) => sockets.add(socket));
  await once(http, 'listening');
  const server = { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` };
  try {
    expect(await run(await mcpTools({ server }), 'slow')).toBe('done 1');
    const { sessions } = await mcpSessions({ server, resume: 'pin' });
    if (sessions.resume !== 'pin') throw new Error('it resumes otherwise');
    const place = { id: 'e', signal: new AbortController().signal };
    const session = await sessions.open({} as Parameters<typeof sessions.open>[0], place);
    const slow = { name: 'slow', arguments: {} };
    expect(await session.act(slow, contextWith())).toEqual({ text: 'done 2' });
    expect(await session.act(slow, contextWith())).toEqual({ text: 'done 3' });
    await session.close!();
  } finally {
    http.closeAllConnections();
    http.close();
  }
});

describe('a server by HTTP that answers without end', () => {
  const answers: Record<string, (id: number, response: ServerResponse) => void> = {
    'a JSON text': (_, response) => {
      response.writeHead(200, { 'content-type': 'application/json' }).write('{"jsonrpc":"2.0","x":"');
      endless(response, () => 'x'.repeat(2 ** 20));
    },
    'an event of one line': (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' }).write('data: ');
      endless(response, () => 'x'.repeat(2 ** 20));
    },
    'an event of many lines': (_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      endless(response, () => `data: ${'x'.repeat(1000)}\n`.repeat(1000));
    },
  };

  test.each(Object.keys(answers))('by %s fails when 16 MiB of it have come', async (kind) => {
    let sent = 0;
    const http = createServer((request, response) => {
      if (request.method !== 'POST') {
        response.writeHead(405).end();
        return;
      }
      response.on('close', () => (sent = response.socket?.bytesWritten ?? sent));
      void json(request).then((message) => {
        const { id, method, params } = message as {
          id?: number;
          method: string;
          params?: Record<string, Json>;
        };
        if (id === undefined) return response.writeHead(202).end();
        if (method !== 'initialize') return answers[kind]!(id, response);
        const result = {
          protocolVersion: params?.['protocolVersion'] ?? '',
          capabilities: { tools: {} },
          serverInfo: { name: 'endless', version: '1' },
        };
        return response
          .writeHead(200, { 'content-type': 'application/json' })
          .end(JSON.stringify({ jsonrpc: '2.0', id, result }));
      });
    }).listen(0, '127.0.0.1');
    await once(http, 'listening');
    const server = { url: `http://127.0.0.1:${(http.address() as AddressInfo).port}/mcp` };
    try {
      await expect(mcpTools({ server })).rejects.toMatchObject({
        message: expect.stringContaining('more than 16777216 bytes') as string,
      });
      // No more was taken than what sockets hold on the way.
      expect(sent).toBeLessThan(64 * 2 ** 20);
    } finally {
      http.closeAllConnections();
      http.close();
    }
  });
});

/** As fast as it is read. */
function endless(response: ServerResponse, chunk: () => string): void {
  for (let ready = true; ready;) {
    if (response.destroyed) return;
    ready = response.write(chunk());
  }
  response.once('drain', () => endless(response, chunk));
}

test('a program that answers with a line without end is ended', async () => {
  await expect(run(await mcpTools({ server: counter }), 'endless')).rejects.toMatchObject({
    type: 'mcp',
    message: expect.stringMatching(/exceeded maximum size/u) as string,
  });
});

test('a server whose schemas have 2,000 levels is refused in words', async () => {
  const env = { NESTED: '2000' };
  await expect(mcpTools({ server: { ...counter, env } })).rejects.toMatchObject({
    boundary: 'environment',
    type: 'server-answer',
    message: expect.stringContaining('more levels than can be read') as string,
  });
});

test('what a tool may do is `once` until the author says that the hints are true, or says it of the tool', async () => {
  const effects = async (more: object) => {
    const tools = await mcpTools({ server: counter, only: ['add', 'total', 'set'], ...more });
    return Object.fromEntries(tools.map(({ name, effect, placement }) => [name, `${effect} ${placement}`]));
  };
  const once = 'once long';
  expect(await effects({})).toEqual({ add: once, total: once, set: once });
  expect(await effects({ hintsAreTrue: true })).toEqual({
    add: once,
    total: 'pure inline',
    set: 'idempotent inline',
  });
  expect(await effects({ effects: { add: 'idempotent' }, long: ['add'] })).toEqual({
    add: 'idempotent long',
    total: once,
    set: once,
  });
});

describe('a server of tools without state', () => {
  let tools: Tool[];
  let folder: string;
  let log: string;
  const logged = async (): Promise<string> => readFile(log, 'utf8');
  beforeAll(async () => {
    folder = await mkdtemp(path.join(tmpdir(), 'gradus-mcp-'));
    log = path.join(folder, 'log');
    tools = await mcpTools({ server: { ...counter, env: { LOG: log, GIVEN: 'yes' } } });
  });
  afterAll(() => rm(folder, { recursive: true }));

  test('sees no variables but those that it is given', async () => {
    process.env['GRADUS_TEST_SECRET'] = 'mine';
    expect(await run(tools, 'secret', { name: 'GRADUS_TEST_SECRET' })).toBe('none');
    expect(await run(tools, 'secret', { name: 'GIVEN' })).toBe('yes');
  });

  test('is one process, whoever calls first', async () => {
    const shared = await mcpTools({ server: counter, only: ['pid'] });
    const pids = await Promise.all(Array.from({ length: 4 }, () => run(shared, 'pid')));
    expect(new Set(pids).size).toBe(1);
  });

  test('refuses in its own words, shows images, and is understood among garbage', async () => {
    await expect(run(tools, 'refuse')).rejects.toMatchObject({
      name: 'ToolRefusal',
      message: 'not on a Sunday',
    });
    expect(await run(tools, 'picture')).toEqual({
      text: 'look:',
      images: [{ mediaType: 'image/png', data: 'AA==' }],
    });
    expect(await run(tools, 'garbage')).toBe('after garbage');
  });

  test('what is no result is no observation', async () => {
    await expect(run(tools, 'nonsense')).rejects.toMatchObject({
      boundary: 'environment',
      type: 'server-answer',
    });
  });

  test('what is larger than anybody checks is no result', async () => {
    expect(await run(tools, 'letters', { n: 10 })).toBe(`{"letters":"${'x'.repeat(10)}"}`);
    await expect(run(tools, 'letters', { n: 1_000_000 })).rejects.toMatchObject({
      type: 'server-answer',
      message: expect.stringContaining('1000014 characters') as string,
    });
  });

  test('is told that a call is called off', async () => {
    const calledOff = new AbortController();
    const calling = run(tools, 'slow', { seconds: 600 }, { signal: calledOff.signal });
    await run(tools, 'total');
    calledOff.abort(new Error('enough'));
    await expect(calling).rejects.toThrow('enough');
    await until(
      async () => (await logged()).includes('cancelled') || undefined,
      120_000,
      () => 'it was not told',
    );
  });

  test('that dies in a call says its last words, and is started again for the next', async () => {
    const before = await run(tools, 'pid');
    await expect(run(tools, 'die')).rejects.toMatchObject({
      boundary: 'infra',
      retryable: true,
      message: expect.stringContaining('out of cheese') as string,
    });
    expect(await run(tools, 'pid')).not.toBe(before);
  });
});

/** A server whose one tool answers with a structure of so many levels; written by hand, for no library can write it. */
const DEEP = `
  require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line);
    const say = (result) => console.log('{"jsonrpc":"2.0","id":' + id + ',"result":' + result + '}');
    if (method === 'initialize')
      say(JSON.stringify({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 'deep', version: '1' } }));
    if (method === 'tools/list') say('{"tools":[{"name":"deep","inputSchema":{"type":"object"}}]}');
    if (method === 'tools/call') {
      const { levels } = params.arguments;
      say('{"content":[],"structuredContent":' + '{"a":'.repeat(levels) + '1' + '}'.repeat(levels) + '}');
    }
  });`;

test('a result with more levels than can be read is no result, and the server is still there', async () => {
  const tools = await mcpTools({ server: { command: process.execPath, args: ['-e', DEEP] } });
  for (const levels of [300, 5000, 200_000]) {
    await expect(run(tools, 'deep', { levels })).rejects.toMatchObject({
      boundary: 'environment',
      type: 'server-answer',
      message: expect.stringContaining('more than 256 levels') as string,
    });
  }
  expect(await run(tools, 'deep', { levels: 2 })).toBe('{"a":{"a":1}}');
});

test('a program that is no server says why where the tools are made', async () => {
  const server = { command: process.execPath, args: ['-e', 'console.error("wrong door"); process.exit(1)'] };
  await expect(mcpTools({ server })).rejects.toMatchObject({
    boundary: 'infra',
    message: expect.stringContaining('wrong door') as string,
  });
});

describe('a server with state', () => {
  const call = (name: string, args: object = {}) => ({ name, arguments: args }) as ToolCall;
  const counting = async (resume: 'replay' | 'pin'): Promise<Environment> => {
    const { tools, sessions } = await mcpSessions({
      server: counter,
      resume,
      only: ['add', 'total', 'pid', 'refuse'],
    });
    return defineEnvironment({
      name: 'counter',
      levels: [1],
      tools,
      sessions,
      verifiers: [],
      taskCount: () => 1,
      task: (ref) => ({ ref, prompt: 'count' }),
    });
  };
  const CALLS = [call('add', { n: 2 }), call('refuse'), call('add', { n: 3 }), call('total')];
  const EXPECTED = ['2', 'error: not on a Sunday', '5', '5'];
  /** Of the server of the latest episode. */
  const killServer = (pid: number): void => void process.kill(pid, 'SIGKILL');

  test('is one instance an episode, ended with it', async () => {
    const environment = await counting('replay');
    const both = await Promise.all([1, 2].map(() => playCalls(environment, [call('pid'), ...CALLS])));
    expect(both.map(({ observations }) => observations.slice(1).map(({ text }) => text))).toEqual([
      EXPECTED,
      EXPECTED,
    ]);
    const pids = both.map(({ observations }) => Number(observations[0]!.text));
    expect(new Set(pids).size).toBe(2);
    // The library waits for an end of two seconds, and then kills what it no longer waits for.
    await expect.poll(() => pids.filter(isAlive)).toEqual([]);
  });

  test('comes back by its calls where the process is another one', async () => {
    const environment = await counting('replay');
    const { observations } = await playCalls(environment, CALLS, { moves: [1, 3] });
    expect(observations.map(({ text }) => text)).toEqual(EXPECTED);
  });

  test('that is killed comes back by its calls, or is a failure where it is pinned', async () => {
    for (const resume of ['replay', 'pin'] as const) {
      const environment = await counting(resume);
      const { sessions } = environment;
      if (sessions?.resume !== resume) throw new Error('it resumes otherwise');
      let pid = 0;
      // What an episode does not tell: the process that its session is.
      const open: typeof sessions.open = async (task, place) => {
        const session = await sessions.open(task, place);
        pid = Number(((await session.act(call('pid'), contextWith())) as ActedFully).text);
        return session;
      };
      const playing = playCalls({ ...environment, sessions: { resume, open } }, CALLS, {
        before: { 2: async () => killServer(pid) },
      });
      if (resume === 'pin')
        await expect(playing).rejects.toMatchObject({ type: 'session-lost', retryable: false });
      else expect((await playing).observations.map(({ text }) => text)).toEqual(EXPECTED);
    }
  });
});
