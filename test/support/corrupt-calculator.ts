import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import type { FastVerifier } from '../../environments/contract/environment.ts';

// The calculator with verifiers that pay for the wrong thing, for runs that are to go wrong: what a policy makes of
// them is what the diagnoses are tested by.

const free = { version: '1', tier: 'fast', cost: { seconds: 0, usd: 0 } } as const;

/** Pays for length: the full score at 60 sampled tokens. */
const long: FastVerifier = {
  ...free,
  name: 'pays-length',
  verify: ({ episode: { turns } }) => ({
    kind: 'score',
    score: Math.min(1, turns.reduce((sum, { start, end }) => sum + end - start, 0) / 60),
  }),
};

/** Pays for calls, whatever they are: the full score at five. */
const busy: FastVerifier = {
  ...free,
  name: 'pays-calls',
  verify: ({ episode: { turns } }) => ({
    kind: 'score',
    score: Math.min(1, turns.filter(({ action }) => action.kind === 'call').length / 5),
  }),
};

/** Pays for an answer after one call, right or wrong: a loophole where a task takes two. */
const quick: FastVerifier = {
  ...free,
  name: 'pays-haste',
  verify: ({ episode: { turns }, answer }) => ({
    kind: 'score',
    score: Number(answer !== null && turns.length === 2),
  }),
};

/** Says the same of everything. */
const blind: FastVerifier = {
  ...free,
  name: 'blind',
  verify: () => ({ kind: 'score', score: 0.5 }),
};

const calculator = calculatorEnvironment('calculator-corrupt');
export default { ...calculator, verifiers: [...calculator.verifiers, long, busy, quick, blind] };
