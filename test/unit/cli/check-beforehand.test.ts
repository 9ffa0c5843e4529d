import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT } from '../../support/markdown.ts';
import { tinySpec } from '../../support/tiny-spec.ts';

// The commands as a person gives them, in a folder of a project with an environment of six held-out tasks.

let folder: string;
let stateDir: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-beforehand-'));
  stateDir = path.join(folder, 'state');
  await writeFile(path.join(folder, 'house.mjs'), HOUSE);
  await names('./house.mjs');
});
afterEach(() => rm(folder, { recursive: true }));

const HOUSE = `export default { name: 'little-house', levels: [1], tools: [], version: '1',
  verifiers: ['exact-match', 'format', 'tool-shaping'].map((name) => ({ name, version: '1', tier: 'fast', verify: () => 0 })),
  task: () => ({}), demonstrate: () => ({}), taskCount: () => 6 }`;

const names = (module: string): Promise<void> =>
  writeFile(
    path.join(folder, 'package.json'),
    JSON.stringify({ type: 'module', gradus: { environments: [module] } }),
  );

/** The command ends by itself with what it said, and nothing was set up or started. */
async function refused(command: string[], spec: unknown, env: NodeJS.ProcessEnv = {}): Promise<string> {
  await writeFile(path.join(folder, 'spec.json'), typeof spec === 'string' ? spec : JSON.stringify(spec));
  const { code, stdout, stderr } = await ran([...command, '--state-dir', stateDir], env);
  expect(`${stdout}${stderr}`).not.toContain('starting servers');
  expect({ code, stdout, started: existsSync(stateDir) }).toEqual({ code: 1, stdout: '', started: false });
  return stderr;
}

const ran = ([file, ...args]: string[], env: NodeJS.ProcessEnv = {}) =>
  runCommand(process.execPath, ['--import', import.meta.resolve('tsx'), path.join(ROOT, file!), ...args], {
    cwd: folder,
    env: { ...process.env, GRADUS_ENVIRONMENTS: undefined, ...env },
  });

const TRAIN = ['cli/gradus.ts', 'train', 'spec.json'];
const DEMO = ['demos/calculator.ts', '--spec', 'spec.json'];
const DEV = ['cli/gradus.ts', 'dev'];

test('train refuses a misspelt field before anything is started', async () => {
  const printed = await refused(TRAIN, { ...tinySpec(), evaluatoin: 1 });
  expect(printed).toContain('evaluatoin: unknown field; did you mean "evaluation"?');
  expect(printed).toContain('Nothing was started.');
});

test('the demo refuses a name that nobody has before anything is started', async () => {
  const printed = await refused(DEMO, tinySpec({ environment: 'calculater' }));
  expect(printed).toContain('no environment "calculater"; did you mean "calculator"?');
});

test('a name of another trainer is read, and what it is read as is said', async () => {
  const spec = { ...tinySpec({ environment: 'calculater' }), sampling: { max_completion_length: 64 } };
  const printed = await refused(TRAIN, spec);
  expect(printed).toContain('sampling.max_completion_length is read as maxCompletionTokens');
  expect(printed).toContain('no environment "calculater"');
  expect(printed).not.toContain('unknown field');
});

test('counts are checked against the environments of the project', async () => {
  const printed = await refused(TRAIN, tinySpec({ environment: 'little-house' }));
  expect(printed).toContain(
    'asks for 32 test tasks of little-house:1, which has 6: write at most "count": 6',
  );
  expect(printed).not.toContain('no environment');
});

test('train says of a module that is not there where package.json names it, before anything is started', async () => {
  await names('./hous.mjs');
  const printed = await refused(TRAIN, tinySpec());
  expect(printed).toContain(`${path.join(folder, 'hous.mjs')}: there is no such file`);
  expect(printed).toContain(`"gradus": {"environments": …} in ${path.join(folder, 'package.json')}`);
});

test('dev says of a module that is not there that GRADUS_ENVIRONMENTS names it, before anything is started', async () => {
  const printed = await refused(DEV, tinySpec(), { GRADUS_ENVIRONMENTS: 'home.mjs' });
  expect(printed).toContain(`${path.join(folder, 'home.mjs')}: there is no such file`);
  expect(printed).toContain('named in GRADUS_ENVIRONMENTS, which takes precedence over package.json');
});

test('a module that cannot be loaded is said in its own words, with the place of its name', async () => {
  await writeFile(path.join(folder, 'house.mjs'), 'throw new Error("the roof is missing")');
  const printed = await refused(TRAIN, tinySpec());
  expect(printed).toMatch(/house\.mjs: the roof is missing.*named in "gradus"/);
});

test('the list of environments says where modules are named', async () => {
  const list = ['cli/gradus.ts', 'environments'];
  const [ofPackage, ofVariable] = await Promise.all([
    ran(list),
    ran(list, { GRADUS_ENVIRONMENTS: 'house.mjs' }),
  ]);
  expect(ofPackage.stdout).toMatch(/modules: .*house\.mjs \(named in "gradus".*package\.json\)/);
  expect(ofVariable.stdout).toMatch(
    /modules: .*house\.mjs \(named in GRADUS_ENVIRONMENTS, which takes precedence over package\.json\)/,
  );
});
