import { chmod, mkdtemp, readdir, rm } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../../core/errors.ts';
import { cacheRoot } from '../cache-dir.ts';
import { BuildProgress, sourcesToCompile } from './build-progress.ts';
import { compareVersions, findOnPath, runCommand, tailOf } from './command.ts';
import type { CommandOptions } from './command.ts';
import { withLock } from './file-lock.ts';
import { assertRecorded } from './recorded-digests.ts';
import { BINARIES, cachedBinary, isIntact } from './server-binaries.ts';
import type { Binary, BinaryName } from './server-binaries.ts';

/** Of Gradus's own, with the two servers as its tools (ADR 0068). */
const SERVERS_MODULE = path.resolve(import.meta.dirname, '..', 'servers');
/** Where a build leaves its programs first; begins the name. */
const TEMPORARY = 'go-build-';
const IN_MODULE: readonly BinaryName[] = ['temporal-server', 'versitygw'];

/**
 * Finds a Go that can build all of `names`, before anything is spent on building.
 * @returns the `go` command
 * @throws GradusError infra/toolchain-missing
 */
export async function requireGo(
  names: readonly BinaryName[],
  env: NodeJS.ProcessEnv = process.env,
): Promise<string> {
  const needed = names.map((name) => BINARIES[name].go).reduce((a, b) => (compareVersions(a, b) > 0 ? a : b));
  const wanted = names.map((name) => BINARIES[name].title).join(', ');
  const overrides = names.map((name) => BINARIES[name].override).join(', ');
  const whatNow =
    `To build the ${wanted}, install Go ${needed} or newer and put it on PATH; ` +
    `or, if you have them already, set ${overrides} to the executable${names.length > 1 ? 's' : ''}. ` +
    `Then run the command again.`;
  const go = await findOnPath(process.platform === 'win32' ? 'go.exe' : 'go', env);
  if (go === undefined) {
    throw new GradusError('infra', 'toolchain-missing', `There is no Go on PATH. ${whatNow}`);
  }
  const version = (await runCommand(go, ['env', 'GOVERSION'], { env: goEnvironment(env) })).stdout.trim();
  if (compareVersions(version, needed) < 0) {
    throw new GradusError('infra', 'toolchain-missing', `The Go on PATH is ${version}. ${whatNow}`);
  }
  return go;
}

function goEnvironment(env: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  return {
    ...env,
    // Two packages at a time bound the memory of a build to about 2.2 GB.
    GOFLAGS: '-p=2 -trimpath',
    GOTOOLCHAIN: 'local',
    GOWORK: 'off',
    CGO_ENABLED: '0',
  };
}

/** One call of `go install`. */
interface Install {
  names: readonly BinaryName[];
  /** Where its module is, which says the versions; without one each package says its own. */
  module?: string;
}

/**
 * The Temporal server and the object store in one call, because most of what they are compiled from is the same. The
 * object store alone is built without that module, whose Go is newer than it needs.
 */
export function installsOf(names: readonly BinaryName[]): Install[] {
  const together = names.includes('temporal-server') ? names.filter((name) => IN_MODULE.includes(name)) : [];
  const alone = names.filter((name) => !together.includes(name)).map((name) => ({ names: [name] }));
  return together.length > 0 ? [{ names: together, module: SERVERS_MODULE }, ...alone] : alone;
}

/**
 * Builds what is missing into the cache, one call of Go after the other: together they would need more memory than a
 * laptop spares. Waits while another checkout builds. A build that was killed goes on where it was, since Go keeps each
 * package that it has compiled; its half-written programs are in nobody's way.
 * @throws GradusError infra/build-failed
 */
export async function buildBinaries(
  names: readonly BinaryName[],
  go: string,
  say: (text: string) => void,
  env: NodeJS.ProcessEnv = process.env,
): Promise<Binary[]> {
  const root = cacheRoot(env);
  const binaries: Binary[] = [];
  for (const install of installsOf(names)) {
    const title = install.names.map((name) => `${BINARIES[name].title} ${BINARIES[name].version}`).join(', ');
    const waiting = (pid: number): void =>
      say(`${title}: waiting for process ${pid}, which builds for another checkout …`);
    await withLock(path.join(root, 'go-build.lock'), waiting, async () => {
      const missing: BinaryName[] = [];
      for (const name of install.names) {
        if (!(await isIntact(cachedBinary(name, env)))) missing.push(name);
      }
      if (missing.length > 0) await build({ ...install, names: missing }, { go, title, say, env });
      for (const name of install.names) {
        binaries.push({
          path: cachedBinary(name, env),
          from: missing.includes(name) ? 'built' : 'cache',
        });
      }
    });
  }
  return binaries;
}

interface BuildContext {
  go: string;
  title: string;
  say: (text: string) => void;
  env: NodeJS.ProcessEnv;
}

async function build({ names, module }: Install, { go, title, say, env }: BuildContext): Promise<void> {
  const root = cacheRoot(env);
  for (const left of await readdir(root)) {
    if (left.startsWith(TEMPORARY)) await rm(path.join(root, left), { recursive: true, force: true });
  }
  // In the cache's own file system, so that the rename at the end is atomic. A name of its own, for the Go of a killed
  // set-up goes on for a while, and must not write into what is kept here.
  const temporary = await mkdtemp(path.join(root, TEMPORARY));
  try {
    const packages = names.map((name) => {
      const { package: source, version } = BINARIES[name];
      return module === undefined ? `${source}@${version}` : source;
    });
    const options: CommandOptions = {
      env: { ...goEnvironment(env), GOBIN: temporary },
      cwd: module ?? temporary,
    };
    say(`${title}: building with Go (minutes, once) …`);
    const from = performance.now();
    if (module !== undefined) {
      const progress = new BuildProgress(await sourcesToCompile(go, packages, options));
      options.onErrorLine = (line) => {
        const bar = progress.compiling(line, performance.now());
        if (bar !== null) say(`${title}: ${bar}`);
      };
    }
    const result = await runCommand(go, ['install', '-v', '-ldflags', '-s -w', ...packages], options);
    if (result.code !== 0) {
      throw new GradusError(
        'infra',
        'build-failed',
        `go install ${packages.join(' ')} failed:\n${tailOf(result.stderr)}\n` +
          `Is the Go module proxy reachable, and the disk not full? Then run the command again.`,
        { retryable: true },
      );
    }
    for (const name of names) {
      const built = path.join(temporary, path.basename(BINARIES[name].package));
      await chmod(built, 0o755);
      await assertRecorded(built, cachedBinary(name, env));
    }
    say(`${title}: built in ${((performance.now() - from) / 1000).toFixed(1)} s`);
  } finally {
    await rm(temporary, { recursive: true, force: true });
  }
}
