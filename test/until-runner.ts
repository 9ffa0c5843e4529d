import { appendFileSync } from 'node:fs';
import path from 'node:path';
import type { VitestRunnerImportSource } from '@vitest/runner';
import { test, TestRunner } from 'vitest';

// A machine may be four times slower than another. Files of tests that are not begun in time are left out by name, so that
// those that are begun end, and say what failed.

/** Seconds since 1970 (UTC) until which a file is begun. Without it, all are. */
export const TESTS_UNTIL = 'GRADUS_TESTS_UNTIL';
/** The file that is given a line for each file of tests that is left out. */
export const LEFT_OUT_FILE = 'GRADUS_LEFT_OUT_FILE';

export default class UntilRunner extends TestRunner {
  override async importFile(file: string, source: VitestRunnerImportSource): Promise<void> {
    const until = process.env[TESTS_UNTIL];
    if (source === 'setup' || until === undefined || Date.now() / 1000 <= Number(until)) {
      await super.importFile(file, source);
      return;
    }
    // In place of its tests: to load them takes seconds.
    test.skip('could not be begun in time', () => undefined);
    const list = process.env[LEFT_OUT_FILE];
    if (list !== undefined) appendFileSync(list, `${path.relative(process.cwd(), file)}\n`);
  }
}
