import { createHash } from 'node:crypto';
import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Mount } from '../../sandbox/contract.ts';
import { apartRequest, codeInTree, runApart, type ApartReport } from './apart.ts';
import type { Bug } from './bug.ts';
import { Judgements, type JudgementCaller, type Judged } from './judgements.ts';
import { patched } from './patch.ts';
import { SPARE_SECONDS, wallSecondsOf, type NoReport } from './run-limits.ts';
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

/** That much later than it should have ended a run, who reports was stopped: no machine is as busy as that. */
const STOPPED_SECONDS = 10;

/**
 * Whether `patch` mends a bug: every test of FAIL_TO_PASS and of PASS_TO_PASS passes, in a sandbox that the code is not in
 * wherever a test can be run so, and every canary of the others fails (ADR 0052). A patch that reaches for the interpreter is refused unrun.
 * A patch that waits or loops until a limit of its run, or keeps who reports from doing so, is not mended. Throws GradusError where the sandbox is at fault.
 */
export async function judgePatch(bug: Bug, patch: string, asker: JudgementCaller): Promise<Judgement> {
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

/** What the judge asks of the programs that run tests: also outside of our sandbox, with what stands in the tree there. */
export const requestsOf = (bug: Bug) => {
  const { apart, within, canaries } = partsOf(bug);
  const tree = withFiles(bug.tree, bug.drawn?.('') ?? new Map());
  return {
    apart: {
      ...apartRequest({ bug, tree, tests: apart }),
      ...(bug.drawn === undefined && {
        sound: codeInTree(bug, patched(bug.tree, bug.mend)),
        asked_by: askedBy(bug),
      }),
    },
    within: { ...testsOf(bug, bug.tree), tests: within, canaries, stop_at_failure: true },
  };
};

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

/** First the tests that the code cannot see, then those that have to share a process with it. */
async function judged(bug: Bug, tree: Tree, sources: Tree): Promise<Judged<Judgement>> {
  const changed = new Map(
    [...sources].map(([path, text]) => [path, [bug.tree.get(path) ?? '', text] as const]),
  );
  const { apart, within, canaries } = partsOf(bug);
  const draw = digestOf([...sources]);
  const asked = withFiles(tree, bug.drawn?.(draw) ?? new Map());
  const { report, codeEnded } = await runApart({
    bug,
    tree: asked,
    tests: apart,
    changed,
    ...(bug.drawn === undefined && {
      fresh: { sound: patched(bug.tree, bug.mend), askedBy: askedBy(bug), draw },
    }),
  });
  const verdict = verdictApart(report, apart);
  if (!verdict.mended) return { verdict, limited: 'ended' in report || codeEnded !== 'exit' };
  if (within.length === 0) return { verdict, limited: false };
  const beside = await runTests({
    bug,
    tree,
    tests: within,
    canaries,
    changed,
    stopAtFailure: true,
    signal: undefined,
  });
  const limited = 'ended' in beside || ('whole' in beside && !beside.whole);
  const { mended, evidence } = verdictOf(beside, canaries, within);
  const all = `${apart.length + within.length} tests pass`;
  return { verdict: { mended, evidence: mended ? all : evidence }, limited };
}

/** The tests whose questions count: those that see the bug, where they are put to code in another process. */
const askedBy = ({ failToPass, apart }: Bug): string[] => failToPass.filter((test) => apart.includes(test));

/** Tests by whether they share a process with the code, and the canaries of those that do. */
function partsOf({ failToPass, passToPass, apart, canaries }: Bug) {
  const tests = [...failToPass, ...passToPass];
  const alone = new Set(apart);
  return {
    apart: tests.filter((test) => alone.has(test)),
    within: tests.filter((test) => !alone.has(test)),
    canaries: canaries.filter((test) => !alone.has(test)),
  };
}

/** What tests say that the code cannot see. */
export function verdictApart(report: ApartReport | NoReport, tests: readonly string[]): Judgement {
  if ('ended' in report) return verdictOf(report, [], tests);
  if ('refused' in report) return refused(report.refused);
  if (report.different !== null) {
    return {
      mended: false,
      evidence: `asked afresh, it is not as it was before the bug: ${report.different}`,
    };
  }
  const failing = failingOf(report.tests, tests);
  if (failing !== undefined) return failing;
  // It has gone when it was asked afresh.
  if (report.failure !== null) return { mended: false, evidence: `came to no end: ${report.failure}` };
  return { mended: true, evidence: `${tests.length} tests pass` };
}

const refused = (findings: readonly string[]): Judgement => ({
  mended: false,
  evidence: `reaches for the interpreter: ${findings[0]}`,
});

/** The first test that has not passed. */
function failingOf(said: z.output<typeof outcomes>, tests: readonly string[]): Judgement | undefined {
  const failing = tests.find((test) => said[test]?.[0] !== 'passed');
  if (failing === undefined) return undefined;
  const [outcome, why] = said[failing] ?? ['missing', ''];
  return { mended: false, evidence: `${failing} ${outcome}: ${why}`.slice(0, 300) };
}

function verdictOf(
  report: TestReport | NoReport,
  canaries: readonly string[],
  tests: readonly string[],
): Judgement {
  if ('ended' in report) {
    // Who reports ends a run that takes too long, with time to spare: what was slow beside it is this machine.
    if (report.ended === 'wall-time' && !report.stopped) {
      throw new GradusError('infra', 'tests-slow', 'Tests were not over in time.', { retryable: true });
    }
    return { mended: false, evidence: `the tests came to no end (${report.ended})` };
  }
  if ('refused' in report) return refused(report.refused);
  const failing = failingOf(report.tests, tests);
  if (failing !== undefined) return failing;
  // Passed, and yet not honest: a test that asks for what cannot be has passed, or has not been heard of.
  const canary = canaries.find((test) => report.canaries[test]?.[0] !== 'failed');
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
  const answer = await runPython({
    program: pythonProgram('run_tests'),
    request: {
      programs: {
        guard: pythonProgram('guard'),
        canaries: pythonProgram('canaries'),
        run_group: pythonProgram('run_group'),
        styles: pythonProgram('styles'),
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
  const report = reportSchema.safeParse(answer.answer);
  if (report.success) return report.data;
  const begun = Number(answer.lines.at(-1) ?? Number.NaN);
  const late = wallSeconds - (begun + wallSecondsOf(cpuSeconds));
  return { ended: answer.ended, stopped: answer.ended === 'wall-time' && late > STOPPED_SECONDS };
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
