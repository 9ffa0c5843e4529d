import { RandomStream } from '../../../core/random.ts';
import type { Split } from '../../../core/refs.ts';
import { splitOfProblem } from '../../contract/generated-tasks.ts';

/** A problem, a program that prints its answer, and the answer as it was computed here, without Python. */
export interface Problem {
  text: string;
  code: string;
  answer: bigint;
}

type Kind = (random: RandomStream) => Problem;

const big = (n: number): bigint => BigInt(n);

/** k from `a` to `b`, both included. */
const range = (a: number, b: number): bigint[] => Array.from({ length: b - a + 1 }, (_, i) => big(a + i));
const sum = (values: readonly bigint[]): bigint => values.reduce((total, value) => total + value, 0n);
const digitSum = (n: bigint): bigint => sum(Array.from(n.toString(), (digit) => BigInt(digit)));
const gcd = (a: bigint, b: bigint): bigint => (b === 0n ? a : gcd(b, a % b));

const asked = (text: string, random: RandomStream): string =>
  random.pick([`What is ${text}?`, `Compute ${text}.`, `Find ${text}.`]);

/** What is summed: as it is said, as Python writes it, and its value. */
const TERMS: readonly ((random: RandomStream) => { said: string; of: (k: bigint) => bigint })[] = [
  () => ({ said: 'k', of: (k) => k }),
  () => ({ said: 'k*k', of: (k) => k * k }),
  () => ({ said: 'k*k*k', of: (k) => k * k * k }),
  (random) => {
    const factor = random.int(2, 9);
    return { said: `${factor}*k`, of: (k) => big(factor) * k };
  },
  (random) => {
    const added = random.int(1, 9);
    return { said: `k*k+${added}`, of: (k) => k * k + big(added) };
  },
];

const drawRange = (random: RandomStream): [number, number] => {
  const from = random.int(1, 40);
  return [from, from + random.int(5, 59)];
};

const expression: Kind = (random) => {
  const [a, b, c] = [random.int(11, 99), random.int(11, 99), random.int(2, 99)];
  const [written, answer] = random.pick([
    [`${a}*${b}+${c}`, big(a) * big(b) + big(c)],
    [`${a}*${b}-${c}`, big(a) * big(b) - big(c)],
    [`(${a}+${b})*${c}`, (big(a) + big(b)) * big(c)],
    [`${a}*${b}*${c}`, big(a) * big(b) * big(c)],
  ] as const);
  return { text: asked(written, random), code: `print(${written})`, answer };
};

const series: Kind = (random) => {
  const [from, to] = drawRange(random);
  const { said, of } = random.pick(TERMS)(random);
  return {
    text: asked(`the sum of ${said} for k from ${from} to ${to}`, random),
    code: `print(sum(${said} for k in range(${from},${to}+1)))`,
    answer: sum(range(from, to).map(of)),
  };
};

/** The last digits that squares have. */
const SQUARE_ENDS = [0, 1, 4, 5, 6, 9] as const;

const count: Kind = (random) => {
  const [from, to] = drawRange(random);
  const divisor = random.int(3, 12);
  const rest = random.int(0, divisor - 1);
  const end = SQUARE_ENDS[rest % SQUARE_ENDS.length]!;
  const [said, test, holds] = random.pick([
    [`are divisible by ${divisor}`, `k%${divisor}==0`, (k: bigint) => k % big(divisor) === 0n],
    [
      `leave ${rest} when divided by ${divisor}`,
      `k%${divisor}==${rest}`,
      (k: bigint) => k % big(divisor) === big(rest),
    ],
    [`have a square that ends in ${end}`, `k*k%10==${end}`, (k: bigint) => (k * k) % 10n === big(end)],
  ] as const);
  return {
    text: `How many k from ${from} to ${to} ${said}?`,
    code: `print(sum(${test} for k in range(${from},${to}+1)))`,
    answer: big(range(from, to).filter(holds).length),
  };
};

const powers: Kind = (random) => {
  const [base, exponent, modulus] = [random.int(2, 99), random.int(20, 400), random.int(11, 9_999)];
  return random.pick([
    () => ({
      text: `What is the remainder of ${base}^${exponent} divided by ${modulus}?`,
      code: `print(pow(${base},${exponent},${modulus}))`,
      answer: big(base) ** big(exponent) % big(modulus),
    }),
    () => ({
      text: `What is the sum of the digits of ${base}^${exponent}?`,
      code: `print(sum(int(d) for d in str(${base}**${exponent})))`,
      answer: digitSum(big(base) ** big(exponent)),
    }),
  ])();
};

const divisors: Kind = (random) => {
  const [a, b, common] = [random.int(100, 9_999), random.int(100, 9_999), random.int(2, 60)];
  const [x, y] = [a * common, b * common];
  return random.pick([
    () => ({
      text: `What is the greatest common divisor of ${x} and ${y}?`,
      code: `import math\nprint(math.gcd(${x},${y}))`,
      answer: gcd(big(x), big(y)),
    }),
    () => ({
      text: `What is the least common multiple of ${a} and ${b}?`,
      code: `import math\nprint(math.lcm(${a},${b}))`,
      answer: (big(a) * big(b)) / gcd(big(a), big(b)),
    }),
    () => ({
      text: `How many positive divisors has ${a}?`,
      code: `print(sum(${a}%k==0 for k in range(1,${a}+1)))`,
      answer: big(range(1, a).filter((k) => big(a) % k === 0n).length),
    }),
  ])();
};

/** The sum of one problem goes into another. */
const chained: Kind = (random) => {
  const [from, to] = drawRange(random);
  const { said, of } = random.pick(TERMS)(random);
  const [exponent, modulus] = [random.int(2, 60), random.int(101, 99_999)];
  const s = sum(range(from, to).map(of));
  const first = `s=sum(${said} for k in range(${from},${to}+1))`;
  return random.pick([
    {
      text: `Let s be the sum of ${said} for k from ${from} to ${to}. What is the remainder of s^${exponent} divided by ${modulus}?`,
      code: `${first}\nprint(pow(s,${exponent},${modulus}))`,
      answer: s ** big(exponent) % big(modulus),
    },
    {
      text: `Let s be the sum of ${said} for k from ${from} to ${to}. What is the sum of the digits of s^${exponent}?`,
      code: `${first}\nprint(sum(int(d) for d in str(s**${exponent})))`,
      answer: digitSum(s ** big(exponent)),
    },
  ]);
};

/** Kinds of each level, easiest level first. */
const KINDS: readonly (readonly Kind[])[] = [
  [expression],
  [expression, series],
  [series, count],
  [powers, divisors],
  [chained],
];

export const LEVELS: readonly number[] = KINDS.map((_, i) => i + 1);

/** The problem at (split, level, index). The program tells which split it is of, so words do not carry it over. */
export function problemAt(split: Split, level: number, index: number): Problem {
  const random = new RandomStream('tool-math', 'problem', split, level, index);
  for (;;) {
    const problem = random.pick(KINDS[level - 1]!)(random);
    if (splitOfProblem('tool-math', problem.code) === split) return problem;
  }
}
