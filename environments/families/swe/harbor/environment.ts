import { createHash } from 'node:crypto';
import { existsSync, lstatSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from 'smol-toml';
import { z } from 'zod';
import { GradusError, messageOf } from '../../../../core/errors.ts';
import { randomKey, uniform } from '../../../../core/random.ts';
import type { Split, TaskRef } from '../../../../core/refs.ts';
import { defineEnvironment, ToolRefusal, type Environment } from '../../../contract/environment.ts';
import { openSandbox, sandboxNeeds } from '../../../sandbox/open-sandbox.ts';
import { fold } from '../../../contract/session.ts';
import { environmentReward } from '../../../verifiers/environment-reward.ts';
import { formatVerifier } from '../../../verifiers/format.ts';
import { noInstalledPackages, packagesNeed, pinnedPackages, testSite } from '../packages/prepared.ts';
import { Judgements, type Judged } from '../judgements.ts';
import { patchBetween, patched } from '../patch.ts';
import { sandboxKilled } from '../sandboxed-python.ts';
import { toolsOf, type CheckedOutBug } from '../tools.ts';
import { isTreePath, type Tree } from '../tree.ts';
import { readDockerfile, type Copied } from './dockerfile.ts';

export interface HarborChoices {
  name: string;
  /** A task folder of Harbor's, or a folder of them; relative to the working directory. */
  folder: string;
  /** Shares of the tasks, told by their names; the rest is for training. A tenth each unless given. */
  split?: { heldout: number; test: number };
}

interface HarborTask {
  name: string;
  instruction: string;
  /** What stands in the working folder. */
  tree: Tree;
  workdir: string;
  env: Readonly<Record<string, string>>;
  /** What tests/ has. */
  tests: Tree;
  verifierSeconds: number;
}

/** How tests say what a task is worth. */
const JUDGED = '3';

/**
 * Seconds that tests may ask for: with `PATIENCE` less than the hour that the activity has (workflows/activities.ts) which waits
 * for them. Those of a group may take longer in all: what has begun is seen to its end and kept for the next attempt.
 */
const LONGEST_TESTS = 1800;
/** Times what they ask for is what they have by the clock, for a machine that is busy; of processor time it is that. */
const PATIENCE = 1.5;

// What there is no place for in a sandbox; any other setting is taken and does nothing.
const none = z.union([z.array(z.never()), z.record(z.string(), z.never())]).optional();
const configSchema = z.looseObject({
  steps: none,
  verifier: z
    .looseObject({
      timeout_sec: z.number().positive().max(LONGEST_TESTS).default(600),
      environment_mode: z.literal('shared').optional(),
      environment: z.undefined().optional(),
      collect: none,
      env: none,
    })
    .prefault({}),
  environment: z
    .looseObject({
      docker_image: z.undefined().optional(),
      os: z.literal('linux').optional(),
      gpus: z.literal(0).optional(),
      tpu: z.undefined().optional(),
      mcp_servers: none,
      healthcheck: z.undefined().optional(),
      skills_dir: z.undefined().optional(),
      env: none,
      workdir: z.string().startsWith('/').optional(),
    })
    .prefault({}),
});

/** Programs that want a network, which no sandbox has. */
const WANTS_NETWORK = /\b(?:apt-get|apt|curl|wget|uvx|git clone|pip3? install)\b/u;

const MIB = 2 ** 20;

/**
 * Task folders of Harbor's as tasks, as far as they need no Docker: a base image, and files and packages that are here. Each
 * call is a function of the patch that those before have made to the working folder; tests/test.sh is run on it, in a
 * sandbox of its own, when the episode ends, and what it writes is the reward. Who is judged by it may forge it: the code
 * under test runs beside it.
 * Throws GradusError('environment', 'harbor') for a folder that needs more, and says what.
 */
export function harbor({ name, folder, split = { heldout: 0.1, test: 0.1 } }: HarborChoices): Environment {
  const tasks = foldersIn(folder).map(readTask);
  const splitOf = (task: HarborTask): Split => {
    const draw = uniform(randomKey('harbor', 'split', task.name), 0);
    return draw < split.test ? 'test' : draw < split.test + split.heldout ? 'heldout' : 'train';
  };
  const taskAt = (ref: Pick<TaskRef, 'split' | 'index'>): HarborTask => {
    const found = tasks.filter((task) => splitOf(task) === ref.split)[ref.index];
    if (found === undefined) throw refused(folder, `has no task ${ref.index} in the split ${ref.split}`);
    return found;
  };
  const tools = toolsOf(['bash', 'view', 'edit', 'search'], ['bash']);
  return defineEnvironment({
    name,
    version: digestOf(tasks),
    levels: [1],
    tools: tools.map(({ tool }) => tool),
    verifiers: [environmentReward(), formatVerifier()],
    task: (ref) => ({ ref, prompt: taskAt(ref).instruction }),
    taskCount: (wanted) => tasks.filter((task) => splitOf(task) === wanted).length,
    prepare: async () => void (await openSandbox()),
    needs: async () => [...(await sandboxNeeds()), packagesNeed()],
    sessions: fold<{ id: string; patch: string; split: Split; index: number }>({
      // It waits for its turn, and for tests in a sandbox: what they may take is counted there.
      endSeconds: null,
      open: ({ ref }, { id }) => ({ id, patch: '', split: ref.split, index: ref.index }),
      async act(state, call, { signal }) {
        const { tree, workdir } = taskAt(state);
        const known = tools.find(({ tool }) => tool.name === call.name);
        if (known === undefined) throw new ToolRefusal(`there is no tool ${call.name}`);
        const links = [{ at: workdir, to: '/work/tree' }];
        const done = await known.act(
          { ...PLACE, links },
          patched(tree, state.patch),
          call.arguments as never,
          signal,
        );
        return { state: { ...state, patch: patchBetween(tree, done.tree) }, did: done.text };
      },
      async end(state, _, signal) {
        const task = taskAt(state);
        const key = digestOf([task]) + state.patch;
        const asker = { id: state.id, signal };
        return rewards.of(key, asker, () => rewardOf(task, patched(task.tree, state.patch)));
      },
    }),
  });
}

const rewards = new Judgements<{ reward: number }>();

const PLACE: CheckedOutBug = { style: 'pytest', sourceRoots: [''], tests: [], testFiles: [], cpuSeconds: 60 };

/**
 * What tests/test.sh says of a working folder, in [0, 1]; 0 where it says nothing, as where it was not over in time: what the
 * policy wrote may wait, or loop. Throws GradusError('infra', retryable) where the sandbox was at fault.
 */
async function rewardOf(task: HarborTask, tree: Tree): Promise<Judged<{ reward: number }>> {
  const sandbox = await openSandbox();
  const site = testSite();
  const files = [...under('app', tree), ...under('tests', task.tests)];
  const ran = await sandbox.run({
    argv: ['sh', '-c', 'mkdir -p logs/verifier; cd app; exec sh /tests/test.sh'],
    files,
    links: [
      { at: task.workdir, to: '/work/app' },
      { at: '/tests', to: '/work/tests' },
      { at: '/logs', to: '/work/logs' },
    ],
    mounts: [site, ...noInstalledPackages()],
    env: { PYTHONPATH: site.at, PYTHONDONTWRITEBYTECODE: '1', ...task.env },
    collect: ['logs/verifier'],
    limits: {
      wallSeconds: PATIENCE * task.verifierSeconds,
      cpuSeconds: task.verifierSeconds,
      memoryBytes: 1024 * MIB,
    },
  });
  if (ran.ended === 'killed') throw sandboxKilled();
  const text = (name: string) => {
    const bytes = ran.files.get(`logs/verifier/${name}`);
    return bytes === undefined ? undefined : new TextDecoder().decode(bytes);
  };
  const reported = rewardIn(text('reward.json')) ?? Number.parseFloat(text('reward.txt') ?? '0');
  const reward = Number.isFinite(reported) ? Math.min(1, Math.max(0, reported)) : 0;
  return { verdict: { reward }, limited: ran.ended !== 'exit' };
}

/** The figure `reward` of reward.json, or its only one. */
function rewardIn(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  try {
    const figures = z.record(z.string(), z.number()).parse(JSON.parse(text));
    const values = Object.values(figures);
    return figures['reward'] ?? (values.length === 1 ? values[0] : undefined);
  } catch {
    return undefined; // The code under test wrote in its place, or cut it short.
  }
}

const under = (folder: string, tree: Tree) =>
  [...tree].map(([file, content]) => ({ path: `${folder}/${file}`, content }));

function foldersIn(folder: string): string[] {
  if (existsSync(path.join(folder, 'task.toml'))) return [folder];
  const found = existsSync(folder)
    ? readdirSync(folder)
        .toSorted()
        .map((name) => path.join(folder, name))
        .filter((one) => existsSync(path.join(one, 'task.toml')))
    : [];
  if (found.length === 0)
    throw refused(folder, 'is no task folder of Harbor, nor has any: there is no task.toml');
  return found;
}

function readTask(folder: string): HarborTask {
  const name = path.basename(path.resolve(folder));
  const config = configOf(folder);
  for (const file of ['instruction.md', 'environment/Dockerfile', 'tests/test.sh'])
    if (!existsSync(path.join(folder, file))) throw refused(folder, `has no ${file}`);
  for (const file of ['task.toml', 'instruction.md', 'environment', 'tests'])
    if (lstatSync(path.join(folder, file)).isSymbolicLink()) throw refused(folder, `${file} is a link`);
  const tests = readTree(folder, 'tests');
  const script = tests.get('test.sh')!;
  const wanted = WANTS_NETWORK.exec(script.replace(/^\s*#.*$/gmu, ''));
  if (wanted !== null) throw refused(folder, `tests/test.sh wants a network, for ${wanted[0]}`);
  const around = readTree(folder, 'environment');
  let image;
  try {
    image = readDockerfile(around.get('Dockerfile')!, pinnedPackages());
  } catch (error) {
    throw refused(folder, `environment/Dockerfile: ${messageOf(error)}`);
  }
  const workdir = config.environment.workdir ?? image.workdir;
  if (!/^\/[\w.-]+$/u.test(workdir) || TAKEN.has(workdir)) {
    throw refused(folder, `its working folder ${workdir} is not one of its own below /, such as /app`);
  }
  const tree = new Map<string, string>();
  for (const copy of image.copies) {
    const copied = filesOf(copy, around, workdir);
    if (copied.length === 0) throw refused(folder, `environment/ has no ${copy.from}, which is copied`);
    for (const [place, text] of copied) {
      if (!place.startsWith(`${workdir}/`)) {
        throw refused(
          folder,
          `${place} is not in its working folder ${workdir}, and nothing else lasts here`,
        );
      }
      tree.set(place.slice(workdir.length + 1), text);
    }
  }
  return {
    name,
    instruction: readFileSync(path.join(folder, 'instruction.md'), 'utf8').trimEnd(),
    tree,
    workdir,
    env: image.env,
    tests,
    verifierSeconds: config.verifier.timeout_sec,
  };
}

/** What a COPY brings, each file with its place: a file into a folder that is told to be one or is there, as Docker does. */
function filesOf({ from, to, into }: Copied, around: Tree, workdir: string): [string, string][] {
  const source = path.posix.normalize(from).replace(/\/$/u, '');
  const file = around.get(source);
  if (file !== undefined) {
    return [[into || to === workdir ? path.posix.join(to, path.posix.basename(source)) : to, file]];
  }
  const prefix = source === '.' ? '' : `${source}/`;
  return [...around]
    .filter(([name]) => name.startsWith(prefix) && name !== 'Dockerfile')
    .map(([name, text]) => [path.posix.join(to, name.slice(prefix.length)), text]);
}

const TAKEN = new Set([
  '/work',
  '/tests',
  '/logs',
  '/site',
  '/usr',
  '/etc',
  '/proc',
  '/dev',
  '/tmp',
  '/bin',
  '/lib',
  '/sbin',
]);

function configOf(folder: string): z.output<typeof configSchema> {
  let read;
  try {
    read = configSchema.safeParse(parse(readFileSync(path.join(folder, 'task.toml'), 'utf8')));
  } catch (error) {
    throw refused(folder, `task.toml cannot be read: ${messageOf(error)}`);
  }
  if (read.success) return read.data;
  const where = read.error.issues[0]!.path.join('.');
  throw refused(folder, `task.toml asks in ${where} for what takes more than a sandbox`);
}

/** The text files below a folder. */
function readTree(folder: string, part: string): Tree {
  const root = path.join(folder, part);
  const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  const tree = new Map<string, string>();
  for (const entry of readdirSync(root, { recursive: true }).map(String).toSorted()) {
    const file = path.join(root, entry);
    // A link may lead to what is this machine's, and no task's.
    const stat = lstatSync(file);
    if (stat.isDirectory()) continue;
    const name = entry.split(path.sep).join('/');
    if (!stat.isFile()) throw refused(folder, `${part}/${name} is a link, or no plain file`);
    if (!isTreePath(name) || stat.size > MIB) {
      throw refused(folder, `${part}/${name} is larger than 1 MiB, or has a name with odd letters`);
    }
    try {
      tree.set(name, utf8.decode(readFileSync(file)));
    } catch {
      throw refused(folder, `${part}/${name} is no text`);
    }
  }
  return tree;
}

const digestOf = (tasks: readonly HarborTask[]): string =>
  createHash('sha256')
    .update(JUDGED)
    .update(JSON.stringify(tasks.map((task) => ({ ...task, tree: [...task.tree], tests: [...task.tests] }))))
    .digest('hex')
    .slice(0, 16);

const refused = (folder: string, why: string): GradusError =>
  new GradusError('environment', 'harbor', `The Harbor task in ${folder}: ${why}`);
