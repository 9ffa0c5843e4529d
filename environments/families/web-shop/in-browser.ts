import type { Page } from 'playwright-core';
import type { ToolCall } from '../../../core/episode/episode.ts';
import { chromium } from '../../sandbox/browser/chromium.ts';
import { browserNeeds } from '../../sandbox/browser/find-chromium.ts';
import { openPage } from '../../sandbox/browser/open-page.ts';
import { defineEnvironment, ToolRefusal, type Environment, type Task } from '../../contract/environment.ts';
import type { ActedFully, Session } from '../../contract/session.ts';
import { asHtml } from './as-html.ts';
import { shopOf } from './environment.ts';
import { createVisits, type Visit } from './goals.ts';
import { ENTRANCE, ORIGIN, pageAt } from './pages.ts';
import { boughtAt, lastWord } from './visit.ts';

/** The same shop, tasks and reward with its pages in Chromium: what the policy reads is read from the document. */
export function webShopBrowserEnvironment(): Environment {
  const visits = createVisits();
  return defineEnvironment({
    name: 'web-shop-browser',
    ...shopOf(visits),
    needs: browserNeeds,
    prepare: async () => void (await chromium()),
    sessions: { resume: 'replay', open: (task: Task) => openVisit(visits(task.ref)) },
  });
}

/** A visit to the shop in a browser. Throws what `openPage` throws. */
export async function openVisit(visit: Visit): Promise<Session> {
  const opened = await openPage({
    url: ORIGIN + ENTRANCE,
    serve: ({ origin, pathname, search }) => {
      const page = origin === ORIGIN ? pageAt(visit.shop, pathname + search) : null;
      return page === null ? null : { contentType: 'text/html; charset=utf-8', body: asHtml(page) };
    },
  });
  let address = ENTRANCE;
  return {
    act: (call) =>
      opened.with(async (page): Promise<ActedFully> => {
        await move(page, call);
        const { pathname, search } = new URL(page.url());
        address = pathname + search;
        const text = await page.evaluate<string>(READ_DOCUMENT);
        const bought = boughtAt(visit, address);
        return bought === null ? { text } : { text, reward: bought.reward, done: true };
      }),
    end: () => lastWord(boughtAt(visit, address)),
    close: () => opened.close(),
  };
}

/**
 * Follows a link or searches, and waits for the page that comes of it. By scripts of a line and not by Playwright's
 * locators: those bring a third of a megabyte of script into every new document, which takes twice as long as all the rest.
 */
async function move(page: Page, { name, arguments: args }: ToolCall): Promise<void> {
  if (name === 'search') {
    const box = `document.querySelector('input[type=search]')`;
    if (!(await page.evaluate<boolean>(`${box} !== null`))) throw new ToolRefusal('no search box here');
    const query = JSON.stringify((args as { query: string }).query);
    await follow(page, `${box}.value = ${query}; ${box}.form.requestSubmit()`);
    return;
  }
  const { on } = args as { on: string };
  const label = JSON.stringify(on.trim().toLowerCase());
  const link = await page.evaluate<number>(
    `[...document.links].findIndex((link) => link.textContent.trim().toLowerCase() === ${label})`,
  );
  if (link < 0) throw new ToolRefusal(`no [${on}] here`);
  await follow(page, `document.links[${link}].click()`);
}

const follow = (page: Page, script: string): Promise<unknown> =>
  Promise.all([page.waitForEvent('load'), page.evaluate(script)]);

/** Runs in the page: a line for each block, with links in square brackets. */
const READ_DOCUMENT = `[...document.body.children]
  .map((block) =>
    [...block.children]
      .map((part) => (part.tagName === 'A' ? '[' + part.textContent + ']' : part.textContent.trim()))
      .join(' '),
  )
  .join('\\n')`;
