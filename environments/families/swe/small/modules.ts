import { RandomStream } from '../../../../core/random.ts';
import type { Split } from '../../../../core/refs.ts';
import { splitOfProblem } from '../../../contract/generated-tasks.ts';
import type { Bug } from '../bug.ts';
import { patchBetween } from '../patch.ts';

// Modules of one to four functions of one line, each with its meaning beside it or in its tests, and a bug of one token.

/** What a small module is made of. */
export interface SmallLevel {
  level: number;
  functions: readonly [number, number];
  /** Whether each function says what it does; where it does not, only the tests know. */
  documented: boolean;
  /** A body is two arguments and a sign, and the sign is what is wrong. Elsewhere there are constants, and orders too. */
  signsOnly: boolean;
}

export const SMALL_LEVELS: readonly SmallLevel[] = [
  { level: 1, functions: [1, 1], documented: true, signsOnly: true },
  { level: 2, functions: [2, 2], documented: true, signsOnly: true },
  { level: 3, functions: [2, 3], documented: true, signsOnly: false },
  { level: 4, functions: [1, 1], documented: false, signsOnly: false },
  { level: 5, functions: [2, 4], documented: false, signsOnly: false },
];

interface Operator {
  sign: string;
  words: string;
  of: (a: number, b: number) => number | boolean;
}

const OPERATORS: readonly Operator[] = [
  { sign: '+', words: 'plus', of: (a, b) => a + b },
  { sign: '-', words: 'minus', of: (a, b) => a - b },
  { sign: '*', words: 'times', of: (a, b) => a * b },
  { sign: '<', words: 'below', of: (a, b) => a < b },
  { sign: '>', words: 'above', of: (a, b) => a > b },
  { sign: '==', words: 'equals', of: (a, b) => a === b },
];

const NAMES =
  'add aim ask bid cap cut dab dig fit fix gap get hop jot key lap lot map mix nod pad pat pin rig rub sum tag tie tip win'.split(
    ' ',
  );
const LETTERS = 'abcdefghkmnpqrstuvwxyz'.split('');

interface Line {
  name: string;
  /** Names of the arguments, in their order. */
  given: readonly [string, string];
  /** Which of them stands left. */
  turned: boolean;
  operator: Operator;
  /** Added at the end; 0 is not written. */
  constant: number;
}

/** A function with the same name and arguments whose body says something else. */
type Broken = { sign: string } | { constant: number } | { turned: true };

export interface SmallBug extends Bug {
  /** What is wrong, as it stands once in the module, and as it should be: the sign where that suffices, else the body. */
  wrong: string;
  right: string;
  /** Bodies of the function that is wrong. */
  line: { name: string; wrong: string; right: string };
  /** The call that shows it: what it should give, and what it gives. */
  shown: { call: string; want: string };
}

/** The bug at (split, level, index). What is in one split is in no other: it is told by the broken line and its mend. */
export function smallBug(shape: SmallLevel, split: Split, index: number): SmallBug {
  const random = new RandomStream('swe-small', 'bug', split, shape.level, index);
  for (;;) {
    const names = random.shuffle([...NAMES]).slice(0, random.int(...shape.functions));
    const lines = names.map((name) => lineOf(name, shape, random));
    const at = random.int(0, lines.length - 1);
    const broken = brokenOf(lines[at]!, shape, random);
    const drawn = (patch: string) => new RandomStream('swe-small', 'drawn', split, shape.level, index, patch);
    const bug = bugOf(shape, lines, at, broken, random, drawn);
    if (bug === undefined) continue;
    const { name, wrong, right } = bug.line;
    if (splitOfProblem('swe-small', `${name}: ${wrong} → ${right}`) === split) return bug;
  }
}

function lineOf(name: string, { signsOnly }: SmallLevel, random: RandomStream): Line {
  const [first, second] = random.shuffle([...LETTERS]) as [string, string];
  const operator = random.pick(OPERATORS);
  const takesConstant = typeof operator.of(1, 1) === 'number';
  return {
    name,
    given: [first, second],
    turned: random.uniform() < 0.3,
    operator,
    constant: !signsOnly && takesConstant && random.uniform() < 0.4 ? random.int(1, 9) : 0,
  };
}

function brokenOf(line: Line, { signsOnly }: SmallLevel, random: RandomStream): Broken {
  const draw = random.uniform();
  if (line.constant > 0 && draw < 0.4) return { constant: line.constant === 9 ? 8 : line.constant + 1 };
  if (!signsOnly && '-<>'.includes(line.operator.sign) && draw < 0.6) return { turned: true };
  const others = OPERATORS.filter(
    ({ sign, of }) => sign !== line.operator.sign && typeof of(1, 1) === typeof line.operator.of(1, 1),
  );
  return { sign: random.pick(others).sign };
}

function bugOf(
  shape: SmallLevel,
  lines: readonly Line[],
  at: number,
  broken: Broken,
  random: RandomStream,
  drawn: (patch: string) => RandomStream,
): SmallBug | undefined {
  const good = lines[at]!;
  const bad = brokenLine(good, broken);
  const tests = lines.map((line) => casesOf(line, random));
  const differing = tests[at]!.filter(([a, b]) => resultOf(good, a, b) !== resultOf(bad, a, b));
  if (differing.length === 0 || body(good) === body(bad)) return undefined;
  const module = (all: readonly Line[]): string =>
    all.map((line, i) => written(line, lines[i]!, shape.documented)).join('');
  const test = testFile(lines, tests);
  const wrongModule = module(lines.map((line, i) => (i === at ? bad : line)));
  const tree = new Map([
    ['m.py', wrongModule],
    ['test_m.py', test],
  ]);
  const [wrongBody, rightBody] = [body(bad), body(good)];
  // It has to be told from the rest of the file by its letters.
  const once = (text: string): boolean => wrongModule.split(text).length === 2;
  if (!once(wrongBody)) return undefined;
  const [wrong, right] =
    'sign' in broken && once(bad.operator.sign)
      ? [bad.operator.sign, good.operator.sign]
      : [wrongBody, rightBody];
  const names = lines.map(({ name }) => `test_m.py::test_${name}`);
  const [[a, b]] = differing as [[number, number]];
  return {
    tree,
    mend: patchBetween(tree, new Map([...tree, ['m.py', module(lines)]])),
    sourceRoots: [''],
    sources: ['m.py'],
    tests: [],
    style: 'plain',
    cpuSeconds: 2,
    testFiles: ['test_m.py'],
    failToPass: [names[at]!],
    passToPass: names.filter((_, i) => i !== at),
    apart: names,
    canaries: [],
    drawn: (patch) => {
      const further = drawn(patch);
      return new Map([
        [
          'test_m.py',
          testFile(
            lines,
            lines.map((line, i) => [...tests[i]!, ...furtherCases(line, further)]),
          ),
        ],
      ]);
    },
    wrong,
    right,
    line: { name: good.name, wrong: wrongBody, right: rightBody },
    shown: { call: `${good.name}(${a}, ${b})`, want: literal(resultOf(good, a, b)) },
  };
}

/** A test of each function, with its cases. */
function testFile(lines: readonly Line[], cases: readonly (readonly [number, number][])[]): string {
  const tests = lines.map((line, i) => {
    const asserts = cases[i]!.map(
      ([a, b]) => `    assert ${line.name}(${a}, ${b}) == ${literal(resultOf(line, a, b))}\n`,
    );
    return `def test_${line.name}():\n${asserts.join('')}`;
  });
  return `from m import ${lines.map(({ name }) => name).join(', ')}\n\n${tests.join('\n')}`;
}

/** Rounds of cases that a patch is asked besides those that it could read. */
const FURTHER_ROUNDS = 4;
const LARGEST_ASKED = 999;

/** Cases of the same kind, and of larger numbers: equal ones among them, for what compares. */
function furtherCases(line: Line, random: RandomStream): [number, number][] {
  return Array.from({ length: FURTHER_ROUNDS }, () => {
    const one = (): number => random.int(0, LARGEST_ASKED);
    const equal = one();
    return [...casesOf(line, random), [one(), one()], [equal, equal]] as [number, number][];
  }).flat();
}

function brokenLine(line: Line, broken: Broken): Line {
  if ('constant' in broken) return { ...line, constant: broken.constant };
  if ('turned' in broken) return { ...line, turned: !line.turned };
  return { ...line, operator: OPERATORS.find(({ sign }) => sign === broken.sign)! };
}

/** What a body without a constant may come to, the sign of a comparison apart. */
const SUMS: readonly ((a: number, b: number) => number)[] = [
  () => 0,
  (a) => a,
  (_, b) => b,
  (a, b) => a + b,
  (a, b) => a - b,
  (a, b) => b - a,
  (a, b) => a * b,
];

/**
 * Two pairs of small numbers, and a third where they are compared. From the first to the second each sum changes by an amount
 * of its own, so that no constant, and no other sum with a constant, is what both expect.
 */
function casesOf(line: Line, random: RandomStream): [number, number][] {
  const first: [number, number] = [random.int(5, 9), random.int(2, 4)];
  const equal = random.int(2, 9);
  for (;;) {
    const low = random.int(2, 8);
    const second: [number, number] = [low, random.int(low + 1, 9)];
    const changes = new Set(SUMS.map((sum) => sum(...second) - sum(...first)));
    if (changes.size < SUMS.length) continue;
    return '<>='.includes(line.operator.sign[0]!) ? [first, second, [equal, equal]] : [first, second];
  }
}

function resultOf({ operator, turned, constant }: Line, a: number, b: number): number | boolean {
  const result = turned ? operator.of(b, a) : operator.of(a, b);
  return typeof result === 'number' ? result + constant : result;
}

const literal = (value: number | boolean): string =>
  typeof value === 'number' ? String(value) : value ? 'True' : 'False';

const operands = ({ given: [a, b], turned }: Line): [string, string] => (turned ? [b, a] : [a, b]);

function body(line: Line): string {
  const [left, right] = operands(line);
  return `${left} ${line.operator.sign} ${right}${line.constant > 0 ? ` + ${line.constant}` : ''}`;
}

/** The function as it is, with the meaning that it should have. */
function written(line: Line, meant: Line, documented: boolean): string {
  const [left, right] = operands(meant);
  const meaning = `${left} ${meant.operator.words} ${right}${meant.constant > 0 ? ` plus ${meant.constant}` : ''}`;
  return `def ${line.name}(${line.given.join(', ')}):${documented ? ` # ${meaning}` : ''}\n    return ${body(line)}\n`;
}
