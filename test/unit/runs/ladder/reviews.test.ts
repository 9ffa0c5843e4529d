import { expect, test } from 'vitest';
import { isRunOver } from '../../../../runs/ladder/reviews.ts';
import { reviewLines } from '../../../../cli/review-lines.ts';

const goingOn =
  (...runs: string[]) =>
  (run: string) =>
    runs.includes(run);

test.each([
  [null, [], [], false],
  ['over', [], [], true],
  ['over', ['over/ladder'], [], true],
  ['over', ['over/ladder'], ['over'], false],
  // Another run has asked meanwhile, or a sweep.
  ['over', ['over/ladder', 'next/ladder'], ['next'], false],
  ['over', ['over/ladder', 'gone/ladder'], ['next'], true],
  ['over', ['over/ladder', 'sweep/verdicts/0'], [], false],
])('of %s, waited for by %j while %j go on: all runs are over is %s', (run, waiting, running, over) =>
  expect(isRunOver(run, waiting, goingOn(...running))).toBe(over),
);

test('a review of a run that is over is listed as one', () => {
  const review = { id: 'verdict/expert/1/0', run: 'shop', startedAt: 0, state: null };
  expect(reviewLines({ ...review, runOver: true }, 1000).join('\n')).toContain(
    'of shop, which is over (a verdict is stored for other runs)',
  );
  expect(reviewLines({ ...review, runOver: false }, 1000).join('\n')).not.toContain('over');
});
