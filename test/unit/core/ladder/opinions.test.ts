import { expect, test } from 'vitest';
import { refuseWithdrawal } from '../../../../core/ladder/opinions.ts';

const ANN = { reviewer: 'ann', score: 0.9 };
const BOB = { reviewer: 'bob', score: 0.1 };

test('a reviewer takes back what they said, anybody the whole review, and nobody what is decided', () => {
  expect(refuseWithdrawal({ reviewer: 'ann' }, [ANN, BOB], 3)).toBeNull();
  expect(refuseWithdrawal({ reviewer: 'cho', all: true, reason: 'wrong task' }, [ANN], 3)).toBeNull();
  expect(refuseWithdrawal({ reviewer: 'cho' }, [ANN, BOB], 3)).toMatch(
    /^cho has given no verdict here; given were those of ann, bob/,
  );
  expect(refuseWithdrawal({ reviewer: 'ann' }, [ANN, { reviewer: 'cho', score: 1 }], 3)).toMatch(
    /^this review is decided/,
  );
  expect(refuseWithdrawal({ reviewer: 'ann', all: true }, [ANN], 1)).toMatch(/^this review is decided/);
});

test.each([
  ['nothing', undefined, '"reviewer" is missing'],
  ['nobody', { reviewer: ' ' }, '"reviewer" is missing'],
  ['a reason that is no text', { reviewer: 'ann', reason: 3 as unknown as string }, '"reason" must be'],
  ['all that is no truth value', { reviewer: 'ann', all: 'yes' as unknown as boolean }, '"all" must be'],
])('%s takes back nothing', (_, withdrawal, why) => {
  expect(refuseWithdrawal(withdrawal, [ANN], 3)).toContain(why);
});
