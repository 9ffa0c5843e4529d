import { valueOf, writeExpression } from './program.ts';
import type { Expression } from './program.ts';
import type { Kind, ProgramTask } from './tasks.ts';

/** What an expert thinks before the answer: one operation after the other, so that each step is small. */
export function thoughtOf(kind: Kind, { program, inputs }: ProgramTask): string {
  const [x, other] = inputs as [number, number];
  if (kind === 'deduction') return operations(program, x).join(' ');
  if (kind === 'abduction') return undone(program, x).join(' ');
  const [here, there] = [valueOf(program, x), valueOf(program, other)];
  return `${there} - ${here} is ${there - here}.`;
}

/** `-8 + 5 is -3. -3 * 4 is -12.`: of `(x + 5) * 4` for -8. */
function operations(one: Expression, x: number): string[] {
  if (one.kind !== 'operation') return [];
  const { left, right, by } = one;
  const here = `${valueOf(left, x)} ${by} ${valueOf(right, x)} is ${valueOf(one, x)}.`;
  return [...operations(left, x), ...operations(right, x), here];
}

/** `x + 5 is 8. x is 3.`: of `(x + 5) * 4 is 32`, as long as the operation can be undone and one side alone has x. */
function undone(one: Expression, x: number): string[] {
  if (one.kind !== 'operation' || one.by === '%') return [];
  const [inner, other] = [one.left, one.right].filter(hasX);
  if (inner === undefined || other !== undefined) return [];
  return [`${writeExpression(inner)} is ${valueOf(inner, x)}.`, ...undone(inner, x)];
}

const hasX = (one: Expression): boolean =>
  one.kind === 'x' || (one.kind === 'operation' && (hasX(one.left) || hasX(one.right)));
