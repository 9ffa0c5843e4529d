import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { GradusError } from '../core/errors.ts';
import { IN_CHECKOUT } from '../core/installation.ts';
import { readRecipe } from '../recipes/recipe.ts';
import { isThere } from './is-there.ts';

/** From a folder of `recipes/`, as links on its page have it. */
const FROM_RECIPE = '../../';

/**
 * The specs of a recipe and its page, each spec as a whole. Returns the names of the files. Throws what `readRecipe`
 * throws, and GradusError('spec', 'exists') before anything is written.
 */
export async function writeRecipe(folder: string, name: string): Promise<string[]> {
  const { runs, readme } = await readRecipe(name);
  const root = IN_CHECKOUT ? path.resolve(import.meta.dirname, '..') : 'node_modules/gradus';
  const compiled = IN_CHECKOUT ? root : `${root}/dist`;
  const page = readme
    .replaceAll(`](${FROM_RECIPE}`, `](${root}/`)
    .replaceAll('](recipe.json)', `](${compiled}/recipes/${name}/recipe.json)`);
  const files = new Map([['README.md', page]]);
  for (const { name: run, spec } of runs) {
    const written = { ...spec, $schema: schemaPath(compiled) };
    files.set(`${run}.json`, `${JSON.stringify(written, undefined, 2)}\n`);
  }
  const there = [...files.keys()].filter((file) => isThere(path.join(folder, file)));
  if (there.length > 0)
    throw new GradusError(
      'spec',
      'exists',
      `${there.join(', ')}: already there, and nothing is overwritten. Begin in an empty folder, or move them`,
    );
  for (const [file, text] of files) await writeFile(path.join(folder, file), text, { flag: 'wx' });
  return [...files.keys()];
}

const schemaPath = (compiled: string): string =>
  `${IN_CHECKOUT ? '' : './'}${compiled}/examples/curriculum.schema.json`;
