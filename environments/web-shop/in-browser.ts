import type { Page } from 'playwright-core';
import type { ToolCall } from '../../core/episode/episode.ts';
import { chromium } from '../browser/chromium.ts';
import { browserNeeds } from '../browser/find-chromium.ts';
import { openPage } from '../browser/open-page.ts';
import { defineEnvironment, ToolRefusal, type Environment, type Task } from '../contract.ts';
import type { ActedFully, Session } from '../session.ts';
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

/** Types or clicks as a person would, and waits for the page that comes of it. */
async function move(page: Page, { name, arguments: args }: ToolCall): Promise<void> {
  if (name === 'search') {
    const box = page.getByRole('searchbox');
    if ((await box.count()) === 0) throw new ToolRefusal('no search box here');
    await box.fill((args as { query: string }).query);
    await Promise.all([page.waitForEvent('load'), box.press('Enter')]);
    return;
  }
  const { on } = args as { on: string };
  // By the whole label, whatever its case.
  const label = new RegExp(`^\\s*${on.trim().replaceAll(/[.*+?^${}()|[\]\\/]/g, '\\$&')}\\s*$`, 'iu');
  const link = page.getByRole('link', { name: label });
  if ((await link.count()) === 0) throw new ToolRefusal(`no [${on}] here`);
  await Promise.all([page.waitForEvent('load'), link.first().click()]);
}

/** Runs in the page: a line for each block, with links in square brackets. */
const READ_DOCUMENT = `[...document.body.children]
  .map((block) =>
    [...block.children]
      .map((part) => (part.tagName === 'A' ? '[' + part.textContent + ']' : part.textContent.trim()))
      .join(' '),
  )
  .join('\\n')`;
