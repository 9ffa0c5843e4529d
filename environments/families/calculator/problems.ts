import { GradusError } from '../../../core/errors.ts';
import { RandomStream } from '../../../core/random.ts';
import type { Split } from '../../../core/refs.ts';
import { splitOfProblem } from '../../contract/generated-tasks.ts';
import { evaluateExpression, parseExpression, printExpression, steps } from './expression.ts';
import type { Expression, Operation, Operator } from './expression.ts';
import { LEVELS, type Level } from './levels.ts';
import { tellStory } from './story.ts';

export interface Problem {
  prompt: string;
  expression: Operation;
  told: boolean;
}

/**
 * The split that a problem belongs to: decided by what is to be computed, not by how it is told, so that a story and
 * a bare expression with the same numbers are never on two sides.
 */
export const splitOf = (expression: string): Split => splitOfProblem('calculator', expression);

/** Makes the problem at (split, level, index); the same for the same coordinates. */
export function createProblems(): (split: Split, level: number, index: number) => Problem {
  // Level 1 has few expressions (some 17,000), so they are dealt like cards, an operator's deck at a time: none comes
  // twice before all have come, and the operators come equally often although they have unequal decks.
  const [first] = LEVELS as [Level];
  const decks = new Map<string, string[]>();
  const deal = (split: Split, index: number): Operation => {
    const operator = first.operators[index % first.operators.length]!;
    const turn = Math.floor(index / first.operators.length);
    let deck = decks.get(split + operator);
    if (deck === undefined) {
      const random = new RandomStream('calculator', 'deck', split, operator);
      deck = random.shuffle(singleOperations(first, operator, split));
      decks.set(split + operator, deck);
    }
    return parseExpression(deck[turn % deck.length]!) as Operation;
  };
  return (split, level, index) => {
    const shape = LEVELS.find((one) => one.level === level);
    if (shape === undefined || !Number.isSafeInteger(index) || index < 0) {
      throw new GradusError(
        'environment',
        'task',
        `calculator has no task ${index} at level ${level}; levels are ${LEVELS.map((one) => one.level).join(', ')} and indexes whole numbers from 0.`,
      );
    }
    const random = new RandomStream('calculator', 'task', split, level, index);
    const story = random.uniform() < shape.stories;
    if (level === 1) return told(deal(split, index), story, random);
    for (;;) {
      const problem = draw(shape, story, random);
      if (problem !== undefined && splitOf(printExpression(problem.expression)) === split) return problem;
    }
  };
}

/** A problem as it is told again: the same story for the same expression. */
export const toldAgain = (expression: Operation, story: boolean): Problem =>
  told(expression, story, new RandomStream('calculator', 'told again', printExpression(expression)));

/** How often other numbers are drawn for an expression. */
const MOST_DRAWS = 100;

/**
 * The same operations with other numbers, as the level may ask them in one split or another; null where no draw gives such.
 * Every other number stays as it is, but for factors and divisors.
 */
export function withOtherNumbers(
  { level, expression, told: story }: Pick<Problem, 'expression' | 'told'> & { level: number },
  random: RandomStream,
): Operation | null {
  const shape = LEVELS.find((one) => one.level === level)!;
  const again = (part: Expression): Expression => {
    if (typeof part === 'bigint') return random.uniform() < 0.5 ? part : BigInt(random.int(1, shape.operand));
    return combine(shape, [part.operator], again(part.left), again(part.right), random);
  };
  const written = printExpression(expression);
  const operators = operatorsOf(expression);
  for (let n = 0; n < MOST_DRAWS; n++) {
    const other = again(expression) as Operation;
    if (printExpression(other) === written || operatorsOf(other) !== operators) continue;
    if (!mayBe(shape, other) || (story && !toldAgain(other, true).told)) continue;
    if (level === 1 || acceptable(other, shape.limit, shape.negative && !story)) return other;
  }
  return null;
}

const operatorsOf = (expression: Expression): string =>
  operationsOf(expression)
    .map(({ operator }) => operator)
    .join('');

function draw(shape: Level, story: boolean, random: RandomStream): Problem | undefined {
  const count = random.int(...shape.operations);
  const expression = (
    story || shape.asWritten ? chain(shape, count, random) : tree(shape, count, random)
  ) as Operation;
  const problem = told(expression, story, random);
  if (story && !problem.told) return undefined;
  if (nestingOf(printExpression(expression)) > shape.nesting) return undefined;
  return acceptable(expression, shape.limit, shape.negative && !story) ? problem : undefined;
}

/** How deep the parentheses of an expression go. */
function nestingOf(expression: string): number {
  let depth = 0;
  let deepest = 0;
  for (const character of expression) {
    if (character === '(') deepest = Math.max(deepest, ++depth);
    if (character === ')') depth--;
  }
  return deepest;
}

function told(expression: Operation, story: boolean, random: RandomStream): Problem {
  const text = story ? tellStory(expression, random) : undefined;
  return { prompt: text ?? printExpression(expression), expression, told: text !== undefined };
}

/** Results stay in bounds, and no call comes twice (a second one would look like a needless repetition). */
function acceptable(expression: Operation, limit: number, negative: boolean): boolean {
  const seen = new Set<string>();
  return steps(expression).every(({ operation, result }) => {
    const call = printExpression(operation);
    const fresh = !seen.has(call);
    seen.add(call);
    const magnitude = result < 0n ? -result : result;
    return fresh && magnitude <= BigInt(limit) && (negative || result >= 0n);
  });
}

function chain(shape: Level, count: number, random: RandomStream): Expression {
  let expression: Expression = BigInt(random.int(1, shape.operand));
  for (let i = 0; i < count; i++) {
    const fitting = fittingAt(i, count);
    const operators = shape.operators.filter((operator) => fitting.includes(operator));
    expression = combine(shape, operators, expression, BigInt(random.int(1, shape.operand)), random);
  }
  return expression;
}

/** A story has times first or last, a division last. */
const fittingAt = (i: number, count: number): Operator[] =>
  i === count - 1 ? ['+', '-', '*', '/'] : i === 0 ? ['+', '-', '*'] : ['+', '-'];

function tree(shape: Level, count: number, random: RandomStream): Expression {
  if (count === 0) return BigInt(random.int(1, shape.operand));
  const onTheLeft = random.int(0, count - 1);
  const left = tree(shape, onTheLeft, random);
  const right = tree(shape, count - 1 - onTheLeft, random);
  return combine(shape, shape.operators, left, right, random);
}

/** Joins two expressions; a number on one side may be drawn again, to be a small factor or an exact divisor. */
function combine(
  shape: Level,
  operators: readonly Operator[],
  left: Expression,
  right: Expression,
  random: RandomStream,
): Operation {
  const operator = random.pick(operators);
  if (operator === '*') {
    const factor = BigInt(random.int(2, shape.factor));
    if (typeof right === 'bigint') return { operator, left, right: factor };
    if (typeof left === 'bigint') return { operator, left: factor, right };
    return { operator: '+', left, right };
  }
  if (operator === '/') {
    const divisors = typeof right === 'bigint' ? divisorsOf(left, shape.factor) : [];
    return divisors.length > 0
      ? { operator, left, right: random.pick(divisors) }
      : { operator: '+', left, right };
  }
  return { operator, left, right };
}

function divisorsOf(expression: Expression, largest: number): bigint[] {
  const value = evaluateExpression(expression);
  const divisors: bigint[] = [];
  for (let divisor = 2n; divisor <= BigInt(largest); divisor++) {
    if (value !== 0n && value % divisor === 0n) divisors.push(divisor);
  }
  return divisors;
}

/** Every expression of one operation with this operator that the level allows and the split has. */
function singleOperations(level: Level, operator: Operator, split: Split): string[] {
  const found: string[] = [];
  for (let left = 1; left <= level.operand; left++) {
    for (let right = 1; right <= level.operand; right++) {
      const expression = `${left}${operator}${right}`;
      if (isSingle(level, { operator, left, right }) && splitOf(expression) === split) found.push(expression);
    }
  }
  return found;
}

function isSingle(
  { operand, factor, negative }: Level,
  { operator, left, right }: { operator: Operator; left: number; right: number },
): boolean {
  if (Math.min(left, right) < 1 || Math.max(left, right) > operand) return false;
  if (operator === '+') return true;
  if (operator === '-') return negative || left >= right;
  if (operator === '*') return right > 1 && left > 1 && (right <= factor || left <= factor);
  return right > 1 && right <= factor && left % right === 0;
}

/** Whether a problem at (split, level) can be this expression, as it is written. */
export function mayBeAsked(split: Split, level: number, expression: Operation): boolean {
  const shape = LEVELS.find((one) => one.level === level);
  if (shape === undefined || splitOf(printExpression(expression)) !== split) return false;
  return mayBe(shape, expression);
}

/** The same of any split. */
function mayBe(shape: Level, expression: Operation): boolean {
  const [fewest, most] = shape.operations;
  const count = operationsOf(expression).length;
  if (count < fewest || count > most) return false;
  if (shape.level === 1)
    return shape.operators.includes(expression.operator) && isSingle(shape, inNumbers(expression));
  return (
    (shape.asWritten ? isChain(shape, expression) : isTree(shape, expression)) &&
    nestingOf(printExpression(expression)) <= shape.nesting &&
    acceptable(expression, shape.limit, shape.negative)
  );
}

/** Those within it, and itself last. */
const operationsOf = (expression: Expression): Operation[] =>
  typeof expression === 'bigint'
    ? []
    : [...operationsOf(expression.left), ...operationsOf(expression.right), expression];

const inNumbers = ({ operator, left, right }: Operation) => ({
  operator,
  left: Number(left),
  right: Number(right),
});

/** What `chain` may draw. */
function isChain(shape: Level, expression: Operation): boolean {
  const links = operationsOf(expression);
  return (
    links.every(({ operator, left, right }, i) => {
      const fitting = fittingAt(i, links.length);
      const isNext = i === 0 ? typeof left === 'bigint' : left === links[i - 1];
      return isNext && typeof right === 'bigint' && fitting.includes(operator);
    }) && isTree(shape, expression)
  );
}

/** What `tree` may draw. */
function isTree(shape: Level, expression: Expression): boolean {
  if (typeof expression === 'bigint') return expression >= 1n && expression <= BigInt(shape.operand);
  const { operator, left, right } = expression;
  const isFactor = (side: Expression) =>
    typeof side === 'bigint' && side >= 2n && side <= BigInt(shape.factor);
  if (!shape.operators.includes(operator) || !isTree(shape, left) || !isTree(shape, right)) return false;
  if (operator === '*') return isFactor(typeof right === 'bigint' ? right : left);
  return operator !== '/' || (isFactor(right) && evaluateExpression(left) !== 0n);
}
