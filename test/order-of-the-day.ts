import { createHash } from 'node:crypto';
import path from 'node:path';
import { BaseSequencer } from 'vitest/node';
import type { TestSpecification } from 'vitest/node';

/** The day by which files of tests are ordered, as any text. Without it they come as Vitest has them. */
export const TESTS_DAY = 'GRADUS_TESTS_DAY';

/**
 * An order in which no file is always the last, the same on all machines. (Vitest shuffles by a seed what a file system lists,
 * in an order of its own.) A file's place does not hang on which others there are.
 */
export default class OrderOfTheDay extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const day = process.env[TESTS_DAY];
    // oxlint-disable-next-line unicorn/no-array-sort -- no array's: what Vitest itself does
    if (day === undefined) return super.sort(files);
    const placeOf = ({ moduleId }: TestSpecification): string =>
      placeOn(day, path.relative(process.cwd(), moduleId));
    return files.toSorted((one, other) => (placeOf(one) < placeOf(other) ? -1 : 1));
  }
}

/** A file is before those whose text is greater. */
export const placeOn = (day: string, file: string): string =>
  createHash('sha256').update(`${day} ${file}`).digest('hex');
