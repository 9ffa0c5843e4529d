import { expect, test } from 'vitest';
import { noTotals } from '../../../core/ladder/ledger.ts';
import { deferredText } from '../../../dashboard/pages/ladder/deferred.tsx';
import { lateText } from '../../../dashboard/pages/ladder/late.tsx';

test('decisions to defer and the subjects that are listed are brought together in a sentence', () => {
  const tiers = [60, 18].map((deferred) => ({ totals: { ...noTotals(), deferred } }));
  expect(deferredText(tiers, { count: 76, judged: 1 })).toBe(
    '78 decisions to defer an episode, about 77 subjects: 1 judged since, 76 open.',
  );
});

test('verdicts that came when the run was over are not counted as late', () => {
  expect(lateText(1, 6)).toBe(
    '1 verdict came after their step had gone on; 6 verdicts came after the end of the run.',
  );
  expect(lateText(0, 1)).toBe('1 verdict came after the end of the run.');
});
