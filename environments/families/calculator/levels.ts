import type { Operator } from './expression.ts';

/** What problems of one level are made of. */
export interface Level {
  level: number;
  /** Fewest and most operations. */
  operations: readonly [number, number];
  operators: readonly Operator[];
  /** Operations come in the order in which they are written: neither precedence nor parentheses change it. */
  asWritten: boolean;
  /** How deep parentheses may go. */
  nesting: number;
  /** Operands are 1 to this, factors and divisors 2 to `factor`. */
  operand: number;
  factor: number;
  /** Largest magnitude of a result on the way. */
  limit: number;
  /** Whether a result on the way may be below zero (never in a story). */
  negative: boolean;
  /** Part of the problems that are told as a story. */
  stories: number;
  /** Whether the expert writes down what is left to do after each call. */
  thinks: boolean;
}

const small = {
  asWritten: true,
  nesting: 0,
  operators: ['+', '-', '*'],
  operand: 99,
  factor: 12,
  limit: 9_999,
  negative: false,
  stories: 0.5,
  thinks: false,
} as const;
const large = {
  asWritten: false,
  operators: ['+', '-', '*', '/'],
  operand: 999,
  factor: 99,
  limit: 999_999,
  negative: true,
  stories: 0.2,
  thinks: true,
} as const;

export const LEVELS: readonly Level[] = [
  { level: 1, operations: [1, 1], ...small },
  { level: 2, operations: [2, 2], ...small },
  { level: 3, operations: [3, 3], ...small },
  { level: 4, operations: [4, 4], nesting: 1, ...large },
  { level: 5, operations: [5, 6], nesting: 2, ...large },
];
