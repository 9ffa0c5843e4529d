import { createHash } from 'node:crypto';
import { z } from 'zod';
import { GradusError } from '../../core/errors.ts';
import type { Mount, Ran } from '../sandbox/contract.ts';
import type { Bug } from './bug.ts';
import { Judgements, type Asker, type Judged } from './judgements.ts';
import { patched } from './patch.ts';
import { pythonProgram, runPython } from './sandboxed-python.ts';
import { testSite } from './packages/prepared.ts';
import { isBelow, withFiles, type Tree } from './tree.ts';

/** What tests say about a patch. */
export interface Judgement {
  mended: boolean;
  /** Why not, or how it was seen. */
  evidence: string;
}

const outcomes = z.record(z.string(), z.tuple([z.string(), z.string()]));
const reportSchema = z.union([
  z.strictObject({ refused: z.array(z.string()) }),
  z.strictObject({ whole: z.boolean(), tests: outcomes, canaries: outcomes }),
]);
export type TestReport = z.output<typeof reportSchema>;

/** How the sandbox ended without a report: `exit` where the tree ended whoever was to report. */
export interface NoReport {
  ended: Ran['ended'];
  /** Whether who was to report was kept from it: it ends a run that is over its time, and did not. */
  stopped: boolean;
}

/**
 * Seconds by the clock for so many of processor time, of which tests need a part: on a machine that is as busy as that they
 * come to their end, and what waits for ever has failed.
 */
const wallSecondsOf = (cpuSeconds: number): number => 4 * cpuSeconds + 10;

/** What a sandbox has beyond the runs in it: for Python's start, the guard, the canaries and two trees. */
const SPARE_SECONDS = 20;
/** That much later than it should have ended a run, who reports was stopped: no machine is as busy as that. */
const STOPPED_SECONDS = 10;

/**
 * Whether `patch` mends a bug: in a fresh tree with the sources of the patch and the original tests, every test of FAIL_TO_PASS
 * and of PASS_TO_PASS passes, and every canary fails (ADR 0052). A patch that reaches for the interpreter is refused unrun.
 * A patch that waits or loops until a limit of its run, or keeps who reports from doing so, is not mended. Throws GradusError where the sandbox is at fault.
 */
export async function judge(bug: Bug, patch: string, asker: Asker): Promise<Judgement> {
  const sources = sourcesOf(bug, patched(bug.tree, patch));
  if (sources.size === 0) return { mended: false, evidence: 'no source was changed' };
  const tree = withFiles(bug.tree, sources);
  // What is put back as it was needs no test: its tests passed when the bug was made.
  if (sameFiles(tree, patched(bug.tree, bug.mend)))
    return { mended: true, evidence: 'as it was before the bug' };
  const key = digestOf([[...bug.tree], [...sources], bug.failToPass, bug.passToPass, bug.canaries]);
  return judgements.of(key, asker, () => judged(bug, tree, sources));
}

const judgements = new Judgements<Judgement>();

/** What the judge asks of the program that runs tests, but for the tree: also outside of our sandbox. */
export const requestOf = (bug: Bug) => ({
  ...testsOf(bug, bug.tree),
  tests: [...bug.failToPass, ...bug.passToPass],
  canaries: bug.canaries,
  stop_at_failure: true,
});

/** Which files of a tree are tests, which help them, and how they are run. */
function testsOf({ style, sourceRoots, tests, testFiles, cpuSeconds }: TestRun['bug'], tree: Tree) {
  const files = testFiles.filter((file) => tree.has(file));
  return {
    files,
    helpers: [...tree.keys()].filter(
      (path) => path.endsWith('.py') && isBelow(tests, path) && !files.includes(path),
    ),
    style,
    source_roots: sourceRoots,
    cpu_seconds: cpuSeconds,
    wall_seconds: wallSecondsOf(cpuSeconds),
  };
}

async function judged(bug: Bug, tree: Tree, sources: Tree): Promise<Judged<Judgement>> {
  const tests = [...bug.failToPass, ...bug.passToPass];
  const changed = new Map(
    [...sources].map(([path, text]) => [path, [bug.tree.get(path) ?? '', text] as const]),
  );
  const report = await runTests({
    bug,
    tree,
    tests,
    canaries: bug.canaries,
    changed,
    stopAtFailure: true,
    signal: undefined,
  });
  const limited = 'ended' in report || ('whole' in report && !report.whole);
  return { verdict: verdictOf(report, bug, tests), limited };
}

function verdictOf(report: TestReport | NoReport, bug: Bug, tests: readonly string[]): Judgement {
  if ('ended' in report) {
    // Who reports ends a run that takes too long, with time to spare: what was slow beside it is this machine.
    if (report.ended === 'wall-time' && !report.stopped) {
      throw new GradusError('infra', 'tests-slow', 'Tests were not over in time.', { retryable: true });
    }
    return { mended: false, evidence: `the tests came to no end (${report.ended})` };
  }
  if ('refused' in report)
    return { mended: false, evidence: `reaches for the interpreter: ${report.refused[0]}` };
  const failing = tests.find((test) => report.tests[test]?.[0] !== 'passed');
  if (failing !== undefined) {
    const [outcome, why] = report.tests[failing] ?? ['missing', ''];
    return { mended: false, evidence: `${failing} ${outcome}: ${why}`.slice(0, 300) };
  }
  // Passed, and yet not honest: a test that asks for what cannot be has passed, or has not been heard of.
  const canary = bug.canaries.find((test) => report.canaries[test]?.[0] !== 'failed');
  if (canary !== undefined) return { mended: false, evidence: `a canary of ${canary} did not fail` };
  if (!report.whole || Object.keys(report.tests).length !== tests.length) {
    return { mended: false, evidence: 'the tests came to no whole report' };
  }
  return { mended: true, evidence: `${tests.length} tests pass` };
}

export interface TestRun {
  bug: Pick<Bug, 'style' | 'sourceRoots' | 'tests' | 'testFiles' | 'cpuSeconds'>;
  tree: Tree;
  /** By their names; null for all that there are. */
  tests: readonly string[] | null;
  /** Those of which a canary is to run, too. */
  canaries: readonly string[] | 'all';
  /** Text before and after of each file that the guard is to look at. */
  changed?: ReadonlyMap<string, readonly [string, string]>;
  /** Whether canaries are left out where a test has failed. */
  stopAtFailure?: boolean;
  /** pytest, where it is not where the set-up leaves it. */
  site?: Mount;
  /** Ends them. Left out for what is in its turn already, and is seen to its end. */
  signal: AbortSignal | undefined;
}

/** Runs tests in a sandbox, and canaries in another process. */
export async function runTests(run: TestRun): Promise<TestReport | NoReport> {
  const site = run.bug.style === 'pytest' ? (run.site ?? testSite()) : undefined;
  const runs = run.canaries.length === 0 ? 1 : 2;
  const { cpuSeconds } = run.bug;
  const wallSeconds = wallSecondsOf(cpuSeconds) * runs + SPARE_SECONDS;
  const said = await runPython({
    program: pythonProgram('run_tests'),
    request: {
      programs: {
        guard: pythonProgram('guard'),
        canaries: pythonProgram('canaries'),
        run_group: pythonProgram('run_group'),
      },
      tree: Object.fromEntries(run.tree),
      changed: Object.fromEntries(run.changed ?? []),
      ...testsOf(run.bug, run.tree),
      tests: run.tests,
      canaries: run.canaries,
      stop_at_failure: run.stopAtFailure ?? false,
      site: site === undefined ? [] : [site.at],
    },
    mounts: site === undefined ? [] : [site],
    limits: {
      wallSeconds,
      cpuSeconds: cpuSeconds * runs + SPARE_SECONDS,
    },
    signal: run.signal,
  });
  const report = reportSchema.safeParse(said.answer);
  if (report.success) return report.data;
  const begun = Number(said.lines.at(-1) ?? Number.NaN);
  const late = wallSeconds - (begun + wallSecondsOf(cpuSeconds));
  return { ended: said.ended, stopped: said.ended === 'wall-time' && late > STOPPED_SECONDS };
}

/** What of a tree's files counts: sources of Python that are not as they were. */
function sourcesOf({ tree, sources, tests }: Bug, now: Tree): Tree {
  const counts = (path: string): boolean =>
    path.endsWith('.py') &&
    isBelow(sources, path) &&
    !isBelow(tests, path) &&
    !/(?:^|\/)conftest\.py$/u.test(path);
  return new Map([...now].filter(([path, text]) => counts(path) && tree.get(path) !== text));
}

const sameFiles = (a: Tree, b: Tree): boolean =>
  a.size === b.size && [...a].every(([path, text]) => b.get(path) === text);

const digestOf = (value: unknown): string => createHash('sha256').update(JSON.stringify(value)).digest('hex');
