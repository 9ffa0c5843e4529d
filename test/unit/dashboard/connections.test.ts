import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { serverWithin } from '../../../dashboard/connections.ts';

// Whoever is slow, idle, does not read or asks for everything at once, by bytes on the wire.

/** A busy machine may keep this process, in which both ends are, from its next turn for a second. */
const LIMITS = { headMs: 2000, requestMs: 3000, unreadMs: 2000, mostIdle: 20, mostAhead: 4 };

/** It only ends what hangs. */
const SOON = { timeout: 120_000 };

const app = new Hono();
app.onError((error, c) => c.text(error.message, 400));
let asked = 0;
let answer: (() => void)[] = [];
app.get('/', (c) => c.text('here'));
app.get('/waits', async (c) => {
  asked++;
  await new Promise<void>((resolve) => answer.push(resolve));
  return c.text('late');
});
app.post('/form', async (c) => c.text(await c.req.text()));
/** Downloads that go on. */
let [begun, open] = [0, 0];
app.get('/endless', (c) => {
  begun++;
  open++;
  return c.body(
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(65_536)),
      cancel: () => void open--,
    }),
  );
});
const server = serverWithin(getRequestListener(app.fetch), LIMITS);
const sockets: Socket[] = [];
const port = (): number => (server.address() as AddressInfo).port;
const others = (): Promise<string> =>
  fetch(`http://127.0.0.1:${port()}/`).then((response) => response.text());

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  for (const resolve of answer) resolve();
  for (const socket of sockets) socket.destroy();
  server.close();
});

async function speak(...lines: string[]): Promise<{ socket: Socket; heard: () => string }> {
  const socket = connect(port(), '127.0.0.1');
  sockets.push(socket);
  let heard = '';
  socket.on('error', () => {});
  await once(socket, 'connect');
  for (const text of lines) socket.write(text);
  socket.setEncoding('latin1').on('data', (data: string) => (heard += data));
  return { socket, heard: () => heard };
}

/** A byte every so often, until it is ended. */
function slowly({ socket }: { socket: Socket }): void {
  const timer = setInterval(() => socket.write('a'), 50);
  socket.once('close', () => clearInterval(timer));
}

const ended = (socket: Socket): Promise<unknown> =>
  vi.waitFor(() => expect(socket.destroyed || socket.readableEnded).toBe(true), SOON);

test('a head and a form that come a byte at a time are not waited for, and others are answered', async () => {
  const head = await speak('GET / HTTP/1.1\r\nHost: a\r\nX: ');
  const form = await speak('POST /form HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n');
  [head, form].forEach(slowly);
  expect(await others()).toBe('here');
  await Promise.all([ended(head.socket), ended(form.socket)]);
  expect(head.heard()).toMatch(/^HTTP\/1.1 408 /);
});

test('of many connections on which nothing is asked the newest stay, and others are answered', async () => {
  const all = await Promise.all(Array.from({ length: 200 }, () => speak()));
  expect(await others()).toBe('here');
  await vi.waitFor(() => {
    const left = all.filter(({ socket }) => !socket.destroyed && !socket.readableEnded);
    expect(left.length).toBeLessThanOrEqual(LIMITS.mostIdle);
  }, SOON);
});

test('a file that nobody takes is let go of; a page that is long in the making is waited for', async () => {
  const late = await speak('GET /waits HTTP/1.1\r\nHost: a\r\n\r\n');
  const { socket } = await speak('GET /endless HTTP/1.1\r\nHost: a\r\n\r\n');
  socket.pause();
  await vi.waitFor(() => expect(begun).toBe(1), SOON);
  await vi.waitFor(() => expect(open).toBe(0), SOON);
  expect(late.heard()).toBe('');
  for (const resolve of answer.splice(0)) resolve();
  await vi.waitFor(() => expect(late.heard()).toContain('late'), SOON);
});

test('who asks for everything at once is not listened to, and nothing of it is worked on for long', async () => {
  asked = 0;
  const { socket } = await speak('GET /waits HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(5000));
  await ended(socket);
  expect(asked).toBe(LIMITS.mostAhead);
  expect(await others()).toBe('here');
  // Two at once, as some do, are answered in order.
  const two = await speak('GET / HTTP/1.1\r\nHost: a\r\n\r\n'.repeat(2));
  await vi.waitFor(() => expect(two.heard().match(/here/g)).toHaveLength(2), SOON);
});

test.each([
  ['a long head', `GET / HTTP/1.1\r\nHost: a\r\nX: ${'a'.repeat(100_000)}\r\n\r\n`, 431],
  ['a million of parameters', `GET /?${'a&'.repeat(1_000_000)} HTTP/1.1\r\nHost: a\r\n\r\n`, 431],
  ['no name of a host', 'GET / HTTP/1.0\r\n\r\n', 400],
  ['a part of a page', 'GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=1-2,2-3\r\n\r\n', 200],
  ['what is no HTTP', '\u0016\u0003\u0001\r\n\r\n', 400],
])('%s is answered', async (_, request, status) => {
  const { heard } = await speak(request);
  await vi.waitFor(() => expect(heard()).toMatch(new RegExp(`^HTTP/1.1 ${status} `)), SOON);
  expect(await others()).toBe('here');
});
