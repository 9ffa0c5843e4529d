import { tmpdir } from 'node:os';
import { GradusError, messageOf } from '../core/errors.ts';

/** What the system says of a disk without room, and of a quota that is used up. */
const FULL = ['ENOSPC', 'EDQUOT'];
const LONGEST_CHAIN = 10;

/** What an activity has met where a disk that it writes to is full, which passes and is no fault of the run. */
export function fullDisk(error: unknown): GradusError | undefined {
  let at: unknown = error;
  for (let depth = 0; at instanceof Error && depth < LONGEST_CHAIN; depth++) {
    const { code } = at as NodeJS.ErrnoException;
    if (code !== undefined && FULL.includes(code)) {
      return new GradusError(
        'infra',
        'disk-full',
        `a disk of this worker is full (${messageOf(at)}): make room, above all for temporary files in ${tmpdir()}; the work goes on by itself then`,
        { retryable: true, cause: error },
      );
    }
    at = at.cause;
  }
  return undefined;
}
