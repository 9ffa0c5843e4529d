import jsep from 'jsep';
import { ToolRefusal } from '../../contract/environment.ts';

export const OPERATORS = ['+', '-', '*', '/'] as const;
export type Operator = (typeof OPERATORS)[number];

/** A whole number, or an operation on two expressions. */
export type Expression = bigint | Operation;
export interface Operation {
  operator: Operator;
  left: Expression;
  right: Expression;
}

/** Largest magnitude of an operand and of a result. */
const NUMBER_LIMIT = 10n ** 15n;
const TEXT_LIMIT = 100;

const PRECEDENCE: Record<Operator, number> = { '+': 1, '-': 1, '*': 2, '/': 2 };
const isOperator = (text: string): text is Operator => Object.hasOwn(PRECEDENCE, text);

/** Whole numbers, + - * /, unary minus and parentheses. Throws ToolRefusal, in words for the policy. */
export function parseExpression(text: string): Expression {
  if (text.length > TEXT_LIMIT) throw new ToolRefusal('too long: one operation at a time, like 12+7');
  let tree: jsep.Expression;
  try {
    tree = jsep(text);
  } catch {
    throw new ToolRefusal('cannot read it: write two numbers, like 12+7');
  }
  return fromTree(tree as jsep.CoreExpression);
}

function fromTree(tree: jsep.CoreExpression): Expression {
  switch (tree.type) {
    case 'Literal': {
      if (!/^\d+$/.test(tree.raw)) throw new ToolRefusal('whole numbers only, like 12+7');
      return within(BigInt(tree.raw));
    }
    case 'UnaryExpression': {
      const argument = fromTree(tree.argument as jsep.CoreExpression);
      if (tree.operator !== '-' || typeof argument !== 'bigint') break;
      return -argument;
    }
    case 'BinaryExpression': {
      if (!isOperator(tree.operator)) break;
      return {
        operator: tree.operator,
        left: fromTree(tree.left as jsep.CoreExpression),
        right: fromTree(tree.right as jsep.CoreExpression),
      };
    }
    default:
  }
  throw new ToolRefusal('only + - * / and two numbers, like 12+7');
}

/** With the parentheses that `parseExpression` needs to read the same tree back, and no others. */
export function printExpression(expression: Expression): string {
  if (typeof expression === 'bigint') return String(expression);
  const { operator, left, right } = expression;
  const own = PRECEDENCE[operator];
  const side = (part: Expression, bare: boolean) =>
    bare ? printExpression(part) : `(${printExpression(part)})`;
  const leftBare = typeof left === 'bigint' || PRECEDENCE[left.operator] >= own;
  const rightBare = typeof right === 'bigint' || PRECEDENCE[right.operator] > own;
  return side(left, leftBare) + operator + side(right, rightBare);
}

/** Exact. Throws ToolRefusal for a division that is not, and for a result beyond NUMBER_LIMIT. */
export function applyOperator(operator: Operator, left: bigint, right: bigint): bigint {
  if (operator === '+') return within(left + right);
  if (operator === '-') return within(left - right);
  if (operator === '*') return within(left * right);
  if (right === 0n) throw new ToolRefusal('division by zero');
  if (left % right !== 0n) throw new ToolRefusal(`${left}/${right} is not a whole number`);
  return left / right;
}

export function evaluateExpression(expression: Expression): bigint {
  if (typeof expression === 'bigint') return expression;
  return applyOperator(
    expression.operator,
    evaluateExpression(expression.left),
    evaluateExpression(expression.right),
  );
}

export interface Step {
  /** The operation to do now, on two numbers. */
  operation: { operator: Operator; left: bigint; right: bigint };
  result: bigint;
  /** What is left to do, the result in the operation's place. */
  remaining: Expression;
}

/** The leftmost operation whose operands are both numbers, done; undefined when nothing is left to do. */
function nextStep(expression: Expression): Step | undefined {
  if (typeof expression === 'bigint') return undefined;
  const { operator, left, right } = expression;
  const inLeft = nextStep(left);
  if (inLeft !== undefined) return { ...inLeft, remaining: { operator, left: inLeft.remaining, right } };
  const inRight = nextStep(right);
  if (inRight !== undefined) return { ...inRight, remaining: { operator, left, right: inRight.remaining } };
  const operands = { operator, left: left as bigint, right: right as bigint };
  const result = applyOperator(operator, operands.left, operands.right);
  return { operation: operands, result, remaining: result };
}

export function steps(expression: Expression): Step[] {
  const all: Step[] = [];
  for (let step = nextStep(expression); step !== undefined; step = nextStep(step.remaining)) all.push(step);
  return all;
}

/** Every expression whose `steps` are these operations, in this order: such as 12+7 and 19*3 of (12+7)*3. */
export function expressionsOf(operations: readonly Operation[]): Operation[] {
  const [last, ...before] = operations.toReversed();
  let found = last ? [last] : [];
  for (const operation of before) {
    const result = evaluateExpression(operation);
    const text = printExpression(operation);
    found = found.flatMap((expression) =>
      [...unfolded(expression, result, operation)].filter((one) => {
        const first = nextStep(one)!;
        return printExpression(first.operation) === text && isSame(first.remaining, expression);
      }),
    );
  }
  return found;
}

/** `expression` with `operation` where it has the number `result`, at each such place. */
function* unfolded(
  { operator, left, right }: Operation,
  result: bigint,
  operation: Operation,
): Generator<Operation> {
  for (const other of unfoldedSide(left, result, operation)) yield { operator, left: other, right };
  for (const other of unfoldedSide(right, result, operation)) yield { operator, left, right: other };
}

const unfoldedSide = (side: Expression, result: bigint, operation: Operation): Iterable<Operation> =>
  typeof side !== 'bigint' ? unfolded(side, result, operation) : side === result ? [operation] : [];

const isSame = (one: Expression, other: Expression): boolean =>
  printExpression(one) === printExpression(other);

function within(value: bigint): bigint {
  if (value > NUMBER_LIMIT || value < -NUMBER_LIMIT) throw new ToolRefusal('number too large');
  return value;
}
