/** `npm run setup:swe`: the packages of the environment swe with their own tests, and pytest, into the cache. */
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { gunzipSync } from 'node:zlib';
import { GradusError, messageOf } from '../../../../core/errors.ts';
import { findOnPath, runCommand, tailOf } from '../../../../infra/setup/command.ts';
import { makeOnce } from '../../../../infra/setup/make-once.ts';
import { takesNoArguments } from '../../../../infra/setup/no-arguments.ts';
import { offerBubblewrap } from '../../../sandbox/bubblewrap/setup.ts';
import { unpackFiles } from '../../../sandbox/linux/archive.ts';
import { runApart } from '../apart.ts';
import { runTests } from '../judge.ts';
import { inTurn } from '../../../sandbox/in-turn.ts';
import { isTreePath, type Tree } from '../tree.ts';
import { isKept, isSteady, isTestFile, PACKAGES, type PackageShape } from './packages.ts';
import { isSetUp, preparedFolder, testSite, writtenPackage, type PreparedPackage } from './prepared.ts';

/** Processor time for all tests of a package, where it is found out which of them run apart from it. */
const TRIAL_SECONDS = 120;

const say = (text: string): void => void process.stderr.write(`setup: ${text}\n`);

try {
  takesNoArguments();
  const folder = preparedFolder();
  await makeOnce(folder, say, isSetUp, make);
  say(`swe: ${folder}`);
} catch (error) {
  say(messageOf(error));
  process.exitCode = 1;
}

async function make(making: string): Promise<string> {
  const started = Date.now();
  await offerBubblewrap(say);
  await mkdir(path.join(making, 'empty'));
  const scratch = await mkdtemp(path.join(tmpdir(), 'gradus-swe-'));
  try {
    say('fetching toolz, cachetools, tabulate, tomlkit, mistune and pytest: 3 MB …');
    const python = await findOnPath('python3');
    if (python === undefined) {
      throw new GradusError('infra', 'python-missing', 'swe needs python3 on PATH, with pip: install it');
    }
    await install(python, 'requirements.txt', path.join(making, 'site'));
    const sdists = await download(python, scratch);
    const packages = await Promise.all(
      PACKAGES.map(async (shape) => {
        const prepared = await prepare(shape, await treeOf(shape, sdists), making);
        say(
          `${shape.name}: ${prepared.tests.length} tests, ${prepared.apart.length} of them apart, ${prepared.canaries.length} canaries`,
        );
        return [shape.name, prepared] as const;
      }),
    );
    for (const [name, prepared] of packages)
      await writeFile(path.join(making, `${name}.json`), writtenPackage(prepared));
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
  say(`done in ${((Date.now() - started) / 1000).toFixed(0)} s`);
  return making;
}

/** Source distributions by the name of their package. To learn what they are, pip builds their metadata, with backends that are pinned, too. */
async function download(python: string, scratch: string): Promise<ReadonlyMap<string, string>> {
  const [backends, sdists] = [path.join(scratch, 'backends'), path.join(scratch, 'sdists')];
  await install(python, 'backends.txt', backends);
  const pins = path.join(import.meta.dirname, 'sdists.txt');
  const options = '--no-deps --no-binary :all: --no-build-isolation --require-hashes'.split(' ');
  await pip(python, ['download', ...options, '-r', pins, '--dest', sdists], { PYTHONPATH: backends });
  const files = await readdir(sdists);
  return new Map(files.map((file) => [file.replace(/-[^-]*$/u, ''), path.join(sdists, file)]));
}

async function install(python: string, requirements: string, target: string): Promise<void> {
  const options = '--no-deps --only-binary :all: --require-hashes'.split(' ');
  const pins = path.join(import.meta.dirname, requirements);
  await pip(python, ['install', ...options, '--target', target, '-r', pins]);
}

async function pip(python: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<void> {
  const { code, stdout, stderr } = await runCommand(
    python,
    ['-m', 'pip', '--quiet', '--disable-pip-version-check', ...args],
    { env: { ...process.env, PIP_ROOT_USER_ACTION: 'ignore', ...env } },
  );
  if (code === 0) return;
  throw new GradusError(
    'infra',
    'python-packages',
    `pip ${args[0]} failed:\n${tailOf(stderr || stdout)}\nIs pip installed, the Python package index reachable, and the disk not full? Then run the command again.`,
    { retryable: true },
  );
}

/** Text files of a source distribution that are kept. */
async function treeOf(shape: PackageShape, sdists: ReadonlyMap<string, string>): Promise<Tree> {
  const sdist = sdists.get(shape.name)!;
  const root = path.basename(sdist, '.tar.gz');
  const files = await unpackFiles(gunzipSync(await readFile(sdist)), [root]);
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const kept = [...files]
    .map(([name, bytes]) => [name.slice(root.length + 1), bytes] as const)
    .filter(([name]) => isTreePath(name) && isKept(shape, name));
  const texts = kept.map(([name, bytes]) => [name, utf8.decode(bytes)] as const);
  return new Map(texts.toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/** What passes in the sandbox of this machine, and which canaries fail. */
async function prepare(shape: PackageShape, tree: Tree, folder: string): Promise<PreparedPackage> {
  const testFiles = [...tree.keys()].filter((file) => isTestFile(shape, file));
  const run = (tests: readonly string[] | null) =>
    runTests({
      bug: { ...shape, style: 'pytest', testFiles },
      site: testSite(folder),
      tree,
      tests,
      canaries: 'all',
      signal: new AbortController().signal,
    });
  const first = await run(null);
  const passing = (report: Awaited<ReturnType<typeof run>>): string[] =>
    'whole' in report && report.whole
      ? Object.keys(report.tests).filter((test) => report.tests[test]![0] === 'passed')
      : [];
  const again = await run(passing(first));
  const tests = passing(again)
    .filter((test) => isSteady(shape, test))
    .toSorted();
  if (tests.length === 0 || !('whole' in first) || !('whole' in again)) {
    throw new GradusError('infra', 'swe-tests', `The tests of ${shape.name} did not run to their end here.`);
  }
  const failing = (test: string): boolean =>
    first.canaries[test]?.[0] === 'failed' && again.canaries[test]?.[0] === 'failed';
  const alone = async (among: readonly string[]): Promise<string[]> => {
    // A test of half a million calls takes a minute so: it is none of those that are kept, but has to come to its end here.
    const bug = { ...shape, style: 'pytest', testFiles, cpuSeconds: TRIAL_SECONDS } as const;
    const { report, codeEnded } = await inTurn(new AbortController().signal, () =>
      runApart({ bug, tree, tests: among, site: testSite(folder) }),
    );
    if (codeEnded !== 'exit' || !('tests' in report)) {
      throw new GradusError('infra', 'swe-tests', `The tests of ${shape.name} were not over in time here.`, {
        retryable: true,
      });
    }
    return among.filter((test) => report.tests[test]?.[0] === 'passed');
  };
  return { tree, tests, apart: await alone(await alone(tests)), canaries: tests.filter(failing) };
}
