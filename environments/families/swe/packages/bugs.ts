import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { GradusError } from '../../../../core/errors.ts';
import { randomKey, uniform } from '../../../../core/random.ts';
import type { Split, TaskRef } from '../../../../core/refs.ts';
import type { Bug } from '../bug.ts';
import { patchBetween } from '../patch.ts';
import { isTestFile, packageCalled } from './packages.ts';
import { preparedPackage } from './prepared.ts';

/** A token exchanged for another in a file of a package: coordinates, and no text of the package but the token. */
export interface Mutation {
  package: string;
  file: string;
  /** Of the whole file. */
  lines: number;
  /** With the names of the classes around it. */
  function: string;
  /** From 1. */
  line: number;
  /** From 0. */
  column: number;
  old: string;
  new: string;
  /** The tests that fail because of it, by `testKey`. */
  fails: readonly string[];
}

/** A test by six letters of its digest: it names no text of the package, and no two of one package have the same. */
export const testKey = (test: string): string =>
  createHash('sha256').update(test).digest('base64url').slice(0, 6);

/** `npm run swe:bugs` writes it (make-bugs.ts): a bug a line, tabs between. */
export const INDEX = path.join(import.meta.dirname, 'bugs.tsv');
const written = readFileSync(INDEX, 'utf8');

export const writtenMutation = (bug: Mutation): string =>
  [
    bug.package,
    bug.file,
    bug.lines,
    bug.function,
    bug.line,
    bug.column,
    bug.old,
    bug.new,
    bug.fails.join(' '),
  ].join('\t');

function readMutation(text: string): Mutation {
  const [name, file, lines, around, line, column, old, put, fails] = text.split('\t');
  return {
    package: name!,
    file: file!,
    lines: Number(lines),
    function: around!,
    line: Number(line),
    column: Number(column),
    old: old!,
    new: put!,
    fails: fails!.split(' '),
  };
}

const MUTATIONS = written
  .split('\n')
  .filter((line) => line !== '')
  .map(readMutation);

/** How a patch is judged (judge.ts). */
const JUDGED = '4';

/** Changes with the bugs, with the packages that they are in, and with the judge. */
export const BUGS_VERSION = createHash('sha256')
  .update(JUDGED)
  .update(written)
  .update(readFileSync(path.join(import.meta.dirname, 'sdists.txt')))
  .digest('hex')
  .slice(0, 16);

/** A file of more lines is long: it is not seen at once, and is most of what a context can hold. */
const LONG_FILE = 500;
/** Tests that see a bug from several sides tell more about it. */
const SEVERAL_TESTS = 3;

export const LEVELS = [1, 2, 3];

/** By how much there is to read, and how much the tests tell. */
const levelOf = ({ lines, fails }: Mutation): number =>
  lines <= LONG_FILE ? 1 : fails.length >= SEVERAL_TESTS ? 2 : 3;

const SHARES: Record<Split, readonly [number, number]> = {
  train: [0, 0.5],
  heldout: [0.5, 0.75],
  test: [0.75, 1],
};

/** All bugs of a function are in one split: to have mended it once is no help in another. */
const isIn = (split: Split, { package: name, file, function: around }: Mutation): boolean => {
  const draw = uniform(randomKey('swe', 'split', name, file, around), 0);
  return draw >= SHARES[split][0] && draw < SHARES[split][1];
};

const lists = new Map<string, readonly Mutation[]>();

/** The bugs of a split and level, in an order of their own, so that the packages take turns. */
export function mutationsOf(split: Split, level: number): readonly Mutation[] {
  const key = `${split} ${level}`;
  const known = lists.get(key);
  if (known !== undefined) return known;
  const order = (bug: Mutation): number =>
    uniform(randomKey('swe', 'order', bug.package, bug.file, bug.line, bug.column), 0);
  const found = MUTATIONS.filter((bug) => levelOf(bug) === level && isIn(split, bug)).toSorted(
    (a, b) => order(a) - order(b),
  );
  lists.set(key, found);
  return found;
}

export interface PackageBug extends Bug {
  package: string;
}

/**
 * The bug at (split, level, index).
 * Throws GradusError('environment', 'task') where there is none, and 'swe-not-set-up' as `preparedPackage` does.
 */
export function packageBug({ split, level, index }: TaskRef): PackageBug {
  const mutation = mutationsOf(split, level)[index];
  if (mutation === undefined) {
    throw new GradusError('environment', 'task', `swe has no bug ${index} in ${split} at level ${level}`);
  }
  return bugOf(mutation);
}

const bugs = new WeakMap<Mutation, PackageBug>();

function bugOf(mutation: Mutation): PackageBug {
  const known = bugs.get(mutation);
  if (known !== undefined) return known;
  const shape = packageCalled(mutation.package);
  const { tree: sound, tests, apart, canaries } = preparedPackage(mutation.package);
  const tree = new Map([...sound, [mutation.file, mutated(sound.get(mutation.file)!, mutation)]]);
  const fails = new Set(mutation.fails);
  const failToPass = tests.filter((test) => fails.has(testKey(test)));
  if (failToPass.length === 0) {
    throw new GradusError(
      'environment',
      'swe-tests',
      `no test of ${mutation.package} that runs with this machine's Python fails for the bug in ${mutation.file}:${mutation.line}`,
    );
  }
  if (!failToPass.some((test) => apart.includes(test))) {
    throw new GradusError(
      'environment',
      'swe-tests',
      `no test that fails for the bug in ${mutation.file}:${mutation.line} of ${mutation.package} runs apart from it with this machine's Python`,
    );
  }
  // A patch has to pass these by mending: so these files tell whether something else decides what they say.
  const files = new Set(failToPass.map(fileOfTest));
  const bug: PackageBug = {
    package: mutation.package,
    tree,
    mend: patchBetween(tree, sound),
    sourceRoots: shape.sourceRoots,
    sources: shape.sources,
    tests: shape.tests,
    style: 'pytest',
    cpuSeconds: shape.cpuSeconds,
    testFiles: [...sound.keys()].filter((file) => isTestFile(shape, file)),
    failToPass,
    passToPass: tests.filter((test) => !fails.has(testKey(test))),
    apart,
    canaries: canaries.filter((test) => files.has(fileOfTest(test))),
  };
  bugs.set(mutation, bug);
  return bug;
}

const fileOfTest = (test: string): string => test.slice(0, test.indexOf('::'));

/** `source` with the token exchanged. Throws GradusError('environment', 'swe-mutation') where another one stands. */
export function mutated(
  source: string,
  { file, line, column, old, new: put }: Pick<Mutation, 'file' | 'line' | 'column' | 'old' | 'new'>,
): string {
  const lines = source.split('\n');
  const text = lines[line - 1] ?? '';
  if (!text.startsWith(old, column)) {
    throw new GradusError('environment', 'swe-mutation', `${file}:${line} has no ${old} at ${column}`);
  }
  lines[line - 1] = text.slice(0, column) + put + text.slice(column + old.length);
  return lines.join('\n');
}
