import { readdir, readFile } from 'node:fs/promises';
import path from 'node:path';
import { z } from 'zod';
import { GradusError, messageOf } from '../core/errors.ts';
import type { Json } from '../core/json/json.ts';
import { FIGURE_NAMES } from './figure.ts';
import { applyPatch } from './json-patch.ts';

/** That success on test tasks, which no decision of a run has used, is higher; or what `figure` says. */
const claimSchema = z.strictObject({
  /** The direction, in a sentence. */
  claim: z.string(),
  treatment: z.string(),
  /** A run; absent: the treatment itself, as it was before RL. */
  control: z.string().optional(),
  /** What is compared in the place of success, which is then reported beside it. */
  figure: z
    .strictObject({
      name: z.enum(FIGURE_NAMES),
      /** Where the treatment is said to be. */
      direction: z.enum(['lower', 'higher']),
      /** Levels of the test tasks whose success is reported; absent: all. */
      successOf: z.array(z.int()).min(1).optional(),
    })
    .optional(),
});

const patchSchema = z.array(
  z.discriminatedUnion('op', [
    z.strictObject({ op: z.enum(['add', 'replace']), path: z.string(), value: z.json() }),
    z.strictObject({ op: z.literal('remove'), path: z.string() }),
  ]),
);

/** A run is a spec, or what is changed in that of another run. */
const runSchema = z.union([
  z.strictObject({ name: z.string(), spec: z.string() }),
  z.strictObject({ name: z.string(), of: z.string(), changes: patchSchema }),
]);

const recipeSchema = z.strictObject({
  paper: z.string(),
  arxiv: z.string().regex(/^\d{4}\.\d{5}$/),
  /** In the order in which they are made; one may begin with the checkpoint of an earlier one. */
  runs: z.array(runSchema),
  claims: z.array(claimSchema).min(1),
});

export type Claim = z.output<typeof claimSchema>;

/** A spec is named after its run, which is how later ones find its checkpoint. */
export interface RecipeRun {
  name: string;
  spec: { [field: string]: Json };
  /** What differs from another run; absent: it is written as a whole. */
  of?: string;
}

export interface Recipe {
  name: string;
  paper: string;
  arxiv: string;
  runs: RecipeRun[];
  claims: Claim[];
  readme: string;
}

/** In the order of their names. */
export async function recipeNames(): Promise<string[]> {
  const entries = await readdir(import.meta.dirname, { withFileTypes: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => name)
    .toSorted();
}

/** Throws GradusError('spec', 'recipe') for a name that none has, and for a recipe that is not whole. */
export async function readRecipe(name: string): Promise<Recipe> {
  const names = await recipeNames();
  if (!names.includes(name))
    throw new GradusError('spec', 'recipe', `there is no recipe "${name}": ${names.join(', ')}`);
  const folder = path.join(import.meta.dirname, name);
  const read = (file: string): Promise<string> => readFile(path.join(folder, file), 'utf8');
  try {
    const { paper, arxiv, runs, claims } = recipeSchema.parse(JSON.parse(await read('recipe.json')));
    const made: RecipeRun[] = [];
    for (const run of runs) made.push(await makeRun(run, made, read));
    for (const { treatment, control } of claims) {
      specOf(made, treatment);
      if (control !== undefined) specOf(made, control);
    }
    return { name, paper, arxiv, runs: made, claims, readme: await read('README.md') };
  } catch (cause) {
    throw new GradusError('spec', 'recipe', `the recipe ${name} is not whole: ${messageOf(cause)}`, {
      cause,
    });
  }
}

async function makeRun(
  run: z.output<typeof runSchema>,
  earlier: readonly RecipeRun[],
  read: (file: string) => Promise<string>,
): Promise<RecipeRun> {
  const { name } = run;
  const written =
    'spec' in run
      ? (JSON.parse(await read(run.spec)) as Json)
      : applyPatch(specOf(earlier, run.of), run.changes);
  return { name, spec: written as RecipeRun['spec'], ...('of' in run && { of: run.of }) };
}

function specOf(runs: readonly RecipeRun[], name: string): RecipeRun['spec'] {
  const found = runs.find((run) => run.name === name);
  if (found) return found.spec;
  throw new GradusError('spec', 'recipe', `no run ${name} comes before`);
}
