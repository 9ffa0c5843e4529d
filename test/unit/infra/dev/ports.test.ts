import { createServer } from 'node:net';
import type { AddressInfo, Server } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { choosePort, isPortFree } from '../../../../infra/dev/ports.ts';

let server: Server;
let taken: number;
beforeEach(async () => {
  server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  taken = (server.address() as AddressInfo).port;
});
afterEach(() => new Promise((resolve) => server.close(resolve)));

const wish = { title: 'the object store', setting: '--s3-port' };

test('a taken port that was asked for is an error that names it and the setting', async () => {
  const asked = choosePort({ ...wish, explicit: taken });
  await expect(asked).rejects.toMatchObject({ boundary: 'infra', type: 'port-taken' });
  await expect(asked).rejects.toThrow(`Port ${taken}`);
  await expect(asked).rejects.toThrow('--s3-port');
});

test('a taken port that was only preferred is replaced by a free one', async () => {
  const port = await choosePort({ ...wish, preferred: [undefined, taken] });
  expect(port).not.toBe(taken);
  expect(await isPortFree(port)).toBe(true);
});

test('a preferred port that is free is taken, again and again', async () => {
  const free = await choosePort(wish);
  expect(await choosePort({ ...wish, preferred: [free] })).toBe(free);
  expect(await choosePort({ ...wish, preferred: [free] })).toBe(free);
});
