import { readFile } from 'node:fs/promises';
import { request } from 'node:http';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { QUEUES } from '../../../core/names.ts';
import { openDashboard } from '../../../dashboard/open.ts';
import type { Dashboard } from '../../../dashboard/server.ts';
import { ObjectStore } from '../../../store/objects/object-store.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { hasChromium, launchChromium } from '../../support/chromium.ts';
import { crawl, oneOfEachKind } from '../../support/crawl.ts';
import type { Crawled } from '../../support/crawl.ts';
import { HOSTILE, keepHostileRun } from '../../support/hostile-run.ts';
import { enter, overhear, withPage, wrongIn } from '../../support/looks.ts';
import { until } from '../../support/run-client.ts';
import { startTestInstallation } from '../../support/test-installation.ts';
import type { TestInstallation } from '../../support/test-installation.ts';
import { inOrder } from '../../support/tiny-spec.ts';

// The pages of a run that is over, of one that waits for a person, and of one in which everything is hostile: asked for as
// a browser would, and by a browser.

const OVER = 'over';
const WAITS = 'waits';
const EVIL = 'evil';

let installation: TestInstallation;
let base: string;
let onlyShows: Dashboard;
let pages: Crawled[];

beforeAll(async () => {
  installation = await startTestInstallation({ dashboard: true });
  base = installation.dashboard!;
  onlyShows = await openDashboard(installation.settings, { actions: false, temporalUi: null });
  const brief = briefSpec();
  const [warmStart, rl] = brief.stages;
  const store = await ObjectStore.connect(installation.settings.store);
  await keepHostileRun(store, EVIL);
  store.close();
  const over = await installation.runs.start(OVER, brief);
  await over.result();
  const waits = await installation.runs.start(WAITS, {
    ...brief,
    seed: 6,
    stages: inOrder({ ...warmStart, graduation: { successAtLeast: 1, tasksPerLevel: 8 } }, rl),
  });
  await installation.runs.progress(waits, ({ status }) => status === 'waiting');
  // Anybody who reaches the server can start something under any name.
  await installation.runs.client.workflow.start('curriculum', {
    args: [{ run: HOSTILE }],
    workflowId: HOSTILE,
    taskQueue: QUEUES.orchestrator,
  });
  // What forms lead to.
  const also = [
    `/compare?runs=${OVER},${WAITS}&by=tokens&tasks=all`,
    `/runs/${OVER}/reweigh/rl/1?format.weight=0.4&format.role=penalty&truncated=mask`,
  ];
  pages = await crawl(base, { also });
}, 600_000);

afterAll(async () => {
  await onlyShows?.close();
  await installation?.remove();
});

const html = (): Crawled[] =>
  pages.filter(({ headers }) => headers.get('content-type')?.startsWith('text/html') === true);

test('every link of every page leads somewhere', () => {
  expect(html().length).toBeGreaterThan(8);
  expect(pages.filter(({ status }) => status >= 400).map(({ path, status }) => `${status} ${path}`)).toEqual(
    [],
  );
});

test('every answer forbids what is not ours, and framing; none is kept', () => {
  for (const { path, headers } of pages) {
    expect(headers.get('content-security-policy'), path).toMatch(/^default-src 'none'/);
    expect(headers.get('x-content-type-options'), path).toBe('nosniff');
    expect(headers.get('x-frame-options'), path).toBe('DENY');
    if (!path.startsWith('/static/')) expect(headers.get('cache-control'), path).toBe('no-store');
  }
  for (const { path, body } of html()) {
    expect(body, path).not.toMatch(/<script(?![^>]* src="\/static\/)/);
    expect(body, path).not.toMatch(/ style="| on[a-z]+="|<style/);
  }
});

test('no answer holds a key of the store', () => {
  const { accessKey, secretKey } = installation.settings.store;
  for (const { path, body } of pages) {
    expect(body.includes(secretKey), path).toBe(false);
    expect(body.includes(accessKey), path).toBe(false);
  }
});

test('what models, tools and strangers wrote is text, with what it hides made visible', () => {
  const shown = html().filter(({ body }) => body.includes('alert('));
  expect(shown.length).toBeGreaterThan(3);
  for (const { path, body } of html()) {
    expect(body, path).not.toMatch(/<script>|<img src=x|<svg onload/);
    // oxlint-disable-next-line no-control-regex -- it is what is looked for
    expect(body, path).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e\u2066-\u2069]/);
    expect(body.length, path).toBeLessThan(1_000_000);
  }
});

describe('refuses', () => {
  const post = (path: string, headers: Record<string, string>, body = ''): Promise<Response> =>
    fetch(new URL(path, base), {
      method: 'POST',
      redirect: 'manual',
      headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
      body,
    });
  const token = (): string => /name="token" value="([^"]+)"/.exec(pageAt(`/runs/${WAITS}`).body)![1]!;
  const pageAt = (path: string): Crawled => pages.find((page) => page.path === path)!;
  const origin = (): string => new URL(base).origin;

  /** With headers that fetch writes itself; gives what a form is answered, else the status. */
  const answerTo = (
    headers: Record<string, string>,
    { at = base, path = '/', body = '' } = {},
  ): Promise<number | string> =>
    new Promise((resolve, reject) => {
      request(new URL(path, at), { method: body === '' ? 'GET' : 'POST', headers }, (response) => {
        let text = '';
        response.on('data', (chunk) => (text += String(chunk)));
        response.on('end', () => resolve(body === '' ? response.statusCode! : text));
      })
        .on('error', reject)
        .end(body);
    });

  test('another name, other methods, and paths that are none', async () => {
    const { host } = new URL(base);
    expect(await answerTo({ host })).toBe(200);
    expect(await answerTo({ host: 'evil.example' })).toBe(421);
    expect(await answerTo({ host: `127.0.0.1.evil.example:${new URL(base).port}` })).toBe(421);
    expect((await fetch(base, { method: 'PUT' })).status).toBe(405);
    for (const path of [
      '/runs/..%2f..%2fetc',
      '/runs/%00',
      '/static/../package.json',
      '/live?path=//evil.example',
      '/runs/no-such-run',
      `/runs/${OVER}/steps/rl/1e9`,
      `/runs/${OVER}/episodes/rl/1/0/99999`,
      `/runs/${OVER}/episodes/rl/-1/0/0`,
    ]) {
      const { status } = await fetch(new URL(path, base));
      expect([400, 404], path).toContain(status);
    }
  });

  test('a change without our origin, or without the token of this start', async () => {
    const path = `/runs/${WAITS}/pause`;
    const good = { origin: origin() };
    expect((await post(path, {}, `token=${token()}`)).status).toBe(403);
    expect((await post(path, { origin: 'http://evil.example' }, `token=${token()}`)).status).toBe(403);
    expect((await post(path, { origin: 'null' }, `token=${token()}`)).status).toBe(403);
    expect((await post(path, { ...good, 'sec-fetch-site': 'cross-site' }, `token=${token()}`)).status).toBe(
      403,
    );
    expect((await post(path, good, 'token=wrong')).status).toBe(403);
    expect((await post(path, good, '')).status).toBe(403);
    expect((await post(path, { ...good, 'content-type': 'application/json' }, '{}')).status).toBe(415);
    expect((await post(path, good, `token=${token()}&x=${'x'.repeat(70_000)}`)).status).toBe(413);
    const { status } = await installation.runs.progress(
      installation.runs.client.workflow.getHandle(WAITS),
      () => true,
    );
    expect(status).toBe('waiting');
  });

  test('what other pages embed or fetch, but not their links', async () => {
    const from = (site: string, mode: string) => answerTo({ 'sec-fetch-site': site, 'sec-fetch-mode': mode });
    expect(await from('cross-site', 'no-cors')).toBe(403);
    expect(await from('same-site', 'cors')).toBe(403);
    expect(await from('cross-site', 'navigate')).toBe(200);
    expect(await from('same-origin', 'cors')).toBe(200);
  });

  test('an answer to a question that is not the open one, and says why', async () => {
    const body = `token=${token()}&answer=advance&question=old`;
    const refused = await post(`/runs/${WAITS}/decide`, { origin: origin() }, body);
    expect(refused.status).toBe(409);
    expect(await refused.text()).toContain('question');
    const over = await post(`/runs/${OVER}/pause`, { origin: origin() }, `token=${token()}`);
    expect(over.status).toBe(409);
  });

  test('every change where it was started to show only, and offers none', async () => {
    const { url } = onlyShows;
    const response = await fetch(new URL(`/runs/${WAITS}/pause`, url), {
      method: 'POST',
      headers: { origin: new URL(url).origin, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'token=x',
    });
    expect(response.status).toBe(403);
    const shown = await crawl(url, { ofEach: 1 });
    expect(shown.filter(({ body }) => body.includes('method="post"')).map(({ path }) => path)).toEqual([]);
  });

  test('to be reached by other machines without a password', async () => {
    await expect(
      openDashboard(installation.settings, { actions: false, temporalUi: null, host: '0.0.0.0' }),
    ).rejects.toThrow(/GRADUS_DASHBOARD_TOKEN/);
    const password = 'correct horse battery staple';
    const guarded = await openDashboard(installation.settings, {
      actions: true,
      temporalUi: null,
      host: '0.0.0.0',
      password,
      allowedHosts: ['pages.example'],
    });
    try {
      const { port } = new URL(guarded.url);
      const ask = (authorization?: string): Promise<Response> =>
        fetch(`http://127.0.0.1:${port}/`, {
          headers: { host: `127.0.0.1:${port}`, ...(authorization !== undefined && { authorization }) },
        });
      // It was told one name besides its address, and 127.0.0.1 is neither.
      expect((await ask()).status).toBe(421);
      expect((await fetch(guarded.url)).status).toBe(401);
      const basic = (text: string): string => `Basic ${Buffer.from(text).toString('base64')}`;
      expect((await fetch(guarded.url, { headers: { authorization: basic('me:wrong') } })).status).toBe(401);
      expect((await fetch(guarded.url, { headers: { authorization: basic(`me:${password}`) } })).status).toBe(
        200,
      );
      // A proxy before it speaks TLS: a change comes from its origin, and lacks the token of this start alone.
      const headers = {
        host: 'pages.example',
        origin: 'https://pages.example',
        authorization: basic(`me:${password}`),
        'content-type': 'application/x-www-form-urlencoded',
      };
      expect(
        await answerTo(headers, { at: guarded.url, path: `/runs/${WAITS}/pause`, body: 'token=x' }),
      ).toBe('This page is older than the dashboard: load it again, and repeat your change.\n');
    } finally {
      await guarded.close();
    }
  });
});

describe.runIf(hasChromium())('in a browser', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = (await launchChromium())!;
  });
  afterAll(() => browser?.close());

  const at = (path: string): string => new URL(path, base).href;

  test('every kind of page is within WCAG 2.2 AA, keeps to itself, obeys its own policy and fits, in every look', async () => {
    await withPage(browser, {}, async (page) => {
      const heard = overhear(page, base);
      const kinds = oneOfEachKind(html());
      expect(kinds.length).toBeGreaterThan(25);
      for (const { path } of kinds) {
        await page.goto(at(path), { waitUntil: 'load' });
        expect(await wrongIn(page), path).toEqual([]);
      }
      expect(heard).toEqual([]);
    });
  });

  test('keys move through what is listed and from page to page, and mean nothing where somebody types', async () => {
    await withPage(browser, {}, async (page) => {
      const focused = (): Promise<string> =>
        page.evaluate("document.activeElement.textContent || document.activeElement.name || ''");
      await page.goto(base);
      await page.keyboard.press('Tab');
      expect(await focused()).toMatch(/Skip to the page/);
      await page.keyboard.press('Enter');
      await page.waitForURL(/#main$/);
      await page.keyboard.press('j');
      const first = await focused();
      await page.keyboard.press('j');
      expect(await focused()).not.toBe(first);
      await page.keyboard.press('k');
      expect(await focused()).toBe(first);
      await page.goto(at(`/runs/${OVER}/steps/rl/1`));
      // Each task of the step leads to its own samples.
      const tasks = await page
        .locator('th a[href*="/groups/rl/1/"]')
        .evaluateAll((links) => links.map(String));
      expect(tasks.length).toBeGreaterThan(1);
      expect(new Set(tasks).size).toBe(tasks.length);
      await page.keyboard.press(']');
      await page.waitForURL(/steps\/rl\/2$/);
      await page.keyboard.press('[');
      await page.waitForURL(/steps\/rl\/1$/);
      await page.goto(at(`/find?run=${OVER}&max-turns=1`));
      const { href } = new URL(page.url());
      await page.getByLabel('text in it').focus();
      await page.keyboard.type('jk[]');
      expect([await focused(), page.url()]).toEqual(['text', href]);
      expect(await page.getByLabel('text in it').inputValue()).toBe('jk[]');
    });
  });

  test('what is read, selected, opened, scrolled or stood on stays so while the page changes', async () => {
    await withPage(browser, { viewport: { width: 320, height: 640 } }, async (page) => {
      // Of what the server says of the page, with changes that no run makes at once.
      let next = pages.find(({ path }) => path === `/runs/${WAITS}`)!.body;
      const change = (section: string, to: string): void => {
        expect(next).toContain(`data-live="${section}">`);
        next = next.replace(`data-live="${section}">`, `data-live="${section}">${to}`);
      };
      await page.route('**/live?*', (route) =>
        route.fulfill({
          contentType: 'text/event-stream',
          body: `retry: 50\nevent: page\ndata: ${JSON.stringify(next)}\n\n`,
        }),
      );
      const seen = (text: string): Promise<void> => page.getByText(text, { exact: true }).waitFor();
      change('steps', '<details><summary>More</summary><p>of it</p></details>');
      await page.goto(at(`/runs/${WAITS}`));
      // Its last line says whether it is followed: at the end of a page what is above would move with it.
      await page.evaluate("document.querySelector('main').style.paddingBottom = '1000px'");
      await page.getByText('More', { exact: true }).click();
      const link = page.locator('[data-live="steps"] th a').first();
      const table = page.locator('[data-live="steps"] .scroll');
      await table.evaluate((one) => one.scrollTo(60, 0));
      await link.evaluate((one) => {
        one.focus();
        one.scrollIntoView({ block: 'center' });
      });
      const place = async () => ({
        top: Math.round((await link.boundingBox())!.y),
        isFocused: await link.evaluate((one) => one.matches(':focus')),
        scrolled: await table.evaluate((one) => one.scrollLeft),
      });
      const before = await place();
      expect(before.isFocused).toBe(true);
      expect(before.scrolled).toBeGreaterThan(0);
      change('question', '<p>above</p>'.repeat(100));
      change('charts', '<p>chart</p>'.repeat(100));
      change('steps', '<p>changed</p>');
      await seen('changed');
      expect(await place()).toEqual(before);
      expect(await page.getByText('of it', { exact: true }).isVisible()).toBe(true);

      // From one part into the next.
      await page.evaluate(
        'getSelection().setBaseAndExtent(document.querySelector(\'[data-live="happened"] li\'), 0, document.querySelector(\'[data-live="steps"] table\'), 0)',
      );
      const selected = await page.evaluate('String(getSelection())');
      expect(selected).not.toBe('');
      change('happened', '<p>news</p>');
      change('standing', '<p>more news</p>');
      await seen('more news');
      expect(await page.getByText('news', { exact: true }).count()).toBe(0);
      expect(await page.evaluate('String(getSelection())')).toBe(selected);
      await page.evaluate('getSelection().removeAllRanges()');
      await seen('news');
    });
  });

  const sources = [
    { name: 'Temporal', pid: () => installation.stack.temporal.pid },
    { name: 'The store', pid: () => installation.stack.objectStore.pid },
    { name: 'The worker of workflows', pid: () => installation.workers.pid('orchestrator')! },
  ];

  test.each(sources)(
    'a page says that $name is away, as of when it is shown, and recovers by itself',
    async ({ name, pid }) => {
      await withPage(browser, {}, async (page) => {
        await page.goto(at(`/runs/${WAITS}`));
        await page.locator('.question').waitFor();
        const stale = page.locator('[data-live="stale"]');
        const stopped = pid();
        process.kill(stopped, 'SIGSTOP');
        try {
          await stale.getByText(`${name} `).waitFor({ timeout: 120_000 });
          expect(await stale.innerText()).toMatch(/does not answer.*as of \d{4}-\d\d-\d\d/s);
          // What was known stays.
          expect(await page.locator('.question').count()).toBe(1);
          expect(await page.locator('h1').innerText()).toBe(WAITS);
        } finally {
          process.kill(stopped, 'SIGCONT');
        }
        await until(
          async () => ((await stale.innerText()).trim() === '' ? true : undefined),
          300_000,
          () => 'the page does not recover',
        );
      });
    },
  );

  test('without scripts every form that asks gives what was asked for', async () => {
    await withPage(browser, { javaScriptEnabled: false }, async (page) => {
      const press = (name: string): Promise<void> => page.getByRole('button', { name, exact: true }).click();
      await page.goto(at(`/find?run=${OVER}`));
      await page.getByLabel('rl', { exact: true }).check();
      await page.getByLabel('order').selectOption('descending');
      await press('Find');
      await page.waitForURL(/stage=rl&.*order=descending/);
      // It is looked at again until all was read.
      const counted = /^(\d+) of (\d+) episodes$/;
      const heading = await page.locator('h2', { hasText: counted }).first().innerText();
      const [, found, all] = counted.exec(heading)!;
      expect(Number(found)).toBeGreaterThan(0);
      expect(Number(found)).toBeLessThan(Number(all));
      const files = await Promise.all([page.waitForEvent('download'), page.getByText('JSONL').click()]);
      const lines = (await readFile(await files[0].path(), 'utf8')).trim().split('\n');
      expect(lines).toHaveLength(Number(found));
      await page.getByLabel('text in it').fill('answer');
      await press('Find');
      await page.locator('mark').first().waitFor();

      await page.goto(at('/compare'));
      await page.getByLabel('run 1').fill(OVER);
      await page.getByLabel('run 2').fill(WAITS);
      await press('Compare');
      await page.getByRole('heading', { name: `Compare ${OVER}, ${WAITS}` }).waitFor();
      await page.getByText('seed', { exact: true }).waitFor();

      await page.goto(at(`/runs/${OVER}/reweigh/rl/1`));
      await page.getByLabel('format.weight').fill('0.4');
      await press('Compute');
      await page.getByText('format.weight: 0.2 → 0.4').waitFor();

      await page.goto(at('/operations'));
      await page.getByLabel('run').fill(WAITS);
      await press('Show');
      await page.waitForURL(new RegExp(`operations\\?.*run=${WAITS}`));
      await page.getByText(/^Count what is in/).click();
      await page.locator('caption', { hasText: / objects, .* as of / }).waitFor();
    });
  });

  test('without scripts, with keys alone, a run is paused, answered, gone on with and stopped, which is asked back; whoever watches sees it without a reload', async () => {
    const run = installation.runs.client.workflow.getHandle(WAITS);
    const isSo = async (...wanted: string[]): Promise<void> => {
      await installation.runs.progress(run, ({ status }) => wanted.includes(status));
    };
    // What follows a click shows what it has brought about, or on a busy machine that it was asked for.
    const shownAs = async (page: Page): Promise<string> =>
      (await page.locator('[data-live="asked"]').innerText()) || (await page.locator('.status').innerText());
    await withPage(browser, {}, async (watching) => {
      await watching.goto(at(`/runs/${WAITS}`));
      await watching.locator('.status', { hasText: 'waiting' }).waitFor();
      await watching.evaluate("globalThis.loaded = 'once'");
      await withPage(browser, { javaScriptEnabled: false }, async (page) => {
        await page.goto(at(`/runs/${WAITS}`));
        await enter(page, 'Pause');
        await enter(page, 'advance');
        expect(await shownAs(page)).toMatch(/^(paused|The answer was sent)/);
        await isSo('paused');
        await enter(page, 'Stop …');
        await enter(page, 'Let it go on');
        await isSo('paused');
        await enter(page, 'Resume');
        expect(await shownAs(page)).not.toBe('paused');
        await isSo('running');
        await page.goto(at(`/runs/${WAITS}/stop`));
        await enter(page, 'Stop the run');
        await isSo('stopping', 'stopped');
      });
      await watching.locator('.status', { hasText: 'stopped' }).waitFor({ timeout: 120_000 });
      expect(await watching.locator('.question').count()).toBe(0);
      expect(await watching.evaluate('globalThis.loaded')).toBe('once');
    });
  });
});
