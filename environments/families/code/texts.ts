import type { RandomStream } from '../../../core/random.ts';
import type { Data } from '../../sandbox/webassembly/function-run.ts';
import { problemOf, type Problem, type Step } from './problem.ts';

// Functions of a text: one thing or two are done to it, and then it is given, or something is said of it.

const LETTERS = 'abcdeilmnorst'.split('');

type Way<Out extends Data | undefined = Data> = readonly [code: string, of: (s: string) => Out];

/** Written behind what is there. */
const step = <Out extends Data>(
  say: string,
  [code, of]: Way<Out>,
  misses: readonly Way<Data | undefined>[],
  marks: readonly string[] = [],
): Step<string, Out> => ({
  say: () => say,
  write: (inner) => inner + code,
  of,
  misses: misses.map(([code, of]) => ({ write: (inner) => inner + code, of })),
  marks,
  keepsKind: typeof of('') === 'string',
});

const reversed = (s: string): string => s.split('').toReversed().join('');
const words = (s: string): string[] => s.split(' ').filter((word) => word !== '');

function change(random: RandomStream): Step<string, string> {
  const [one, other] = random.shuffle([...LETTERS]) as [string, string];
  const k = random.int(2, 5);
  return random.pick([
    step(
      'put it in capitals',
      ['.toUpperCase()', (s) => s.toUpperCase()],
      [['.toLowerCase()', (s) => s.toLowerCase()]],
    ),
    step(
      'write it backwards',
      [".split('').reverse().join('')", reversed],
      [[".split(' ').reverse().join(' ')", (s) => s.split(' ').toReversed().join(' ')]],
    ),
    step(
      `leave out each ${one}`,
      [`.replaceAll('${one}', '')`, (s) => s.replaceAll(one, '')],
      [[`.replace('${one}', '')`, (s) => s.replace(one, '')]],
      [one],
    ),
    step(
      `put ${other} for each ${one}`,
      [`.replaceAll('${one}', '${other}')`, (s) => s.replaceAll(one, other)],
      [
        [`.replace('${one}', '${other}')`, (s) => s.replace(one, other)],
        [`.replaceAll('${other}', '${one}')`, (s) => s.replaceAll(other, one)],
      ],
      [one, other],
    ),
    step(
      `take its first ${k} characters`,
      [`.slice(0, ${k})`, (s) => s.slice(0, k)],
      [
        [`.slice(0, ${k - 1})`, (s) => s.slice(0, k - 1)],
        [`.slice(1, ${k})`, (s) => s.slice(1, k)],
      ],
    ),
    step(
      `take its last ${k} characters`,
      [`.slice(-${k})`, (s) => s.slice(-k)],
      [
        [`.slice(${k})`, (s) => s.slice(k)],
        [`.slice(-${k + 1})`, (s) => s.slice(-k - 1)],
      ],
    ),
    step(
      `leave out its first ${k} characters`,
      [`.slice(${k})`, (s) => s.slice(k)],
      [
        [`.slice(${k - 1})`, (s) => s.slice(k - 1)],
        [`.slice(-${k})`, (s) => s.slice(-k)],
      ],
    ),
    step(
      'put its words in reverse order',
      [".split(' ').reverse().join(' ')", (s) => s.split(' ').toReversed().join(' ')],
      [[".split('').reverse().join('')", reversed]],
      [' '],
    ),
  ]);
}

function said(random: RandomStream): Step<string> {
  const one = random.pick(LETTERS);
  return random.pick([
    step(
      'give how many characters it has',
      ['.length', (s) => s.length],
      [['.length - 1', (s) => s.length - 1]],
    ),
    step(
      `give how often ${one} is in it`,
      [`.split('${one}').length - 1`, (s) => s.split(one).length - 1],
      [
        [`.split('${one}').length`, (s) => s.split(one).length],
        [`.includes('${one}') ? 1 : 0`, (s) => (s.includes(one) ? 1 : 0)],
      ],
      [one],
    ),
    step(
      `say whether it begins with ${one}`,
      [`.startsWith('${one}')`, (s) => s.startsWith(one)],
      [
        [`.includes('${one}')`, (s) => s.includes(one)],
        [`.endsWith('${one}')`, (s) => s.endsWith(one)],
      ],
      [one],
    ),
    step(
      'give how many words it has',
      [".split(' ').filter((w) => w !== '').length", (s) => words(s).length],
      [[".split(' ').length", (s) => s.split(' ').length]],
      [' '],
    ),
    step(
      'give the length of each word',
      [
        ".split(' ').filter((w) => w !== '').map((w) => w.length)",
        (s) => words(s).map(({ length }) => length),
      ],
      [[".split(' ').map((w) => w.length)", (s) => s.split(' ').map(({ length }) => length)]],
      [' '],
    ),
  ]);
}

export const ofAText = (random: RandomStream): Problem => {
  const steps = [change(random), ...(random.uniform() < 0.7 ? [random.pick([change, said])(random)] : [])];
  return problemOf('s', steps);
};

const TEXTS = 160;
const LONGEST = 9;

/** Texts of few letters, in which those that matter are frequent, some with spaces; the empty one among them. */
export function someTexts(marks: readonly (number | string)[], random: RandomStream): string[] {
  const around = marks.filter((mark) => typeof mark === 'string');
  const [letters, spaces] = [around.filter((mark) => mark !== ' '), around.includes(' ') ? 0.3 : 0.05];
  const letter = (): string =>
    random.uniform() < spaces
      ? ' '
      : letters.length > 0 && random.uniform() < 0.45
        ? random.pick(letters)
        : random.pick(LETTERS);
  return [
    '',
    ...Array.from({ length: TEXTS }, () => Array.from({ length: random.int(1, LONGEST) }, letter).join('')),
  ];
}
