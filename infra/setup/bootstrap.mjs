// The first thing that every npm script runs, on a clone that may have nothing but Node: so plain JavaScript, no
// dependencies. It brings in what is missing (packages, servers, libtensorflow), says so, then becomes the program.
//
//   node infra/setup/bootstrap.mjs [--tools] [--run FILE.ts -- ARGS…]
//   node infra/setup/bootstrap.mjs --bundle FILE.ts -- ARGS…      the same, started as a bundle: for what takes a second
//
// With `--tools`, and where nothing is run, Temporal's web interface and CLI come, too, which no run waits for.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { bundle } from './bundle.mjs';
import { nodeProblem } from './node-version.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const root = path.resolve(here, '..', '..');
const modules = path.join(root, 'node_modules');
const packagesStamp = path.join(modules, '.gradus-packages');
const setupStamp = path.join(modules, '.gradus-setup.json');

/** Variables that the set-up obeys. What else is set is the program's own and calls for no set-up of its own. */
const SETTINGS = JSON.parse(readFileSync(path.join(here, 'settings.json'), 'utf8'));

class SetupError extends Error {}

function say(text) {
  process.stderr.write(`setup: ${text}\n`);
}

const sha256 = (...parts) =>
  parts.reduce((hash, part) => hash.update(part), createHash('sha256')).digest('hex');

function requireNode() {
  const problem = nodeProblem(process.versions.node);
  if (problem !== null) throw new SetupError(problem);
}

function start(command, args, { env = process.env, lifeline = false } = {}) {
  return spawn(command, args, {
    cwd: lifeline ? process.cwd() : root,
    env,
    // The fourth is never written to: that it closes tells the child that this process is gone, however it went.
    // A step of the set-up prints on stderr, so that stdout stays the program's own.
    stdio: lifeline ? ['inherit', 'inherit', 'inherit', 'pipe'] : ['inherit', 2, 2],
    shell: process.platform === 'win32' && command === 'npm',
  });
}

function ended(child) {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve({ code, signal }));
  });
}

async function step(command, args, env, whatNow) {
  const result = await ended(start(command, args, { env })).catch((error) => {
    throw new SetupError(`${command} could not be started (${error.message}). ${whatNow}`);
  });
  if (result.code !== 0) {
    throw new SetupError(
      `${[command, ...args].join(' ')} failed (${result.signal ?? result.code}). ${whatNow}`,
    );
  }
}

/** How often a long step says that it goes on. */
const STILL_MS = 60_000;

const secondsSince = (from) => `${((Date.now() - from) / 1000).toFixed(1)} s`;

/** Packages are current when this script, or npm itself, put them there for this very lock file. */
function packagesAreCurrent(lock) {
  if (existsSync(packagesStamp)) return readFileSync(packagesStamp, 'utf8') === sha256(lock);
  const hidden = path.join(modules, '.package-lock.json');
  return (
    existsSync(hidden) && statSync(hidden).mtimeMs >= statSync(path.join(root, 'package-lock.json')).mtimeMs
  );
}

async function packages(lock) {
  if (packagesAreCurrent(lock)) return;
  const from = Date.now();
  say('installing packages (npm ci), 1.2 GB on disk: a minute or more, by your network …');
  // No package may fetch things of its own while it installs; .npmrc says the same. The CUDA build of onnxruntime is
  // such a fetch.
  const env = { ...process.env, ONNXRUNTIME_NODE_INSTALL_CUDA: 'skip', npm_config_ignore_scripts: 'true' };
  // npm test and friends may run with NODE_ENV=production, which would leave out the test runner.
  const still = setInterval(
    () => say(`still installing packages after ${secondsSince(from)}; npm's own log is in ~/.npm/_logs`),
    STILL_MS,
  );
  try {
    await step(
      'npm',
      ['ci', '--include=dev'],
      env,
      'Is the npm registry reachable? Then run the command again.',
    );
  } finally {
    clearInterval(still);
  }
  mkdirSync(modules, { recursive: true });
  writeFileSync(packagesStamp, sha256(lock));
  say(`packages installed in ${secondsSince(from)}`);
}

/** Whatever the second part of the set-up depends on. */
function setupKey(lock) {
  const folders = [
    'infra/setup',
    'infra/servers',
    'cli/setup',
    'engine/decoder/native',
    'environments/sandbox/bubblewrap',
  ];
  const sources = folders.flatMap((name) => {
    const folder = path.join(root, name);
    return readdirSync(folder)
      .filter((name) => /\.(ts|cc|h|mod|sum)$/.test(name))
      .toSorted()
      .map((name) => readFileSync(path.join(folder, name)));
  });
  const settings = SETTINGS.map((name) => `${name}=${process.env[name] ?? ''}\n`);
  const machine = [process.versions.napi, process.platform, process.arch, existsSync('/dev/nvidiactl')].join(
    ' ',
  );
  return sha256(lock, ...sources, ...settings, machine);
}

function setupIsCurrent(key, tools) {
  if (!existsSync(setupStamp)) return false;
  try {
    const stamp = JSON.parse(readFileSync(setupStamp, 'utf8'));
    return stamp.key === key && (stamp.tools || !tools) && stamp.paths.every((file) => existsSync(file));
  } catch {
    rmSync(setupStamp); // torn by a kill: the set-up finds again what is there, and writes it anew
    return false;
  }
}

async function setup(lock, { always, tools }) {
  const key = setupKey(lock);
  if (!always && setupIsCurrent(key, tools)) return;
  const from = Date.now();
  const script = path.join(root, 'cli/setup/setup.ts');
  await step(
    process.execPath,
    ['--import', 'tsx', script, '--stamp', setupStamp, '--key', key, ...(tools ? ['--tools'] : [])],
    process.env,
    'The lines above say what to do.',
  );
  say(`ready in ${secondsSince(from)}`);
}

/** What Node is to start: the bundle of a program, or its sources, which no state of the disk keeps from running. */
async function programOf({ file, bundled }) {
  if (bundled) {
    try {
      return ['--enable-source-maps', await bundle(root, file)];
    } catch (error) {
      say(
        `${file} runs from its sources, which takes longer, since it could not be bundled: ${error.message}`,
      );
    }
  }
  // Resolved from here, so that the program may be started from any folder.
  return ['--import', import.meta.resolve('tsx'), path.resolve(root, file)];
}

async function become(run) {
  const follow = pathToFileURL(path.join(here, 'follow-parent.mjs')).href;
  const program = await programOf(run);
  const child = start(process.execPath, ['--import', follow, ...program, ...run.args], { lifeline: true });
  const terminal = process.stdin.isTTY || process.stdout.isTTY || process.stderr.isTTY;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
    process.on(signal, () => {
      // A Ctrl-C goes from the terminal to the whole group, the child with it: a second one would mean "at once".
      if (!(terminal && signal === 'SIGINT')) child.kill(signal);
    });
  }
  const { code, signal } = await ended(child);
  if (signal === null) process.exit(code ?? 1);
  process.removeAllListeners(signal);
  process.kill(process.pid, signal);
}

function parseArguments(given) {
  const tools = given[0] === '--tools';
  const [flag, file, dashes, ...args] = tools ? given.slice(1) : given;
  if (flag === undefined) return { tools: true };
  if (!['--run', '--bundle'].includes(flag) || file === undefined || (dashes ?? '--') !== '--') {
    throw new SetupError('usage: node infra/setup/bootstrap.mjs [--tools] [--run|--bundle FILE.ts -- ARGS…]');
  }
  return { tools, program: { file, args, bundled: flag === '--bundle' } };
}

try {
  requireNode();
  const { tools, program } = parseArguments(process.argv.slice(2));
  const lock = readFileSync(path.join(root, 'package-lock.json'));
  await packages(lock);
  await setup(lock, { always: program === undefined, tools });
  if (program !== undefined) await become(program);
} catch (error) {
  if (!(error instanceof SetupError)) throw error;
  say(error.message);
  process.exitCode = 1;
}
