import { z } from 'zod';
import { GradusError } from '../../../core/errors.ts';
import type { Mount, Ran, Running } from '../../sandbox/contract.ts';
import { openSandbox } from '../../sandbox/open-sandbox.ts';
import type { Bug } from './bug.ts';
import { testSite } from './packages/prepared.ts';
import { testRunLimits, SPARE_SECONDS, wallSecondsOf, type NoReport } from './run-limits.ts';
import { PYTHON_ALONE, pythonProgram, sandboxKilled } from './sandboxed-python.ts';
import { isBelow, type Tree } from './tree.ts';

const reportSchema = z.union([
  z.strictObject({ refused: z.array(z.string()) }),
  z.strictObject({
    tests: z.record(z.string(), z.tuple([z.string(), z.string()])),
    failure: z.string().nullable(),
    different: z.string().nullable(),
  }),
]);

/**
 * What tests came to; `failure` where the code's process was gone before they were over, `different` where all have passed and
 * the code says something else than the sound one when it is asked afresh.
 */
export type ApartReport = z.output<typeof reportSchema>;

export interface RanApart {
  report: ApartReport | NoReport;
  /** How the code's process ended where it did so before its tests. */
  codeEnded: Ran['ended'];
}

export interface ApartRun {
  bug: Pick<Bug, 'style' | 'sourceRoots' | 'sources' | 'tests' | 'testFiles' | 'cpuSeconds'>;
  tree: Tree;
  /** By their names; null for all that there are. */
  tests: readonly string[] | null;
  /** What the code is compared with when it is asked afresh (python/apart/fresh.py): the sound tree, the tests whose questions count, and what draws others. */
  fresh?: { sound: Tree; askedBy: readonly string[]; draw: string };
  /** Text before and after of each file that the guard is to look at. */
  changed?: ReadonlyMap<string, readonly [string, string]>;
  /** pytest, where it is not where the set-up leaves it. */
  site?: Mount;
}

const APART = ['wire', 'mirror', 'fresh', 'code', 'tests'] as const;

/** The programs of a run, by the names that they ask for each other. */
export const apartPrograms = (): Record<string, string> => ({
  guard: pythonProgram('guard'),
  styles: pythonProgram('styles'),
  ...Object.fromEntries(APART.map((name) => [name, pythonProgram(`apart/${name}`)])),
});

export const codeInTree = ({ sources, tests }: ApartRun['bug'], tree: Tree) =>
  Object.fromEntries([...tree].filter(([path]) => isBelow(sources, path) && !isBelow(tests, path)));

/** What a run is asked, but for its programs and how the code is reached: also outside of our sandbox. */
export const apartRequest = ({ bug, tree, tests, changed }: ApartRun) => ({
  tree: Object.fromEntries(tree),
  code: codeInTree(bug, tree),
  changed: Object.fromEntries(changed ?? []),
  tests,
  files: bug.testFiles.filter((file) => tree.has(file)),
  test_folders: [...bug.tests, ...bug.testFiles],
  style: bug.style,
  source_roots: bug.sourceRoots,
  cpu_seconds: bug.cpuSeconds,
  wall_seconds: wallSecondsOf(bug.cpuSeconds),
  sound: null as Record<string, string> | null,
  asked_by: [] as readonly string[],
  draw: '',
});

const MOST_REPORTED = 8 * 2 ** 20;
/** Descriptor of a command's first further pipe. */
const LINE = 3;

/**
 * Runs tests of code that is in another sandbox: it has no file, no process and no memory in common with them, and is
 * given arguments and answers with values (ADR 0052). Throws GradusError('infra', retryable) where a sandbox is at fault.
 */
export async function runApart(run: ApartRun): Promise<RanApart> {
  const sandbox = await openSandbox();
  const programs = apartPrograms();
  const site = run.bug.style === 'pytest' ? (run.site ?? testSite()) : undefined;
  const limits = testRunLimits(run.bug.cpuSeconds);
  const patience = {
    wallSeconds: limits.wallSeconds + SPARE_SECONDS,
    cpuSeconds: limits.cpuSeconds + SPARE_SECONDS,
  };
  const request = {
    ...apartRequest(run),
    programs,
    root: '/work/tree',
    site: site === undefined ? [] : [site.at],
    user: null,
    // Where both are in one machine, the code would find the sound one beside it.
    ...(run.fresh &&
      sandbox.talks && {
        sound: codeInTree(run.bug, run.fresh.sound),
        asked_by: run.fresh.askedBy,
        draw: run.fresh.draw,
      }),
  };
  const command = {
    argv: [...PYTHON_ALONE.argv, programs['tests']!],
    env: PYTHON_ALONE.env,
    mounts: site === undefined ? [] : [site],
    limits: patience,
  };
  if (!sandbox.talks) {
    // Nothing there is talked to while it runs: both processes are in one machine.
    const stdin = JSON.stringify({ ...request, line: null });
    const ran = await sandbox.run({ ...command, stdin, limits: { ...patience, outputBytes: MOST_REPORTED } });
    return { report: reported(ran.stdout, ran.ended, ran.stderr), codeEnded: 'exit' };
  }
  const code = await sandbox.start({
    argv: [...PYTHON_ALONE.argv, programs['wire']! + programs['code']!],
    env: PYTHON_ALONE.env,
    limits,
  });
  let tests: Running | undefined;
  try {
    tests = await sandbox.start({ ...command, pipes: 1 });
    const [line] = tests.pipes;
    line!.pipe(code.stdin);
    code.stdout.pipe(line!);
    code.stderr.resume();
    const [output, complaints] = [lastOf(tests.stdout, MOST_REPORTED), lastOf(tests.stderr, 4096)];
    tests.stdin.end(JSON.stringify({ ...request, line: LINE }));
    let gone = false;
    code.stdout.once('end', () => (gone = true));
    const { ended } = await tests.over;
    // Who came to no answer because the code's process ended by itself, or by a limit of its own.
    const codeEnded = gone ? endingOf(await code.over) : 'exit';
    if (codeEnded === 'killed') throw sandboxKilled();
    return { report: reported(output(), ended, complaints()), codeEnded };
  } finally {
    tests?.kill();
    code.kill();
    await Promise.all([code.over, tests?.over]);
  }
}

/** A signal is that of the kernel's limit of processor time, which may be there before the sandbox's. */
const endingOf = ({ ended, signal }: Pick<Ran, 'ended' | 'signal'>): Ran['ended'] =>
  ended === 'exit' && signal !== null ? 'cpu-time' : ended;

function reported(text: string, ended: NoReport['ended'], complaints: string): ApartReport | NoReport {
  if (ended === 'killed') throw sandboxKilled();
  const [first, ...lines] = text.split('\n');
  if (first !== 'ready') {
    throw new GradusError(
      'infra',
      'sandboxed-program',
      `Tests did not start in the sandbox (${ended}): ${complaints.slice(-500)}`,
      { retryable: true },
    );
  }
  if (ended !== 'exit') return { ended, stopped: false };
  if (lines[0] === undefined || lines[0] === '') {
    throw new GradusError('infra', 'sandboxed-program', `Tests came to no report: ${complaints.slice(-500)}`);
  }
  return reportSchema.parse(JSON.parse(lines[0]));
}

/** The last so many bytes of a stream, as text. */
function lastOf(stream: Running['stdout'], most: number): () => string {
  let text = '';
  stream.setEncoding('utf8').on('data', (piece: string) => (text = (text + piece).slice(-most)));
  return () => text;
}
