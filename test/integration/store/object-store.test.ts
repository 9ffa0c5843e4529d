import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import getPort from 'get-port';
import { Client } from 'minio';
import { expect, onTestFinished, test } from 'vitest';
import { z } from 'zod';
import { jsonCodec } from '../../../store/codec.ts';
import { sha256Hex } from '../../../store/digest.ts';
import { GradusError } from '../../../core/errors.ts';
import { answeringProxy } from './answering-proxy.ts';
import { FaultyProxy } from './faulty-proxy.ts';
import { randomBytes } from '../../support/store/fixtures.ts';
import { put, raw } from './raw.ts';
import { TestServer } from '../../support/store/server.ts';
import { openTestStore } from '../../support/test-store.ts';

const { server, store } = await openTestStore();

const text = (value: string) => new TextEncoder().encode(value);
const failure = (type: string, retryable: boolean, message: RegExp): unknown =>
  expect.objectContaining({
    boundary: 'store',
    type,
    retryable,
    message: expect.stringMatching(message) as string,
  });

async function temporaryFolder(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'gradus-test-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  return directory;
}

test('what was put is what is got, byte for byte, the empty object too', async () => {
  for (const bytes of [new Uint8Array(0), text('a'), randomBytes(3_000_000, 1)]) {
    const key = `round-trip/${bytes.length}`;
    const ref = await put(store, key, bytes);
    expect(ref).toEqual({ key, sha256: sha256Hex(bytes), bytes: bytes.length });
    expect(Buffer.from(await store.get(ref)).equals(bytes)).toBe(true);
    expect(await store.head(key)).toEqual(ref);
  }
  const json = jsonCodec<object>('anything', z.json());
  const { ref } = await store.putIfAbsent('round-trip/json', json, { b: [1, 'ü'], a: null });
  expect(JSON.stringify(await store.getJson(ref))).toBe('{"b":[1,"ü"],"a":null}');
});

test('of twenty writers that race for a key one wins, and all go on from what it wrote', async () => {
  const results = await Promise.all(
    Array.from({ length: 20 }, (_, i) => store.putIfAbsent('race/key', raw, text(`writer ${i}`))),
  );
  const kept = new TextDecoder().decode(await store.get(results[0]!.ref));
  expect(kept).toMatch(/^writer \d+$/);
  for (const { ref, value } of results) {
    expect(ref).toEqual(results[0]!.ref);
    expect(new TextDecoder().decode(value)).toBe(kept);
  }
});

test('a key that exists keeps its content, and the later writer gets that', async () => {
  const first = await store.putIfAbsent('taken', raw, text('first'));
  const second = await store.putIfAbsent('taken', raw, text('second, longer'));
  expect(second.ref).toEqual(first.ref);
  expect(new TextDecoder().decode(second.value)).toBe('first');
  expect((await store.putIfAbsent('taken', raw, text('first'))).ref).toEqual(first.ref);
});

test('what lies at a key and is something else is refused, not answered from memory', async () => {
  await put(store, 'something-else', text('{"n":"one"}'));
  const numbers = jsonCodec<{ n: number }>('a number', z.object({ n: z.number() }));
  await expect(store.putIfAbsent('something-else', numbers, { n: 1 })).rejects.toEqual(
    failure('invalid-object', false, /something-else is not a number: n: /),
  );
  expect(await store.find('nothing-there', numbers)).toBeNull();
});

test('bytes that may be no others are adopted, and any others are a conflict', async () => {
  const conflict = (key: string) => new GradusError('store', 'conflict', key);
  const ref = await store.putSame('same', text('same'), { conflict });
  expect(await store.putSame('same', text('same'), { conflict })).toEqual(ref);
  await expect(store.putSame('same', text('other'), { conflict })).rejects.toEqual(
    failure('conflict', false, /same/),
  );
});

test('a large object is adopted like a small one, though the server closes the connection in the middle of it', async () => {
  const bytes = [5, 6, 7].map((seed) => new Uint8Array(10_000_000).fill(seed));
  const race = await Promise.all(bytes.map((content) => store.putIfAbsent('large/taken', raw, content)));
  const winner = race[0]!.value[0]!;
  expect([5, 6, 7]).toContain(winner);
  for (const content of bytes) {
    const { ref, value } = await store.putIfAbsent('large/taken', raw, content);
    expect(ref).toEqual(race[0]!.ref);
    expect(Buffer.from(value).equals(bytes[winner - 5]!)).toBe(true);
  }
});

test('an object that changed on the disk of the server is refused by name', async () => {
  const ref = await put(store, 'corrupt/object', text('precious'));
  await writeFile(server.fileOf('corrupt/object'), 'perilous');
  await expect(store.get(ref)).rejects.toEqual(failure('corrupt-object', false, /corrupt\/object/));
  await writeFile(server.fileOf('corrupt/object'), 'prec');
  await expect(store.get(ref)).rejects.toMatchObject({ type: 'corrupt-object' });
});

test('a missing object is said to be missing, and has no head', async () => {
  const ref = { key: 'no/such', sha256: '0'.repeat(64), bytes: 1 };
  await expect(store.get(ref)).rejects.toEqual(failure('missing-object', false, /no\/such/));
  expect(await store.head('no/such')).toBeUndefined();
});

test('list gives keys in order across pages, remove takes what is there', async () => {
  const keys = Array.from({ length: 1005 }, (_, i) => `listed/${String(i).padStart(4, '0')}`);
  await Promise.all(keys.map((key) => put(store, key, text(key))));
  expect((await store.list('listed/')).map(({ key }) => key)).toEqual(keys);
  expect((await store.list('listed/0001'))[0]).toEqual({ key: 'listed/0001', bytes: 11 });
  await store.remove([...keys, 'listed/never-there']);
  expect(await store.list('listed/')).toEqual([]);
});

test('what other software put without a digest is hashed', async () => {
  const { bucket, ...address } = server.options();
  await new Client(address).putObject(bucket, 'foreign', Buffer.from('hello'));
  expect(await store.head('foreign')).toEqual({ key: 'foreign', sha256: sha256Hex(text('hello')), bytes: 5 });
});

test.each(['', '/a', 'a/', 'a//b', 'a/../b', '..', './a', 'a b', 'a:b', 'ü', 'a'.repeat(300)])(
  'the key %j is refused before it reaches the server',
  async (key) => {
    await expect(put(store, key, text('x'))).rejects.toMatchObject({ type: 'invalid-key', retryable: false });
  },
);

test('a server that overwrites in spite of If-None-Match is refused', async () => {
  // It cannot take the header away, which is part of the signature, but it can say yes where the server says no.
  const proxy = await answeringProxy(server.port, (_, status) =>
    status === 412 ? { status: 200 } : undefined,
  );
  onTestFinished(() => proxy.close());
  await expect(server.connect({ port: proxy.port })).rejects.toEqual(
    failure('unconditional-writes', false, /If-None-Match/),
  );
});

test('wrong credentials are said at once; they are no fault of the run', async () => {
  for (const wrong of [{ secretKey: 'not-the-secret' }, { accessKey: 'nobody' }]) {
    await expect(server.connect(wrong)).rejects.toEqual(failure('credentials', true, /access key/));
  }
});

test('a server that is down is a retryable error with its address; when it is back, calls work again', async () => {
  const own = await TestServer.start();
  onTestFinished(() => own.remove());
  const client = await own.connect();
  const ref = await put(client, 'before', text('kept'));
  await own.kill();
  const down = failure('unreachable', true, new RegExp(`127\\.0\\.0\\.1:${own.port}.*npm run dev`));
  await expect(client.get(ref)).rejects.toEqual(down);
  await expect(put(client, 'after', text('x'))).rejects.toEqual(down);
  await expect(own.connect()).rejects.toEqual(down);
  await own.restart();
  expect(await client.get(ref)).toEqual(Buffer.from('kept'));
  await put(client, 'after', text('x'));
  client.close();
});

test('a connection that breaks, twice, is made again within the call', async () => {
  const proxy = await FaultyProxy.start(server.port);
  onTestFinished(() => proxy.close());
  const client = await server.connect({ port: proxy.port });
  onTestFinished(() => client.close());
  proxy.cut(2);
  expect((await put(client, 'through', text('x'))).bytes).toBe(1);
});

test('a server that is busy is asked again, and after three times it is a retryable error', async () => {
  let busy = 0;
  const body = '<Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>';
  const proxy = await answeringProxy(server.port, () => (busy-- > 0 ? { status: 503, body } : undefined));
  onTestFinished(() => proxy.close());
  const client = await server.connect({ port: proxy.port });
  onTestFinished(() => client.close());
  busy = 2;
  const ref = await put(client, 'busy', text('x'));
  busy = 3;
  await expect(client.get(ref)).rejects.toEqual(
    failure('unavailable', true, /reduce your request rate.*SlowDown/),
  );
  expect(await client.get(ref)).toEqual(Buffer.from('x'));
});

test('a server that does not answer is given up after the time-out', async () => {
  const deaf = createServer().listen(0, '127.0.0.1');
  await once(deaf, 'listening');
  onTestFinished(() => void deaf.close());
  const { port } = deaf.address() as AddressInfo;
  await expect(server.connect({ port, timeoutMs: 100 })).rejects.toEqual(
    failure('unreachable', true, /ETIMEDOUT/),
  );
});

test('an aborted signal ends a call that hangs, with its reason', async () => {
  const proxy = await FaultyProxy.start(server.port);
  onTestFinished(() => proxy.close());
  const client = await server.connect({ port: proxy.port });
  const controller = new AbortController();
  const stalled = proxy.stallAt('/aborted', 500_000);
  const aborted = put(client, 'aborted', randomBytes(1_000_000, 2), { signal: controller.signal });
  const outcome = expect(aborted).rejects.toThrow('cancelled by the test');
  await stalled;
  controller.abort(new Error('cancelled by the test'));
  await outcome;
  await expect(
    client.get({ key: 'a', sha256: '0'.repeat(64), bytes: 0 }, { signal: controller.signal }),
  ).rejects.toThrow('cancelled by the test');
  client.close();
  expect(await store.head('aborted')).toBeUndefined();
});

test('processes of one machine hand objects over through the cache, without the server', async () => {
  const own = await TestServer.start();
  onTestFinished(() => own.remove());
  const cacheDir = await temporaryFolder();
  const [writer, reader] = [await own.connect({ cacheDir }), await own.connect({ cacheDir })];
  const bytes = randomBytes(100_000, 3);
  const ref = await put(writer, 'weights', bytes);
  await own.kill();
  expect(Buffer.from(await reader.get(ref)).equals(bytes)).toBe(true);
});

test('a damaged cache file is thrown away and fetched anew', async () => {
  const cacheDir = await temporaryFolder();
  const cached = await server.connect({ cacheDir });
  onTestFinished(() => cached.close());
  const bytes = text('cached content');
  const ref = await put(cached, 'cached', bytes);
  const file = join(cacheDir, ref.sha256.slice(0, 2), ref.sha256);
  await writeFile(file, 'cached c0ntent');
  expect(await cached.get(ref)).toEqual(Buffer.from(bytes));
  expect(await readFile(file)).toEqual(Buffer.from(bytes));
});

test('a cache that cannot be written is a warning, not an error', async () => {
  const inTheWay = join(await temporaryFolder(), 'file');
  await writeFile(inTheWay, '');
  const warned = new Promise<Error>((resolve) => process.once('warning', resolve));
  const cached = await server.connect({ cacheDir: inTheWay });
  onTestFinished(() => cached.close());
  const ref = await put(cached, 'uncached', text('x'));
  expect(await cached.get(ref)).toEqual(Buffer.from('x'));
  expect((await warned).message).toMatch(/cache of objects could not be/);
});

test('a full disk is a retryable error that says so; with room again the same put works', async (context) => {
  const directory = await temporaryFolder();
  const size = 8_000_000;
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'gradus-test', directory], {
      stdio: 'ignore',
    });
  } catch {
    context.skip('this machine does not let the test mount a small tmpfs, so no disk was filled');
  }
  const own = await TestServer.start({ directory });
  try {
    const client = await own.connect();
    const filler = join(directory, 'filler');
    await writeFile(filler, Buffer.alloc(size - 1_000_000));
    const again = () => put(client, 'large', randomBytes(3_000_000, 4));
    await expect(again()).rejects.toEqual(failure('disk-full', true, /Make room/));
    expect(await client.head('large')).toBeUndefined();
    await rm(filler);
    expect((await again()).bytes).toBe(3_000_000);
    client.close();
  } finally {
    await own.stop();
    execFileSync('umount', [directory]);
  }
});

test('stores that want the same port at the same moment get one each', async () => {
  const recordedPort = await getPort({ host: '127.0.0.1' });
  const servers = await Promise.all(Array.from({ length: 4 }, () => TestServer.start({ recordedPort })));
  onTestFinished(() => Promise.all(servers.map((server) => server.stop())).then(() => undefined));
  expect(new Set(servers.map(({ port }) => port)).size).toBe(4);
  for (const server of servers) (await server.connect()).close();
});
