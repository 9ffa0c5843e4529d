import { request } from 'node:http';
import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { QUEUES } from '../../../core/names.ts';
import { openDashboard } from '../../../dashboard/open.ts';
import type { Dashboard } from '../../../dashboard/server.ts';
import { ObjectStore } from '../../../store/object-store.ts';
import { violationsOf } from '../../support/axe.ts';
import { briefSpec } from '../../support/brief-spec.ts';
import { hasChromium, launchChromium } from '../../support/chromium.ts';
import { crawl } from '../../support/crawl.ts';
import type { Crawled } from '../../support/crawl.ts';
import { HOSTILE, keepHostileRun } from '../../support/hostile-run.ts';
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
}, 240_000);

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
        let said = '';
        response.on('data', (chunk) => (said += String(chunk)));
        response.on('end', () => resolve(body === '' ? response.statusCode! : said));
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
    const shown = await crawl(url);
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
      ).toBe('This page is older than the dashboard: load it again, and repeat what you wanted.\n');
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

  /** What a page says that it should not: on the console, to other machines, in a dialog. */
  function overhear(page: Page): string[] {
    const heard: string[] = [];
    page.on('console', (message) => heard.push(`console: ${message.text()}`));
    page.on('pageerror', (error) => heard.push(`error: ${error.message}`));
    page.on('dialog', (dialog) => {
      heard.push(`dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    page.on('request', (request) => {
      if (!request.url().startsWith(base)) heard.push(`request: ${request.url()}`);
    });
    return heard;
  }

  async function within<T>(
    options: Parameters<Browser['newContext']>[0],
    use: (page: Page, context: BrowserContext) => Promise<T>,
  ): Promise<T> {
    const context = await browser.newContext(options);
    try {
      return await use(await context.newPage(), context);
    } finally {
      await context.close();
    }
  }

  const looks = [
    { name: 'light', options: { colorScheme: 'light' } },
    { name: 'dark', options: { colorScheme: 'dark' } },
    { name: 'forced colours', options: { forcedColors: 'active' } },
    { name: '320 pixels', options: { viewport: { width: 320, height: 640 } } },
  ] as const;

  test.each(looks)(
    'every page is within WCAG 2.2 AA, keeps to itself and fits: $name',
    async ({ options }) => {
      // The script of the checker is not ours: pages forbid it.
      await within({ ...options, bypassCSP: true }, async (page) => {
        const heard = overhear(page);
        for (const { path } of html()) {
          await page.goto(new URL(path, base).href, { waitUntil: 'load' });
          expect(await violationsOf(page), path).toEqual([]);
          const wide = await page.evaluate('document.documentElement.scrollWidth - innerWidth');
          expect(wide, `${path} scrolls sideways`).toBeLessThanOrEqual(0);
        }
        expect(heard).toEqual([]);
      });
    },
  );

  test('pages obey their own policy', async () => {
    await within({}, async (page) => {
      const heard = overhear(page);
      for (const { path } of html()) await page.goto(new URL(path, base).href, { waitUntil: 'load' });
      expect(heard).toEqual([]);
    });
  });

  test('keys move through what is listed and from page to page', async () => {
    await within({}, async (page) => {
      await page.goto(base);
      await page.keyboard.press('j');
      const first = await page.evaluate('document.activeElement?.textContent');
      await page.keyboard.press('j');
      expect(await page.evaluate('document.activeElement?.textContent')).not.toBe(first);
      await page.keyboard.press('k');
      expect(await page.evaluate('document.activeElement?.textContent')).toBe(first);
      await page.goto(new URL(`/runs/${OVER}/steps/rl/1`, base).href);
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
      await within({}, async (page) => {
        await page.goto(new URL(`/runs/${WAITS}`, base).href);
        await page.locator('.question').waitFor();
        const stale = page.locator('[data-live="stale"]');
        const stopped = pid();
        process.kill(stopped, 'SIGSTOP');
        try {
          await stale.getByText(`${name} `).waitFor({ timeout: 90_000 });
          expect(await stale.innerText()).toMatch(/does not answer.*as of \d{4}-\d\d-\d\d/s);
          // What was known stays.
          expect(await page.locator('.question').count()).toBe(1);
          expect(await page.locator('h1').innerText()).toBe(WAITS);
        } finally {
          process.kill(stopped, 'SIGCONT');
        }
        await until(
          async () => ((await stale.innerText()).trim() === '' ? true : undefined),
          60_000,
          () => 'the page does not recover',
        );
      });
    },
  );

  test('without scripts a person answers, and whoever watches sees the run go on without a reload', async () => {
    await within({}, async (watching) => {
      await watching.goto(new URL(`/runs/${WAITS}`, base).href);
      await watching.locator('.status', { hasText: 'waiting' }).waitFor();
      await watching.evaluate("globalThis.loaded = 'once'");
      await within({ javaScriptEnabled: false }, async (page) => {
        await page.goto(new URL(`/runs/${WAITS}`, base).href);
        await page.getByRole('button', { name: 'advance' }).click();
        await page.waitForURL(new RegExp(`/runs/${WAITS}$`));
      });
      await watching.locator('.status', { hasText: /completed|no-success/ }).waitFor({ timeout: 120_000 });
      expect(await watching.locator('.question').count()).toBe(0);
      expect(await watching.evaluate('globalThis.loaded')).toBe('once');
    });
  });
});
