import { expect, test } from 'vitest';
import { addEntries, mergeTotals, noTotals } from '../../../../core/ladder/ledger.ts';
import type { LedgerEntry } from '../../../../core/ladder/ledger.ts';

const about = { stage: 'rl', verifier: 'dft', version: '1', digest: 'd' };
const verdict = (extra: Partial<Extract<LedgerEntry, { kind: 'verdict' }>>): LedgerEntry => ({
  kind: 'verdict',
  ...about,
  result: 'scored',
  spent: { seconds: 2, usd: 0.5 },
  late: false,
  ...extra,
});

const entries: LedgerEntry[] = [
  verdict({}),
  verdict({ late: true, spent: null }),
  verdict({ result: 'abstained', type: 'crashed' }),
  { kind: 'lost', ...about, attempts: 2, seconds: 7, reason: 'heartbeat' },
  { kind: 'lost', ...about, attempts: 5, seconds: 11, reason: 'heartbeat' },
  // Stands for the five attempts: nothing was computed, and what it cost nobody knows.
  verdict({ result: 'abstained', type: 'lost', spent: { seconds: 0, usd: 0 } }),
  { kind: 'withdrawn', ...about },
  { kind: 'offered', stage: 'rl', step: 3, fromStep: 1, episodes: 4 },
];

test('totals tell computations from what others computed, from lost attempts and from what was taken back', () => {
  expect(addEntries({}, entries)).toEqual({
    dft: {
      ...noTotals(),
      deferred: 1,
      computed: 2,
      seconds: 4,
      usd: 1,
      shared: 1,
      abstained: 2,
      late: 1,
      lost: 7,
      lostSeconds: 18,
    },
  });
});

test('pages add up to the same totals as all entries at once', () => {
  const pages = entries.map((entry) => addEntries({}, [entry]));
  expect(pages.reduce((sum, page) => mergeTotals(sum, page), {})).toEqual(addEntries({}, entries));
});

test('how long people were asked is no seconds of verdicts, and what came after the run is told from what was late', () => {
  const about = { stage: 'rl', verifier: 'expert', version: '1', digest: 'd', result: 'scored' } as const;
  const came = { ...about, kind: 'verdict', late: true, spent: { seconds: 9000, usd: 5 } } as const;
  const all = addEntries({}, [
    { ...came, by: 'people', afterRun: true },
    { ...came, spent: { seconds: 2, usd: 1 } },
  ]);
  expect(all['expert']).toMatchObject({
    computed: 2,
    seconds: 2,
    openSeconds: 9000,
    usd: 6,
    late: 1,
    afterRun: 1,
  });
});

test('totals that an older version has carried over are added to', () => {
  const { openSeconds: _, afterRun: __, ...older } = noTotals();
  const before = { expert: older as ReturnType<typeof noTotals> };
  const spent = { seconds: 3, usd: 0 };
  const entry = { kind: 'verdict', stage: 'rl', verifier: 'expert', version: '1', digest: 'd' } as const;
  const one = addEntries(before, [{ ...entry, result: 'scored', spent, late: false, by: 'people' }]);
  expect(one['expert']).toMatchObject({ openSeconds: 3, afterRun: 0 });
  expect(mergeTotals(before, one)['expert']).toMatchObject({ openSeconds: 3, computed: 1 });
  expect(mergeTotals(one, before)['expert']).toMatchObject({ openSeconds: 3, computed: 1 });
});
