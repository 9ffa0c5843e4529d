import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { writeRecipe } from '../../../cli/write-recipe.ts';
import { readRecipe } from '../../../recipes/recipe.ts';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-write-recipe-'));
});
afterEach(() => rm(folder, { recursive: true }));

test('each run is a whole spec of its name, and a control differs by what its recipe says', async () => {
  const files = await writeRecipe(folder, 'ragen-starpo-s');
  expect(files).toEqual([
    'README.md',
    'warm-start.json',
    'treatment.json',
    'unfiltered.json',
    'four-samples.json',
  ]);
  const lines = async (file: string) => (await readFile(path.join(folder, file), 'utf8')).split('\n');
  const [treatment, control] = [await lines('treatment.json'), await lines('unfiltered.json')];
  expect(control.filter((line, i) => line !== treatment[i]).map((line) => line.trim())).toEqual([
    '"keepGroups": 1,',
  ]);
  const { runs } = await readRecipe('ragen-starpo-s');
  expect({ ...(JSON.parse(treatment.join('\n')) as object), $schema: undefined }).toEqual({
    ...runs[1]!.spec,
    $schema: undefined,
  });
});

test('nothing is written where one of the files is there already', async () => {
  await writeFile(path.join(folder, 'treatment.json'), 'mine');
  await expect(writeRecipe(folder, 'r1-grpo')).rejects.toMatchObject({ type: 'exists' });
  expect(await readdir(folder)).toEqual(['treatment.json']);
  expect(await readFile(path.join(folder, 'treatment.json'), 'utf8')).toBe('mine');
});
