import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../../infra/setup/command.ts';
import { ROOT } from '../../support/markdown.ts';

// A command has a second, on slow machines too. What it takes is what it loads.

const LISTER = pathToFileURL(path.join(ROOT, 'test/support/list-modules.mjs')).href;

let folder: string;
let script: string[];
beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-loads-'));
  const { scripts } = JSON.parse(await readFile(path.join(ROOT, 'package.json'), 'utf8')) as {
    scripts: { gradus: string };
  };
  script = scripts.gradus.split(' ').slice(1);
  await gradus('--help'); // what has to be made is made
});
afterAll(() => rm(folder, { recursive: true }));

/** As `npm run gradus -- ARGS`, for a folder without servers: commands load what they need and end there. */
const gradus = (args: string, env: NodeJS.ProcessEnv = {}) =>
  runCommand(process.execPath, [...script, ...args.split(' ')], {
    env: { ...process.env, GRADUS_STATE_DIR: path.join(folder, 'none'), ...env },
    cwd: ROOT,
  });

/** Every file that a command and its children load: paths in the checkout. */
async function loadedBy(args: string): Promise<string[]> {
  const lists = await mkdtemp(path.join(folder, 'lists-'));
  await gradus(args, { NODE_OPTIONS: `--import ${LISTER}`, LISTED_MODULES: lists });
  const files: string[] = [];
  for (const name of await readdir(lists)) {
    const lines = (await readFile(path.join(lists, name), 'utf8')).split('\n');
    files.push(...lines.flatMap((line) => line.split(`${ROOT}/`).slice(1)));
  }
  return files;
}

const COMPILERS = ['tsx', 'esbuild', 'typescript'];
const TEMPORAL = ['@temporalio/client', '@temporalio/proto', '@grpc/grpc-js'];
const STORE = ['minio', 'zod'];
const ENGINE = ['onnxruntime-node', '@tensorflow/tfjs', '@huggingface/tokenizers', '@huggingface/jinja'];

test.each([
  { args: '--help', needs: ['commander'], not: [...COMPILERS, ...TEMPORAL, ...STORE, ...ENGINE] },
  { args: 'checkpoints x', needs: ['commander', ...STORE], not: [...COMPILERS, ...TEMPORAL, ...ENGINE] },
  { args: 'ledger x', needs: ['commander', ...STORE], not: [...COMPILERS, ...TEMPORAL, ...ENGINE] },
  {
    args: 'metrics x',
    needs: ['commander', ...STORE],
    not: [...COMPILERS, ...TEMPORAL, ...ENGINE, 'hyparquet-writer', 'protobufjs'],
  },
  { args: 'runs x', needs: ['commander'], not: [...COMPILERS, ...ENGINE, 'hono'] },
  { args: 'start --help', needs: ['commander'], not: [...COMPILERS, ...TEMPORAL, ...ENGINE] },
  { args: 'delete --help', needs: ['commander'], not: [...COMPILERS, ...TEMPORAL, ...ENGINE] },
  { args: 'review --help', needs: ['commander'], not: [...COMPILERS, ...TEMPORAL, ...ENGINE] },
  { args: 'reverify --help', needs: ['commander'], not: [...COMPILERS, ...TEMPORAL, ...ENGINE] },
])('gradus $args loads what it needs and no more', async ({ args, needs, not }) => {
  const loaded = await loadedBy(args);
  const packages = new Set(
    loaded.map((file) => /^node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(file)?.[1] ?? 'ours'),
  );
  expect(needs.filter((name) => !packages.has(name))).toEqual([]);
  expect(not.filter((name) => packages.has(name))).toEqual([]);
  expect(loaded.filter((file) => file.endsWith('.ts'))).toEqual([]);
});

test("the store's client is loaded without its ES modules, for which Node looks through lodash and others for names", async () => {
  const ofClient = (await loadedBy('checkpoints x')).filter((file) => file.startsWith('node_modules/minio/'));
  expect(ofClient).toContain('node_modules/minio/dist/main/minio.js');
  expect(ofClient.filter((file) => file.includes('/esm/'))).toEqual([]);
});
