/**
 * `npm run swe:bugs`: looks for bugs in the packages and writes bugs.tsv. Mutations are tried in an order by chance, but the
 * same each time; kept are those that fail at least one test and at most a fifth of them, one of them also where it is in
 * another sandbox than the package, that the guard lets mend, and of whose tests a canary is known, up to so many a package (packages.ts) and three a function. Half an hour on two cores;
 * nobody needs it who does not change the packages or their pins.
 */
import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { randomKey, uniform } from '../../../../core/random.ts';
import { runApart } from '../apart.ts';
import { runTests } from '../judge.ts';
import { inTurn } from '../../../sandbox/in-turn.ts';
import { withFiles, type Tree } from '../tree.ts';
import { INDEX, mutated, testKey, writtenMutation, type Mutation } from './bugs.ts';
import { isMutated, isTestFile, PACKAGES, type PackageShape } from './packages.ts';
import { preparedPackage } from './prepared.ts';

const LARGEST_SHARE = 0.2;
const MOST_PER_FUNCTION = 3;

const foundSchema = z.array(
  z.strictObject({
    line: z.int(),
    column: z.int(),
    function: z.string(),
    old: z.string(),
    new: z.string(),
  }),
);
type Candidate = Omit<Mutation, 'fails'>;

function candidates(shape: PackageShape): Candidate[] {
  const program = path.join(import.meta.dirname, '..', 'python', 'mutate.py');
  const all: Candidate[] = [];
  for (const [file, text] of preparedPackage(shape.name).tree) {
    if (!isMutated(shape, file)) continue;
    const message = execFileSync('python3', ['-I', program], {
      input: text,
      maxBuffer: 2 ** 26,
      encoding: 'utf8',
    });
    const lines = text.split('\n').length;
    for (const found of foundSchema.parse(JSON.parse(message)))
      all.push({ package: shape.name, file, lines, ...found });
  }
  const order = ({ file, line, column }: Candidate): number =>
    uniform(randomKey('swe', 'candidate', shape.name, file, line, column), 0);
  return all.toSorted((a, b) => order(a) - order(b));
}

/** The bug with what fails because of it; undefined where it is none that is kept. */
async function tried(shape: PackageShape, candidate: Candidate): Promise<Mutation | undefined> {
  const { tree: sound, tests, canaries } = preparedPackage(shape.name);
  const [after, before] = [sound.get(candidate.file)!, mutated(sound.get(candidate.file)!, candidate)];
  const report = await runTests({
    bug: {
      ...shape,
      style: 'pytest',
      testFiles: [...sound.keys()].filter((file) => isTestFile(shape, file)),
    },
    tree: withFiles(sound, new Map([[candidate.file, before]])),
    tests,
    canaries: [],
    changed: new Map([[candidate.file, [before, after]]]),
    signal: new AbortController().signal,
  });
  // Whatever ends the run in its midst fails more tests than those of which that is known.
  if (!('whole' in report) || !report.whole) return undefined;
  const fails = tests.filter((test) => report.tests[test]?.[0] !== 'passed');
  const files = new Set(fails.map((test) => test.split('::')[0]));
  const isSeen = canaries.some((test) => files.has(test.split('::')[0]));
  if (fails.length === 0 || fails.length > LARGEST_SHARE * tests.length || !isSeen) return undefined;
  if (!(await failsApart(shape, withFiles(sound, new Map([[candidate.file, before]])), fails)))
    return undefined;
  return { ...candidate, fails: fails.map(testKey) };
}

/** Whether one of some tests fails where it does not share a process with the package: that cannot be forged. */
async function failsApart(shape: PackageShape, tree: Tree, fails: readonly string[]): Promise<boolean> {
  const { apart } = preparedPackage(shape.name);
  const tests = fails.filter((test) => apart.includes(test));
  if (tests.length === 0) return false;
  const testFiles = [...tree.keys()].filter((file) => isTestFile(shape, file));
  const { report } = await inTurn(new AbortController().signal, () =>
    runApart({ bug: { ...shape, style: 'pytest', testFiles }, tree, tests }),
  );
  return 'tests' in report && tests.some((test) => report.tests[test]?.[0] !== 'passed');
}

async function bugsOf(shape: PackageShape): Promise<Mutation[]> {
  const kept: Mutation[] = [];
  const { tests } = preparedPackage(shape.name);
  if (new Set(tests.map(testKey)).size !== tests.length)
    throw new Error(`testKey: two tests of ${shape.name}`);
  for (const candidate of candidates(shape)) {
    if (kept.length === shape.bugs) break;
    const same = kept.filter((bug) => bug.file === candidate.file && bug.function === candidate.function);
    if (same.length >= MOST_PER_FUNCTION) continue;
    const bug = await tried(shape, candidate);
    if (bug === undefined) continue;
    kept.push(bug);
    console.log(writtenMutation(bug));
  }
  return kept;
}

const found = await Promise.all(PACKAGES.map(bugsOf));
const lines = found.map((bugs) => bugs.map(writtenMutation).toSorted()).flat();
await writeFile(INDEX, `${lines.join('\n')}\n`);
