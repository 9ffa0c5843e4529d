import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { z } from 'zod';
import { GradusError } from '../../../../core/errors.ts';
import { commandLine } from '../../../../core/installation.ts';
import { cacheEntry, cacheRoot } from '../../../../infra/cache-dir.ts';
import type { Need } from '../../../contract/environment.ts';
import type { Mount } from '../../../sandbox/contract.ts';
import type { Tree } from '../tree.ts';

// What `npm run setup:swe` leaves in the cache: pytest in site/, and each package in a file.

/** What decides what the set-up makes: how it is done, the pins, and the programs that run tests. */
const RECIPE = '2';
const INGREDIENTS = [
  'sdists.txt',
  'requirements.txt',
  '../python/canaries.py',
  '../python/run_tests.py',
  '../python/run_group.py',
  '../python/styles.py',
  '../python/apart/wire.py',
  '../python/apart/mirror.py',
  '../python/apart/fresh.py',
  '../python/apart/code.py',
  '../python/apart/tests.py',
];

let folder: string | undefined;

/** Other ingredients, another folder. */
export function preparedFolder(): string {
  folder ??= cacheEntry(cacheRoot(), { name: 'swe', version: digestOfIngredients() });
  return folder;
}

function digestOfIngredients(): string {
  const hash = createHash('sha256').update(RECIPE);
  for (const name of INGREDIENTS) hash.update(readFileSync(path.join(import.meta.dirname, name)));
  return hash.digest('hex').slice(0, 12);
}

/** A package as it is published, and what its tests say of it in the sandbox of this machine. */
export interface PreparedPackage {
  tree: Tree;
  /** Tests that pass, twice. */
  tests: readonly string[];
  /** Those of them that pass, twice, also where the package is in another sandbox. */
  apart: readonly string[];
  /** Tests of which a canary fails, as it must. */
  canaries: readonly string[];
}

const preparedSchema = z.strictObject({
  tree: z.record(z.string(), z.string()),
  tests: z.array(z.string()),
  apart: z.array(z.string()),
  canaries: z.array(z.string()),
});

export const writtenPackage = ({ tree, ...rest }: PreparedPackage): string =>
  JSON.stringify({ tree: Object.fromEntries(tree), ...rest });

const packages = new Map<string, PreparedPackage>();

/** Throws GradusError('environment', 'swe-not-set-up'). */
export function preparedPackage(name: string): PreparedPackage {
  const known = packages.get(name);
  if (known !== undefined) return known;
  const file = path.join(preparedFolder(), `${name}.json`);
  if (!existsSync(file)) throw notSetUp();
  const { tree, ...rest } = preparedSchema.parse(JSON.parse(readFileSync(file, 'utf8')));
  const prepared = { tree: new Map(Object.entries(tree)), ...rest };
  packages.set(name, prepared);
  return prepared;
}

/** pytest, as tests see it in the sandbox. Throws GradusError('environment', 'swe-not-set-up'). */
export function testSite(inFolder = preparedFolder()): Mount {
  const from = path.join(inFolder, 'site');
  if (!existsSync(from)) throw notSetUp();
  return { at: '/site', from };
}

/** The packages that tests can import in the sandbox, by name: their version. */
export const pinnedPackages = (): ReadonlyMap<string, string> =>
  new Map(
    readFileSync(path.join(import.meta.dirname, 'requirements.txt'), 'utf8')
      .trim()
      .split('\n')
      .map((line) => line.split(' ')[0]!.split('==') as [string, string]),
  );

/**
 * Nothing where this machine has packages installed: one of them may be the very one that a policy mends, without its bug.
 * What the set-up leaves at `empty` is mounted over them.
 */
export function noInstalledPackages(): Mount[] {
  const from = path.join(preparedFolder(), 'empty');
  return ['/usr/lib', '/usr/local/lib'].flatMap((lib) =>
    (existsSync(lib) ? readdirSync(lib) : [])
      .filter((name) => /^python3(?:\.\d+)?$/u.test(name))
      .flatMap((name) => ['dist-packages', 'site-packages'].map((folder) => `${lib}/${name}/${folder}`))
      .filter((at) => existsSync(at))
      .map((at) => ({ at, from })),
  );
}

export const isSetUp = (): boolean => existsSync(preparedFolder());

export const packagesNeed = (): Need => ({
  what: 'the packages of swe, and pytest',
  present: isSetUp(),
  setUp: commandLine('setup swe'),
});

const notSetUp = (): GradusError =>
  new GradusError(
    'environment',
    'swe-not-set-up',
    `The environment swe needs its packages and pytest, which are not there: run "${commandLine('setup swe')}" once.`,
  );
