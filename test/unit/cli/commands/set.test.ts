import { expect, test } from 'vitest';
import { addBudget, addSteps } from '../../../../cli/commands/set.ts';

test('limits of several tiers add up; the name of a verifier may have dots and equals signs', () => {
  const some = addBudget('dft.usd=0.5', addBudget('dft.count=100', {}));
  expect(addBudget('a.b=c.perStep=none', some)).toEqual({
    dft: { count: 100, usd: 0.5 },
    'a.b=c': { perStep: null },
  });
  expect(addSteps('rl=50', { other: 3 })).toEqual({ other: 3, rl: 50 });
});

test.each(['dft=3', 'dft.days=3', 'dft.count=', 'dft.count=-1', 'dft.count=many', '.count=3', ''])(
  '"%s" is no change of a budget',
  (text) => expect(() => addBudget(text, {})).toThrow(/write VERIFIER|is no number/),
);

test.each(['rl', '=3', 'rl=', 'rl=x'])('"%s" is no number of steps', (text) => {
  expect(() => addSteps(text, {})).toThrow(/write STAGE|is no number/);
});
