import { Hono } from 'hono';
import { expect, test } from 'vitest';
import { patiently } from '../../../dashboard/patience.ts';

const PERSON = { headers: { accept: 'text/html,*/*' } };

/** An app with a page that is there when it is let go of, and how often it was begun. */
function slowApp(most = 8) {
  const app = new Hono();
  const begun: string[] = [];
  const waiting: (() => void)[] = [];
  app.use(patiently(app, (c) => c.text('not yet', 503), { withinMs: 20, most }));
  app.get('/slow/:name', async (c) => {
    const name = c.req.param('name');
    begun.push(name);
    await new Promise<void>((resolve) => waiting.push(resolve));
    return c.html(`page ${name} ${begun.length}`);
  });
  app.get('/broken', () => {
    throw new Error('it is');
  });
  app.post('/change', (c) => c.redirect('/slow/a', 303));
  app.onError((error, c) => c.text(error.message, 500));
  const letGo = (): void => waiting.splice(0).forEach((resolve) => resolve());
  const ask = async (path: string, init: RequestInit = PERSON) => {
    const response = await app.request(path, init);
    return `${response.status} ${await response.text()}`;
  };
  return { app, ask, begun, letGo };
}

test('a page that takes long is made once for all who ask, and given to who asks again', async () => {
  const { ask, begun, letGo } = slowApp();
  expect(await Promise.all([ask('/slow/a'), ask('/slow/a')])).toEqual(['503 not yet', '503 not yet']);
  expect(await ask('/slow/a')).toBe('503 not yet');
  expect(begun).toEqual(['a']);
  letGo();
  expect(await ask('/slow/a')).toBe('200 page a 1');
  // It was given: whoever loads it again sees it as it is then.
  expect(await ask('/slow/a')).toBe('503 not yet');
  expect(begun).toEqual(['a', 'a']);
});

test('what was made before a change is not shown after it', async () => {
  const { ask, begun, letGo } = slowApp();
  expect(await ask('/slow/a')).toBe('503 not yet');
  letGo();
  await ask('/change', { method: 'POST' });
  expect(await ask('/slow/a')).toBe('503 not yet');
  expect(begun).toHaveLength(2);
});

test('programs, which can wait, wait; and errors are told as they are', async () => {
  const { ask, begun, letGo } = slowApp();
  const program = ask('/slow/a', {});
  await expect.poll(() => begun.length).toBe(1);
  letGo();
  expect(await program).toBe('200 page a 1');
  expect(await ask('/broken')).toBe('500 it is');
});

test('of more pages than are made at once none is begun', async () => {
  const { ask, begun } = slowApp(2);
  await Promise.all(['a', 'b'].map((name) => ask(`/slow/${name}`)));
  expect(await ask('/slow/c')).toBe('503 not yet');
  expect(begun).toEqual(['a', 'b']);
});
