import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { Command } from 'commander';
import { GradusError, messageOf } from '../../core/errors.ts';
import { commandLine, IN_CHECKOUT } from '../../core/installation.ts';
import { isThere } from '../is-there.ts';
import { ownManifest } from '../own-manifest.ts';
import { print } from '../printable.ts';
import { writeRecipe } from '../write-recipe.ts';

/** A small agent of one's own, to be changed; `my-agent` in it stands for the name. */
const TEMPLATE = path.resolve(import.meta.dirname, '..', 'template');
const PLACEHOLDER = 'my-agent';

interface Manifest {
  [field: string]: unknown;
  scripts?: Record<string, string>;
  devDependencies?: Record<string, string>;
  gradus?: { environments?: unknown };
}

/** `gradus init [NAME]`: writes into the working directory, over nothing that is there. With `--recipe` a recipe's specs. */
export function initCommand(): Command {
  return new Command('init')
    .argument('[name]', "name of the environment (default: the folder's)")
    .option('--recipe <name>', 'the specs of a published system instead, and its page')
    .action(async (given: string | undefined, { recipe }: { recipe?: string }, command: Command) => {
      if (recipe !== undefined) {
        if (given !== undefined) command.error('error: a recipe brings no environment that a name is for');
        const files = await writeRecipe(process.cwd(), recipe);
        files.push(...(await writeDotfiles(process.cwd())));
        print(`wrote ${files.join(', ')}\n`);
        // Of a checkout its scripts run there, wherever the specs were written.
        const spec = IN_CHECKOUT ? path.resolve('warm-start.json') : 'warm-start.json';
        print(`Next: README.md says what they are, and "${commandLine(`train ${spec}`)}" begins.`);
        return;
      }
      const name = nameFrom(given ?? path.basename(process.cwd()));
      const written = await writeProject(process.cwd(), name);
      print(`wrote ${written.join(', ')}\n`);
      print(
        'Next:\n' +
          '  npx gradus check environment.ts   does the environment do what training relies on?\n' +
          '  npm test                          the same, as a test\n' +
          '  npm install && npx tsc            checks the types, as an editor does\n' +
          '  npx gradus train spec.json        trains it; the first time it sets up servers and the learner\n',
      );
    });
}

/** Throws GradusError('environment', 'name'). */
function nameFrom(text: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-+|-+$/g, '');
  if (name !== '') return name;
  throw new GradusError('environment', 'name', `${JSON.stringify(text)} makes no name: gradus init my-agent`);
}

/** Returns the names of the files. Throws GradusError('environment', 'exists') before anything is written. */
export async function writeProject(folder: string, name: string): Promise<string[]> {
  const files = (await readdir(TEMPLATE)).toSorted();
  const own = path.join(folder, 'package.json');
  const there = files.filter((file) => isThere(path.join(folder, file)));
  if (isThere(own) && !existsSync(own)) there.push('package.json');
  if (there.length > 0) {
    throw new GradusError(
      'environment',
      'exists',
      `${there.join(', ')} ${there.length === 1 ? 'is' : 'are'} there already, and nothing is overwritten: ` +
        'begin in an empty folder, or move what is there',
    );
  }
  // Read first, since it may be damaged.
  const manifest = await manifestOf(own, name);
  for (const file of files) {
    const text = await readFile(path.join(TEMPLATE, file), 'utf8');
    await writeFile(path.join(folder, file), text.replaceAll(PLACEHOLDER, name), { flag: 'wx' });
  }
  await writeFile(own, `${JSON.stringify(manifest, undefined, 2)}\n`, { flag: existsSync(own) ? 'w' : 'wx' });
  return [...files, 'package.json', ...(await writeDotfiles(folder))];
}

/** Those that are not there yet. */
async function writeDotfiles(folder: string): Promise<string[]> {
  const made: string[] = [];
  for (const [file, text] of Object.entries(DOTFILES)) {
    if (isThere(path.join(folder, file))) continue;
    await writeFile(path.join(folder, file), text, { flag: 'wx' });
    made.push(file);
  }
  return made;
}

/** Not in the template, since npm leaves them out of packages. */
const DOTFILES = {
  '.gitignore': 'node_modules\n.gradus\n',
  // Packages of TensorFlow and onnxruntime would download what Gradus sets up itself.
  '.npmrc': 'ignore-scripts=true\n',
};

/** What the project's tsconfig.json asks for, in the versions that Gradus itself is checked with. */
function typescript(): Record<string, string> {
  const { devDependencies } = ownManifest();
  return Object.fromEntries(['@types/node', 'typescript'].map((name) => [name, devDependencies[name]!]));
}

/** The project's package.json, which npm has made when it installed Gradus, with what is missing in it. */
async function manifestOf(file: string, name: string): Promise<Manifest> {
  let manifest: Manifest = {};
  try {
    if (existsSync(file)) manifest = JSON.parse(await readFile(file, 'utf8')) as Manifest;
  } catch (cause) {
    throw new GradusError('environment', 'exists', `cannot read ${file}: ${messageOf(cause)}`, { cause });
  }
  const listed: unknown[] = Array.isArray(manifest.gradus?.environments) ? manifest.gradus.environments : [];
  return {
    name,
    version: '0.1.0',
    private: true,
    ...manifest,
    type: 'module',
    scripts: {
      types: 'tsc',
      test: 'node --import gradus/typescript --test environment.test.ts',
      ...manifest.scripts,
    },
    devDependencies: { ...typescript(), ...manifest.devDependencies },
    gradus: { ...manifest.gradus, environments: [...new Set([...listed, './environment.ts'])] },
  };
}
