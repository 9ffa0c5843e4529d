import { execFile, spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import getPort from 'get-port';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, launchChromium } from '../../support/chromium.ts';
import { ROOT } from '../../support/markdown.ts';
import { until } from '../../support/run-client.ts';

// The documentation as a site: built from this checkout, where a link to nothing fails the build.

const site = path.join(ROOT, 'site');
const dist = path.join(site, 'dist');
const run = promisify(execFile);

beforeAll(async () => {
  if (!existsSync(path.join(site, 'node_modules', 'vitepress'))) await run('npm', ['ci'], { cwd: site });
  await run('npm', ['run', 'build'], { cwd: site });
}, 600_000);

const html = (page: string): Promise<string> => readFile(path.join(dist, `${page}.html`), 'utf8');

test('each page and each recipe of the repository has a page, and the front door leads to methods and recipes', async () => {
  const docs = (await readdir(path.join(ROOT, 'docs'))).filter((name) => name.endsWith('.md'));
  const recipes = await readdir(path.join(ROOT, 'recipes'), { withFileTypes: true });
  const expected = [
    ...docs.map((name) => name.replace('.md', '')),
    ...recipes.filter((one) => one.isDirectory()).map(({ name }) => `recipes/${name}`),
  ];
  expect(expected.length).toBeGreaterThan(25);
  for (const page of expected) expect(existsSync(path.join(dist, `${page}.html`)), page).toBe(true);
  const front = await html('index');
  for (const door of ['/methods', '/recipes', '/start']) expect(front).toContain(`href="${door}"`);
});

test('a link to code leads to the code, and one to another page to that page and heading', async () => {
  const recipes = await html('recipes');
  expect(recipes).toContain('href="/source/recipes~r1-grpo~recipe.json.html"');
  expect(await html('source/recipes~r1-grpo~recipe.json')).toContain('2501.12948');
  expect(await html('adr/index')).toContain('href="/methods#why-it-is-so"');
});

test('what code in a page shows is no link', async () => {
  const written = await readFile(path.join(site, '.pages', 'contributing.md'), 'utf8');
  const fences = /^```[^]*?^```/gm;
  const source = await readFile(path.join(ROOT, 'CONTRIBUTING.md'), 'utf8');
  expect(written.match(fences)).toEqual(source.match(fences));
});

describe.skipIf(!hasChromium())('in a browser', () => {
  let browser: Browser;
  let served: ChildProcess;
  let url: string;

  beforeAll(async () => {
    const port = await getPort({ host: '127.0.0.1' });
    url = `http://127.0.0.1:${port}/`;
    const vitepress = path.join(site, 'node_modules', '.bin', 'vitepress');
    served = spawn(vitepress, ['preview', '--port', `${port}`], { cwd: site, stdio: 'ignore' });
    await until(
      () =>
        fetch(url).then(
          ({ ok }) => ok || undefined,
          () => undefined,
        ),
      300_000,
      () => 'the built site is not served',
    );
    browser = (await launchChromium())!;
  });

  afterAll(async () => {
    await browser?.close();
    if (served?.kill()) await once(served, 'exit');
  });

  test('the search finds a recipe, and its page opens', async () => {
    const tab = await browser.newPage();
    await tab.goto(url);
    await tab.locator('.VPNavBarSearch button').first().click();
    await tab.locator('.VPLocalSearchBox input').fill('multi-teacher');
    await tab.locator('.VPLocalSearchBox .result').first().click();
    await tab.waitForURL(/\/recipes/);
    await tab.getByRole('heading', { level: 1, name: /multi-teacher|recipes/i }).waitFor();
  });

  test('pictures of runs are shown', async () => {
    const tab = await browser.newPage();
    await tab.goto(url);
    const pictures = tab.locator('.vp-doc img');
    expect(await pictures.count()).toBeGreaterThanOrEqual(2);
    for (const one of await pictures.all()) {
      await one.scrollIntoViewIfNeeded();
      await expect
        .poll(() => one.evaluate((image) => (image as unknown as { naturalWidth: number }).naturalWidth))
        .toBeGreaterThan(0);
    }
  });
});
