import { configureGlobal } from 'fast-check';

/** The one place that reads it: `npm run test:all` sets it. */
const ALL = process.env['GRADUS_ALL_TESTS'] === '1';
const SHARE = ALL ? 1 : 1 / 4;

/** How often a property is tried: `all` times by `npm run test:all`, a quarter of that otherwise. */
export const propertyRuns = (all: number): number => Math.ceil(all * SHARE);

// For properties that say nothing: fast-check's own default is 100. Vitest loads this file before each test file.
configureGlobal({ numRuns: propertyRuns(100) });
