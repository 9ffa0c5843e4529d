import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { bodyLimit } from '../../../gateway/body-limit.ts';
import type { Problem } from '../../../gateway/problem.ts';

const LIMITS = { each: 200_000, together: 500_000 };

function served() {
  const app = new Hono();
  app.onError((error, c) => c.json({ code: (error as Problem).code }, (error as Problem).status));
  app.use(bodyLimit(LIMITS));
  // As MCP's server does: whatever is wrong with a body is called a mistake in it.
  app.post('/deaf', async (c) => {
    await c.req.arrayBuffer().catch(() => undefined);
    return c.json({ code: 'parse_error' }, 400);
  });
  app.post('/', async (c) => c.json({ bytes: (await c.req.arrayBuffer()).byteLength }));
  return (body: Uint8Array | ReadableStream<Uint8Array>, headers: Record<string, string> = {}, path = '/') =>
    app.request(path, { method: 'POST', body, headers, duplex: 'half' });
}

/** A body of which so many bytes have come. */
function halfOf(bytes: number) {
  let end!: () => void;
  let fail!: (error: Error) => void;
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new Uint8Array(bytes));
      end = () => controller.close();
      fail = (error) => controller.error(error);
    },
  });
  return { body, end: () => end(), fail: (error: Error) => fail(error) };
}

test('a body that is too large is refused, whether it says so or not', async () => {
  const ask = served();
  const refused = { code: 'request_too_large' };
  const declared = await ask(new Uint8Array(10), { 'content-length': String(LIMITS.each + 1) });
  expect([declared.status, await declared.json()]).toEqual([413, refused]);
  const streamed = await ask(halfOf(LIMITS.each + 1).body);
  expect([streamed.status, await streamed.json()]).toEqual([413, refused]);
  const deaf = await ask(halfOf(LIMITS.each + 1).body, {}, '/deaf');
  expect([deaf.status, await deaf.json()]).toEqual([413, refused]);
});

test('halves of requests are bounded together, and give their room back however they end', async () => {
  const ask = served();
  const halves = [halfOf(200_000), halfOf(200_000)];
  const answers = halves.map(({ body }) => ask(body));
  await expect.poll(async () => (await ask(halfOf(150_000).body)).status).toBe(429);
  // What is small is not waited for.
  const small = await ask(new Uint8Array(1000), { 'content-length': '1000' });
  expect(await small.json()).toEqual({ bytes: 1000 });
  halves[0]!.end();
  expect(await (await answers[0]!).json()).toEqual({ bytes: 200_000 });
  halves[1]!.fail(new Error('the client went'));
  await answers[1];
  for (let time = 0; time < 5; time++) {
    const whole = halfOf(200_000);
    whole.end();
    expect((await ask(whole.body)).status).toBe(200);
  }
});
