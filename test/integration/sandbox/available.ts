import { findBubblewrap } from '../../../environments/sandbox/bubblewrap/find.ts';

const found = await findBubblewrap();

/** The sandbox of namespaces, undefined where this machine has none. */
export const bubblewrap = 'sandbox' in found ? found.sandbox : undefined;

/** What stands in the name of a suite that had to be left out: nothing that it protects was shown. */
export const LEFT_OUT = 'missing' in found ? ` — NOT SHOWN HERE, for ${found.missing}` : '';

if (LEFT_OUT !== '') console.warn(`SKIPPED: tests of the sandbox${LEFT_OUT}`);
