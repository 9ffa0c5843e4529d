import { judge } from '../../environments/verifiers/judge/judge.ts';
import { calculatorEnvironment } from '../../environments/families/calculator/environment.ts';
import ladderCalculator from './ladder-calculator.ts';

// The calculator with a judge above a fast tier, for workers that are started with this module in GRADUS_ENVIRONMENTS.

const closeEnough = judge({
  name: 'close-enough',
  baseUrl: process.env['JUDGE_URL']!,
  model: 'a-judge',
  rubric: 'Score 1: the answer is near to what was asked for.\nScore 0: it is not.',
  samples: 3,
  tier: 'simulation',
  cost: { seconds: 0.01, usd: 0.001 },
  prices: { input: 0.1, output: 0.3 },
});

const isNumber = ladderCalculator.verifiers.find(({ name }) => name === 'is-number')!;
const calculator = calculatorEnvironment('calculator-judged');
export default { ...calculator, verifiers: [...calculator.verifiers, isNumber, closeEnough] };
