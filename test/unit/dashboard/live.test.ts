import { once } from 'node:events';
import { connect } from 'node:net';
import type { AddressInfo, Socket } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { Hono } from 'hono';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { asset } from '../../../dashboard/assets.ts';
import { serveLive } from '../../../dashboard/live.ts';
import { headers } from '../../../dashboard/security.ts';

// Whoever asks to follow pages, and never reads what comes, or has gone already.

/** What a page that follows something has. */
const LIVE = `<script type="module" src="${asset('live.js')}"></script>`;

const app = new Hono();
app.use(headers);
/** How often each page was made. */
const made = new Map<string, number>();
/** More than the system keeps for a connection. */
const PAGE = 'x'.repeat(16_000_000);
/** Pages that are being made, and the most there were at a time. */
const making = { now: 0, most: 0 };
app.get('/slow/:name', async (c) => {
  making.most = Math.max(making.most, ++making.now);
  await new Promise((resolve) => setTimeout(resolve, 5));
  making.now--;
  const name = `slow-${c.req.param('name')}`;
  made.set(name, (made.get(name) ?? 0) + 1);
  return c.html(`${name} ${LIVE}`);
});
app.get('/pages/:name', (c) => {
  const name = c.req.param('name');
  const times = (made.get(name) ?? 0) + 1;
  made.set(name, times);
  if (name === 'ends') return c.html(times < 4 ? `goes on ${LIVE}` : 'has ended');
  if (name === 'fails') return c.text('not now', 503);
  return c.html(`${name === 'large' ? `${times} ${PAGE}` : name} ${LIVE}`);
});
/** Of downloads that were begun, those that nobody has told to end. */
let held = 0;
app.get('/download', (c) => {
  held++;
  return c.body(
    new ReadableStream({
      pull: (controller) => controller.enqueue(new Uint8Array(1024)),
      cancel: () => void held--,
    }),
  );
});
serveLive(app, 100);
const server = createAdaptorServer({ fetch: app.fetch });
const sockets: Socket[] = [];

beforeAll(async () => {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterAll(() => {
  for (const socket of sockets) socket.destroy();
  server.close();
});

const live = (path: string): string => `/live?path=${encodeURIComponent(path)}`;
const url = (path: string): string => `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`;

/** Asks by hand, and reads nothing. */
async function ask(method: string, path: string): Promise<Socket> {
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  sockets.push(socket);
  await once(socket, 'connect');
  socket.write(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n\r\n`);
  return socket;
}

/** Made so often that others which were asked for before have been, too. */
async function looks(name: string, times: number): Promise<void> {
  const from = made.get(name) ?? 0;
  await expect.poll(() => (made.get(name) ?? 0) - from, { timeout: 100_000 }).toBeGreaterThanOrEqual(times);
}

async function events(path: string): Promise<ReadableStreamDefaultReader<Uint8Array>> {
  const response = await fetch(url(live(path)));
  expect(response.status).toBe(200);
  return response.body!.getReader();
}

test('of sixty pages that are followed two are made at a time, and all in turn', async () => {
  const names = Array.from({ length: 60 }, (_, i) => String(i));
  const readers = await Promise.all(names.map((name) => events(`/slow/${name}`)));
  await expect
    .poll(() => names.filter((name) => !made.has(`slow-${name}`)), { timeout: 100_000 })
    .toEqual([]);
  expect(making.most).toBe(2);
  await Promise.all(readers.map((reader) => reader.cancel()));
  // Nobody follows them any more: those in the row are not made.
  await expect.poll(() => making.now).toBe(0);
});

test('heads, readers that have gone, and pages that follow themselves are not followed for ever', async () => {
  for (let i = 0; i < 64; i++) {
    expect((await fetch(url(live(`/pages/head-${i}`)), { method: 'HEAD' })).status).toBe(200);
    (await ask('GET', live(`/pages/gone-${i}`))).destroy();
  }
  const itself = await Promise.all(
    [`/%6cive?path=/pages/itself`, `/x/../live?path=/pages/itself`].map(events),
  );
  const reader = await events('/pages/kept');
  await looks('kept', 2);
  expect([...made.keys()].filter((name) => name.startsWith('head-'))).toEqual([]);
  expect(made.get('itself')).toBeUndefined();
  const before = [...made].filter(([name]) => name.startsWith('gone-'));
  await looks('kept', 2);
  expect([...made].filter(([name]) => name.startsWith('gone-'))).toEqual(before);
  await Promise.all([reader, ...itself].map((one) => one.cancel()));
});

test('who joins is told what others were told; who reads nothing for a while is kept the newest page alone', async () => {
  const asleep = await ask('GET', live('/pages/large'));
  asleep.pause();
  await looks('large', 8);
  const late = await events('/pages/large');
  const { value } = await late.read();
  expect(new TextDecoder().decode(value)).toMatch(/^event: page\n/);
  await late.cancel();
  const lines: string[] = [];
  asleep.on('data', (chunk: Buffer) => {
    lines.push(...(chunk.toString('latin1').match(/data: "\d+/g) ?? []).map((one) => one.slice(7)));
  });
  asleep.resume();
  await expect.poll(() => lines.some((one) => Number(one) >= 8), { timeout: 100_000 }).toBe(true);
  // Those that were on their way, and what was newest.
  expect(lines).not.toContain('6');
  asleep.destroy();
});

test('hundreds who follow a page have it made once for all, are told that it is over, and then it is not made any more', async () => {
  const followers = await Promise.all(Array.from({ length: 300 }, () => fetch(url(live('/pages/ends')))));
  const lines = await Promise.all(followers.map((response) => response.text()));
  for (const text of lines) expect(text).toMatch(/"has ended"[\s\S]*event: over\n/);
  // Once an interval, and not once for each of them.
  expect(made.get('ends')).toBeLessThan(150);
  const before = made.get('ends');
  const kept = await events('/pages/others');
  await looks('others', 3);
  expect(made.get('ends')).toBe(before);
  await kept.cancel();
});

test('a page that cannot be made for a while is not over', async () => {
  const reader = await events('/pages/fails');
  await looks('fails', 3);
  expect(new TextDecoder().decode((await reader.read()).value)).not.toContain('over');
  await reader.cancel();
});

test('a download that is only asked about, or followed like a page, is let go', async () => {
  expect((await fetch(url('/download'), { method: 'HEAD' })).status).toBe(200);
  expect(held).toBe(0);
  const reader = await events('/download');
  expect(new TextDecoder().decode((await reader.read()).value)).toMatch(/^event: same\ndata: [^\n]*\n\n$/);
  expect(held).toBe(0);
  await reader.cancel();
});
