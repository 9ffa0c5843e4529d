import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const TAGS = ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa'];

type Found = { violations: { id: string; nodes: { html: string }[] }[] };

/** What a page does that WCAG 2.2 AA forbids, or one of these rules of it, with the first element that does it. */
export async function violationsOf(page: Page, rules: readonly string[] | null = null): Promise<string[]> {
  // What a debugger evaluates is not held to the policy of the page.
  if (await page.evaluate("typeof axe === 'undefined'")) await page.evaluate(AXE);
  return page.evaluate(
    async (runOnly) => {
      const { axe } = globalThis as unknown as { axe: { run(options: object): Promise<Found> } };
      const { violations } = await axe.run({ runOnly, resultTypes: ['violations'], preload: false });
      return violations.map(({ id, nodes }) => `${id}: ${nodes[0]!.html.slice(0, 200)}`);
    },
    rules === null ? { type: 'tag', values: TAGS } : { type: 'rule', values: rules },
  );
}
