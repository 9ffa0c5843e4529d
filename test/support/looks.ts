import type { Browser, BrowserContext, Page } from 'playwright-core';
import { violationsOf } from './axe.ts';

const WIDE = { width: 1280, height: 800 };
/** What another colour can do wrong, and what another width can. */
const OF_COLOURS = ['color-contrast', 'link-in-text-block'];
const OF_WIDTHS = ['target-size', 'scrollable-region-focusable'];

/**
 * What is wrong with the page that is open, in every look that it can have: light, dark and forced colours, on a screen of
 * 320 pixels, at a zoom of 200 %, and with letters of twice the size.
 */
export async function wrongIn(page: Page): Promise<string[]> {
  const found: string[] = [];
  const note = (look: string, wrong: readonly string[]): void => {
    found.push(...wrong.map((one) => `${look}: ${one}`));
  };
  note('light', await violationsOf(page));
  await page.emulateMedia({ colorScheme: 'dark' });
  note('dark', await violationsOf(page, OF_COLOURS));
  await page.emulateMedia({ colorScheme: 'light', forcedColors: 'active' });
  note('forced colours', await violationsOf(page, OF_COLOURS));
  await page.emulateMedia({ colorScheme: 'light', forcedColors: 'none' });
  note('wide', await sideways(page));
  // A zoom of 200 % leaves half of the pixels.
  await page.setViewportSize({ width: WIDE.width / 2, height: WIDE.height / 2 });
  note('200 %', await sideways(page));
  await page.setViewportSize({ width: 320, height: 640 });
  note('320 pixels', [...(await violationsOf(page, OF_WIDTHS)), ...(await sideways(page))]);
  await page.setViewportSize(WIDE);
  await page.evaluate("document.documentElement.style.fontSize = '200%'");
  note('letters of twice the size', await sideways(page));
  await page.evaluate("document.documentElement.style.fontSize = ''");
  return found;
}

/** What is wider than the page, besides what scrolls by itself. */
async function sideways(page: Page): Promise<string[]> {
  const wide = await page.evaluate<string | null>(`(() => {
    const { scrollWidth } = document.documentElement;
    if (scrollWidth <= innerWidth) return null;
    const wide = [...document.querySelectorAll('body *')].find(
      (one) => one.closest('.scroll') === null && one.getBoundingClientRect().right > innerWidth + 1,
    );
    return scrollWidth + ' pixels wide: ' + wide?.outerHTML.slice(0, 200);
  })()`);
  return wide === null ? [] : [wide];
}

/** What a page says that it should not: on the console, to other machines, in a dialog. */
export function overhear(page: Page, base: string): string[] {
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

/** A page in a browser of its own memory, which it leaves behind. */
export async function withPage<T>(
  browser: Browser,
  options: Parameters<Browser['newContext']>[0],
  use: (page: Page, context: BrowserContext) => Promise<T>,
): Promise<T> {
  const context = await browser.newContext({ viewport: WIDE, ...options });
  context.setDefaultTimeout(120_000);
  try {
    return await use(await context.newPage(), context);
  } finally {
    await context.close();
  }
}

/** Goes to a link or a button by the Tab key, where it must be seen that one is there, and presses Enter. */
export async function enter(page: Page, name: string): Promise<void> {
  const address = page.url();
  for (let i = 0; i < MOST_TABS; i++) {
    await page.keyboard.press('Tab');
    const focused = await page.evaluate<{ text: string; outline: string }>(`(() => {
      const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
      return { text: document.activeElement.textContent.trim(), outline: outlineWidth + ' ' + outlineStyle };
    })()`);
    if (focused.text !== name) continue;
    if (focused.outline !== '3px solid')
      throw new Error(`nobody sees that ${name} has the focus: ${focused.outline}`);
    await Promise.all([page.waitForEvent('load'), page.keyboard.press('Enter')]);
    return;
  }
  throw new Error(`no ${name} is reached by keys on ${address}`);
}

const MOST_TABS = 300;
