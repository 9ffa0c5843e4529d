// Programs that are small enough to be read as a whole: an expression of x, whole numbers, + - * % and brackets. Nothing else
// is JavaScript here, so a program has no names, no text, no loop and no chance in it, whoever writes it.

/** An expression as it is written again, always in the same way. */
export type Expression =
  | { kind: 'x' }
  | { kind: 'number'; value: number }
  | { kind: 'operation'; by: Operator; left: Expression; right: Expression };

type Operator = '+' | '-' | '*' | '%';

/** Largest number that a program may name, and how many operations it may have. */
const MOST = 99;
const OPERATIONS = 4;
/** Longest program that is read, in characters. */
const LONGEST = 60;

const LEVEL_OF: Record<Operator, number> = { '+': 1, '-': 1, '*': 2, '%': 2 };

/** The program that a text is, or why it is none. */
export function readProgram(text: string): Expression | { fault: string } {
  if (text.length > LONGEST) return { fault: `has more than ${LONGEST} characters` };
  const body = /^x => (.*)$/u.exec(text.trim())?.[1];
  if (body === undefined) return { fault: 'does not begin with "x => "' };
  const tokens = body.match(/\d+|[a-zA-Z_$][\w$]*|[^\s]/gu) ?? [];
  const strange = tokens.find((token) => !/^(?:\d{1,2}|x|[-+*%()])$/u.test(token));
  if (strange !== undefined) return { fault: `may not have ${strange.slice(0, 20)} in it` };
  let at = 0;
  const atom = (): Expression | null => {
    const token = tokens[at++];
    if (token === 'x') return { kind: 'x' };
    if (token === '(') {
      const inner = sum();
      return tokens[at++] === ')' ? inner : null;
    }
    return token !== undefined && /^\d+$/u.test(token) ? { kind: 'number', value: Number(token) } : null;
  };
  const chain = (next: () => Expression | null, operators: string) => (): Expression | null => {
    let left = next();
    while (left && tokens[at] !== undefined && operators.includes(tokens[at]!)) {
      const by = tokens[at++] as Operator;
      const right = next();
      left = right && { kind: 'operation', by, left, right };
    }
    return left;
  };
  const sum = chain(chain(atom, '*%'), '+-');
  const read = sum();
  if (read === null || at < tokens.length) return { fault: 'is no expression' };
  if (operationsIn(read) > OPERATIONS) return { fault: `has more than ${OPERATIONS} operations` };
  return read;
}

const operationsIn = (one: Expression): number =>
  one.kind === 'operation' ? 1 + operationsIn(one.left) + operationsIn(one.right) : 0;

/** As it is written, with no bracket more than it needs. */
export const writeProgram = (one: Expression): string => `x => ${writeExpression(one)}`;

export const writeExpression = (one: Expression): string => write(one, (value) => String(value));

/** What it looks like, whichever numbers are in it. */
export const shapeOf = (one: Expression): string => write(one, () => 'k');

function write(one: Expression, number: (value: number) => string): string {
  if (one.kind === 'x') return 'x';
  if (one.kind === 'number') return number(one.value);
  const level = LEVEL_OF[one.by];
  const side = (of: Expression, least: number): string => {
    const text = write(of, number);
    return of.kind === 'operation' && LEVEL_OF[of.by] < least ? `(${text})` : text;
  };
  return `${side(one.left, level)} ${one.by} ${side(one.right, level + 1)}`;
}

/** What it gives for x, as JavaScript does. */
export function valueOf(one: Expression, x: number): number {
  if (one.kind === 'x') return x;
  if (one.kind === 'number') return one.value;
  const [left, right] = [valueOf(one.left, x), valueOf(one.right, x)];
  switch (one.by) {
    case '+':
      return left + right;
    case '-':
      return left - right;
    case '*':
      return left * right;
    default:
      return left % right;
  }
}

export const numbersIn = (one: Expression): number[] =>
  one.kind === 'operation'
    ? [...numbersIn(one.left), ...numbersIn(one.right)]
    : one.kind === 'number'
      ? [one.value]
      : [];

export const isNamed = (value: number): boolean => Number.isInteger(value) && Math.abs(value) <= MOST;
