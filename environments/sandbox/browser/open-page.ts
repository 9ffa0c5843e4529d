import type { BrowserContext, Page } from 'playwright-core';
import { GradusError, isA, messageOf } from '../../../core/errors.ts';
import { ToolRefusal } from '../../contract/environment.ts';
import { chromium } from './chromium.ts';
import { Room } from './room.ts';

/** What a page may load. */
export interface ServedFile {
  contentType: string;
  body: string | Buffer;
}

export interface OpenPage {
  /** The address to begin with. */
  url: string;
  /** Answers every request that the page makes; null is "not found". There is no network behind it. */
  serve: (url: URL) => ServedFile | null | Promise<ServedFile | null>;
  /** JavaScript that runs in every document before its own. */
  init?: string;
  /** Its clock begins at this time (milliseconds since 1970) and stands: `page.clock` moves it. Else it is the real one. */
  clock?: number;
}

/** A page of an episode, in a browser context that it shares with none. */
export interface OpenedPage {
  /** Does something with the page. Throws what it throws if that is a ToolRefusal, else GradusError('environment', 'session-lost'), retryable. */
  with<T>(work: (page: Page) => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

/** How long anything on a page may take, milliseconds. */
const PAGE_TIMEOUT_MS = 8000;

/**
 * Pages that are open at once in one process, each with some 20 MB of its own. The sessions of those that had to go come
 * back when they are called again.
 */
const room = new Room<BrowserContext>({ most: 64, restMs: 2000, evict: (context) => void closed(context) });

function closed(context: BrowserContext): Promise<void> {
  room.leave(context);
  // A browser that is gone has closed it.
  return context.close().catch(() => undefined);
}

/**
 * Opens a page in the browser of this process. Whatever ends the browser ends the page, too: it is the session's to come back.
 * Throws GradusError('environment', 'no-browser'), and as `with` does.
 */
export async function openPage(asked: OpenPage): Promise<OpenedPage> {
  const context = await room.enter(newContext);
  // Also where the browser is gone, whatever had been done by then.
  context.once('close', () => room.leave(context));
  try {
    const page = await guarded(() => firstPage(context, asked));
    // Also one that nobody ever calls makes room.
    room.rest(context);
    return {
      with: (work) =>
        guarded(async () => {
          room.use(context);
          try {
            return await work(page);
          } finally {
            room.rest(context);
          }
        }),
      close: () => closed(context),
    };
  } catch (error) {
    await closed(context);
    throw error;
  }
}

async function newContext(): Promise<BrowserContext> {
  const { browser } = await chromium();
  const viewport = { width: 800, height: 600 };
  return guarded(() => browser.newContext({ viewport, serviceWorkers: 'block' }));
}

async function firstPage(context: BrowserContext, { url, serve, init, clock }: OpenPage): Promise<Page> {
  context.setDefaultTimeout(PAGE_TIMEOUT_MS);
  await context.route('**/*', async (route) => {
    const served = await serve(new URL(route.request().url()));
    await route.fulfill(served === null ? { status: 404, body: '' } : { ...served });
  });
  if (init !== undefined) await context.addInitScript(init);
  const page = await context.newPage();
  if (clock !== undefined) {
    await page.clock.install({ time: clock });
    await page.clock.pauseAt(clock + 1000);
  }
  // A dialog would keep everything else waiting.
  page.on('dialog', (dialog) => void dialog.dismiss().catch(() => undefined));
  await page.goto(url);
  return page;
}

async function guarded<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    if (isA(cause, ToolRefusal) || isA(cause, GradusError)) throw cause;
    const [line] = messageOf(cause).split('\n');
    throw new GradusError('environment', 'session-lost', `The page in the browser is lost: ${line}`, {
      cause,
      retryable: true,
    });
  }
}
