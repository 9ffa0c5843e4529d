import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { ObjectStore } from '../../../store/objects/object-store.ts';

/** What the head of an object says on a server that refuses it, and whose clock is so far from ours. */
async function refusedBy(aheadMs: number): Promise<unknown> {
  const server = createServer((_, answer) =>
    answer.writeHead(403, { date: new Date(Date.now() + aheadMs).toUTCString() }).end(),
  ).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const store = ObjectStore.open({
    endPoint: '127.0.0.1',
    port: (server.address() as AddressInfo).port,
    useSSL: false,
    accessKey: 'a',
    secretKey: 'b',
    bucket: 'gradus',
  });
  try {
    return await store.head('key').catch((error: unknown) => error);
  } finally {
    store.close();
    server.close();
  }
}

const MINUTE = 60_000;

test.each([-20 * MINUTE, 20 * MINUTE, 400 * 24 * 60 * MINUTE])(
  'a head says nothing but that it is refused; with a clock that is %d ms off, that is why',
  async (aheadMs) => {
    expect(await refusedBy(aheadMs)).toMatchObject({ boundary: 'store', type: 'clock', retryable: true });
  },
);

test('with a clock that is right the keys are why', async () => {
  expect(await refusedBy(-5 * MINUTE)).toMatchObject({ boundary: 'store', type: 'credentials' });
});
