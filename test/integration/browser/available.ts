import { findChromium } from '../../../environments/browser/find-chromium.ts';
import { openSandbox } from '../../../environments/sandbox/open-sandbox.ts';
import { messageOf } from '../../../core/errors.ts';

const found = findChromium();
const missing =
  'missing' in found
    ? found.missing
    : await openSandbox().then(
        () => undefined,
        (error: unknown) => messageOf(error),
      );

export const hasBrowser = missing === undefined;

/** What stands in the name of a suite that had to be left out: nothing that it protects was shown. */
export const LEFT_OUT = hasBrowser ? '' : ` — NOT SHOWN HERE, for ${missing}`;

if (!hasBrowser) console.warn(`SKIPPED: tests of the browser${LEFT_OUT}`);
