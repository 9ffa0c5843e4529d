import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, test } from 'vitest';
import { chromium } from '../../../environments/sandbox/browser/chromium.ts';
import { openPage } from '../../../environments/sandbox/browser/open-page.ts';
import { demonstrate } from '../../../environments/families/web-shop/demonstrate.ts';
import { createVisits } from '../../../environments/families/web-shop/goals.ts';
import { openVisit } from '../../../environments/families/web-shop/in-browser.ts';
import { LEVELS } from '../../../environments/families/web-shop/levels.ts';
import type { ToolContext } from '../../../environments/contract/environment.ts';
import { browser as available } from './available.ts';

const context: ToolContext = {
  idempotencyKey: 'test',
  attempt: 1,
  signal: new AbortController().signal,
  heartbeat: () => undefined,
  task: () => Promise.reject(new Error('nobody asks')),
};

describe.skipIf(!available.there)(`the shop in Chromium${available.leftOut}`, () => {
  const visits = createVisits();
  const visitAt = (level: number, index: number) =>
    visits({ environment: 'web-shop-browser', split: 'train', level, index });

  afterAll(async () => (await chromium()).kill());

  test.each(LEVELS.map(({ level }) => level))(
    'reads as the shop as text does, at level %i',
    async (level) => {
      // A visit of few pages: each takes 100 ms.
      const visit = Array.from({ length: 20 }, (_, index) => visitAt(level, index)).toSorted(
        (a, b) => demonstrate(a).turns.length - demonstrate(b).turns.length,
      )[0]!;
      const session = await openVisit(visit);
      let last;
      for (const { call, observation } of demonstrate(visit).turns) {
        last = await session.act(call!, context);
        expect(last).toMatchObject({ text: observation });
      }
      expect(last).toMatchObject({ reward: 1, done: true });
      expect(await session.end!({ answer: null, by: 'environment' }, context.signal)).toMatchObject({
        reward: 1,
      });
      await session.close!();
    },
  );

  test('refuses what its pages do not have, in the same words', async () => {
    const session = await openVisit(visitAt(2, 0));
    const click = async (on: string) => session.act({ name: 'click', arguments: { on } }, context);
    await expect(click('buy now')).rejects.toThrow('no [buy now] here');
    await expect(async () =>
      session.act({ name: 'search', arguments: { query: 'mug' } }, context),
    ).rejects.toThrow('no search box here');
    expect(await session.end!({ answer: null, by: 'turns' }, context.signal)).toEqual({
      reward: 0,
      info: null,
    });
    await session.close!();
  });

  test('as many visits as there is room for are open at once, and one more', async () => {
    const { browser } = await chromium();
    const before = browser.contexts().length;
    const sessions = await Promise.all(
      Array.from({ length: 65 }, (_, index) => openVisit(visitAt(1, index))),
    );
    expect(browser.isConnected()).toBe(true);
    await expect.poll(() => browser.contexts().length).toBe(before + 64);
    await Promise.all(sessions.map(async (session) => session.close!()));
  });

  test('after kill -9 of Chromium in mid-visit the same calls bring the same pages in a new one', async () => {
    const visit = visitAt(3, 0);
    const { turns } = demonstrate(visit);
    const first = await openVisit(visit);
    const before = [];
    for (const { call } of turns.slice(0, 2)) before.push(await first.act(call!, context));
    (await chromium()).kill();
    // Never an observation, and never a zero: the session is lost, and may be opened again.
    await expect(async () => first.act(turns[2]!.call!, context)).rejects.toMatchObject({
      boundary: 'environment',
      type: 'session-lost',
      retryable: true,
    });
    await first.close!();
    const second = await openVisit(visit);
    const again = [];
    for (const { call } of turns) again.push(await second.act(call!, context));
    expect(again.slice(0, 2)).toEqual(before);
    expect(again.at(-1)).toMatchObject({ reward: 1, done: true });
    await second.close!();
  });

  test('no page reaches a listener on loopback, whatever its requests are answered with', async () => {
    let asked = 0;
    const server = createServer((_, response) => {
      asked++;
      response.end('secret');
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    const { port } = server.address() as AddressInfo;
    const target = `http://127.0.0.1:${port}/`;
    const tried = `Promise.all([
      fetch('${target}', { mode: 'no-cors' }).then(() => 'reached', () => 'refused'),
      new Promise((f) => { const w = new WebSocket('ws://127.0.0.1:${port}'); w.onopen = () => f('reached'); w.onerror = () => f('refused'); }),
      new Promise((f) => { const i = new Image(); i.onload = () => f('reached'); i.onerror = () => f('refused'); i.src = '${target}'; }),
    ])`;
    // As environments open pages: everything is answered by us.
    const page = await openPage({
      url: 'http://page.test/',
      serve: ({ host }) => (host === 'page.test' ? { contentType: 'text/html', body: '<p>here</p>' } : null),
    });
    const answers = await page.with((one) => one.evaluate<string[]>(tried));
    expect(answers.slice(1)).toEqual(['refused', 'refused']);
    await page.close();
    // And with nothing of ours between page and network.
    const { browser } = await chromium();
    const bare = await browser.newContext();
    const one = await bare.newPage();
    await expect(one.goto(target)).rejects.toThrow('ERR_');
    // On a page that stays: the one that could not go there, and a blank one, are replaced by the browser.
    await bare.route('http://page.test/', (route) =>
      route.fulfill({ contentType: 'text/html', body: '<p>here</p>' }),
    );
    const there = await bare.newPage();
    await there.goto('http://page.test/');
    expect(await there.evaluate<string[]>(tried)).toEqual(['refused', 'refused', 'refused']);
    expect(asked).toBe(0);
    await bare.close();
    server.close();
  });
});
