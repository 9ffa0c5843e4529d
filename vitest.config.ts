import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LONG_UNITS } from './test/selection.ts';

/**
 * Tests of code that has no state, no processes, no native addons and no TensorFlow: they share threads, and what one has
 * loaded the next has, which takes a quarter less of processor time. All others have a process for each file.
 */
const PURE = ['core', 'spec', 'svg'].map((folder) => `test/unit/${folder}/**/*.test.ts`);
/** `npm test` leaves them out; who names one of them runs it. */
const LEFT_OUT =
  process.env['GRADUS_SELECTED_TESTS'] === '1'
    ? LONG_UNITS.flatMap(({ paths }) => paths.map((one) => `test/unit/${one}`))
    : [];
// Many of them wait: on two cores two are quicker than the one that would be left a core.
const UNIT_WORKERS = Math.max(2, availableParallelism() - 1);

export default defineConfig({
  test: {
    pool: 'forks',
    testTimeout: 60_000,
    // Loading TensorFlow takes ten seconds where others are at work.
    hookTimeout: 60_000,
    setupFiles: ['test/support/property-runs.ts'],
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [...PURE, ...LEFT_OUT],
          maxWorkers: UNIT_WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'unit-pure',
          include: PURE,
          exclude: LEFT_OUT,
          pool: 'threads',
          isolate: false,
          maxWorkers: UNIT_WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: { name: 'replay', include: ['test/replay/**/*.test.ts'], sequence: { groupOrder: 1 } },
      },
      {
        extends: true,
        test: {
          name: 'integration',
          include: ['test/integration/**/*.test.ts'],
          testTimeout: 300_000,
          hookTimeout: 120_000,
          // Each file brings up real servers and workers, which wait about half of their time.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
