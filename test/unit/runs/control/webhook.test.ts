import { createServer } from 'node:http';
import type { RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { postJson, webhookUrl } from '../../../../runs/control/webhook.ts';

const closing: (() => void)[] = [];
afterEach(() => closing.splice(0).forEach((close) => close()));

/** A server on loopback, and how often it was asked. */
async function serve(listener: RequestListener): Promise<{ url: URL; asked: () => number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    asked++;
    listener(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(
    () => server.closeAllConnections(),
    () => server.close(),
  );
  const { port } = server.address() as AddressInfo;
  return { url: new URL(`http://127.0.0.1:${port}/hook/secret-path`), asked: () => asked };
}

const QUICK = { pauseMs: 1, timeoutMs: 60_000 };

test('a webhook gets the JSON, also when it refuses at first', async () => {
  const bodies: string[] = [];
  const { url, asked } = await serve((request, response) => {
    let body = '';
    request.on('data', (part: Buffer) => (body += part.toString()));
    request.on('end', () => {
      bodies.push(body);
      response.writeHead(bodies.length < 3 ? 503 : 204).end();
    });
  });
  await postJson(url, { text: 'ä' }, QUICK);
  expect(asked()).toBe(3);
  expect(bodies).toEqual(Array(3).fill('{"text":"ä"}'));
});

test.each([
  ['a redirect is not followed', 302, 1, 'a redirect, which is not followed'],
  ['what it does not want is not sent again', 404, 1, 'HTTP status 404'],
  ['tries end', 500, 4, '4 times: HTTP status 500'],
])('%s, and the path is not told', async (_, status, times, text) => {
  const other = await serve((_request, response) => response.end());
  const { url, asked } = await serve((_request, response) =>
    response.writeHead(status, { location: other.url.href }).end(),
  );
  const failing = postJson(url, {}, QUICK);
  await expect(failing).rejects.toThrow(text);
  await expect(failing).rejects.not.toThrow('secret-path');
  expect([asked(), other.asked()]).toEqual([times, 0]);
});

test('one that does not answer, and one that is not there, are left after a while', async () => {
  const { url } = await serve(() => undefined);
  await expect(postJson(url, {}, { attempts: 2, pauseMs: 1, timeoutMs: 50 })).rejects.toThrow(
    '2 times: no answer in 0.05 s',
  );
  await expect(postJson(new URL('http://127.0.0.1:1/'), {}, { ...QUICK, attempts: 1 })).rejects.toThrow(
    /did not take it: /,
  );
});

test.each(['ftp://x', 'nothing', 'http://user:password@host/', ''])('%s is no webhook', (text) => {
  expect(() => webhookUrl(text)).toThrow('must be http://… or https://…');
  expect(() => webhookUrl(text)).not.toThrow('password@host');
});
