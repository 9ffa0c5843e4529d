import { browserNeeds } from '../../../environments/sandbox/browser/find-chromium.ts';
import type { Need } from '../../../environments/contract/environment.ts';
import { miniwobNeed } from '../../../environments/families/miniwob/page-files.ts';

/** Whether all of it is there; and what stands in the name of a suite that had to be left out: nothing was shown. */
function lookFor(suite: string, needs: readonly Need[]): { there: boolean; leftOut: string } {
  const missing = needs.filter(({ present }) => !present).map(({ what, setUp }) => `${what} (${setUp})`);
  if (missing.length === 0) return { there: true, leftOut: '' };
  const leftOut = ` — NOT SHOWN HERE, missing ${missing.join(', ')}`;
  console.warn(`SKIPPED: tests of ${suite}${leftOut}`);
  return { there: false, leftOut };
}

const needs = await browserNeeds();
export const browser = lookFor('the browser', needs);
export const miniwob = lookFor('MiniWoB', [...needs, miniwobNeed()]);
