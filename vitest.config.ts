import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import OrderOfTheDay from './test/order-of-the-day.ts';
import { LONG_UNITS } from './test/selection.ts';

/**
 * Tests of code that needs no process of its own: they share threads, and what one has loaded the next has, which takes a
 * third less of processor time. All others have a process for each file.
 */
const SHARED = [
  'activities',
  'cli',
  'core',
  'dashboard',
  'docs',
  'engine/dialect',
  'engine/tokenizer',
  'environments/contract',
  'environments/families',
  'environments/verifiers',
  'runs',
  'spec',
  'store',
  'support',
  'svg',
  'workflows',
].map((folder) => `test/unit/${folder}/**/*.test.ts`);
/** Among them, those that ask for processor time or memory, or load native addons: these belong to a process. */
const APART = [
  'activities/durable.test.ts',
  'activities/rollout/**/*.test.ts',
  'activities/training/reward-model-attacks.test.ts',
  'dashboard/heap.test.ts',
  'engine/dialect/guard.test.ts',
  'environments/verifiers/hostile-answers.test.ts',
  'environments/verifiers/judge/judge.test.ts',
  'environments/verifiers/math/boxed-math.test.ts',
  'runs/replay/**/*.test.ts',
].map((path) => `test/unit/${path}`);
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
    // What hangs is to end; no test is to fail because the machine is busy. Simulations take half a minute at rest.
    testTimeout: 240_000,
    hookTimeout: 240_000,
    // As long as anything may take on a machine that gives this process no processor: it only ends what hangs.
    expect: { poll: { timeout: 120_000 } },
    setupFiles: ['test/support/property-runs.ts'],
    sequence: { sequencer: OrderOfTheDay },
    projects: [
      {
        extends: true,
        test: {
          name: 'unit',
          include: ['test/unit/**/*.test.ts'],
          exclude: [...SHARED, ...LEFT_OUT],
          maxWorkers: UNIT_WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'unit-apart',
          include: APART,
          exclude: LEFT_OUT,
          maxWorkers: UNIT_WORKERS,
          sequence: { groupOrder: 0 },
        },
      },
      {
        extends: true,
        test: {
          name: 'unit-shared',
          include: SHARED,
          exclude: [...APART, ...LEFT_OUT],
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
          runner: 'test/until-runner.ts',
          testTimeout: 600_000,
          hookTimeout: 300_000,
          // Each file brings up real servers and workers, which wait about half of their time.
          maxWorkers: 2,
          sequence: { groupOrder: 2 },
        },
      },
    ],
  },
});
