import { beforeAll, describe, expect, test } from 'vitest';
import { quickly } from '../../../bench/recipes/quickly.ts';
import { loadEnvironments } from '../../../environments/families/index.ts';
import { readRecipe, recipeNames } from '../../../recipes/recipe.ts';
import type { Recipe } from '../../../recipes/recipe.ts';
import { parseSpec } from '../../../spec/parse-spec.ts';

let environments: Awaited<ReturnType<typeof loadEnvironments>>;
beforeAll(async () => {
  environments = await loadEnvironments([]);
});

describe.each(await recipeNames())('the recipe %s', (name) => {
  let recipe: Recipe;
  beforeAll(async () => {
    recipe = await readRecipe(name);
  });

  test('has specs that are taken, whole and in quick mode, and which begin with runs that come before them', () => {
    const made = new Set<string>();
    for (const { name: run, spec } of recipe.runs) {
      const parsed = parseSpec(spec, run, environments);
      expect(parsed.run).toBe(run);
      const named = JSON.stringify(spec).matchAll(/"from":"([^"]+)"/g);
      for (const [, from] of named) expect([...made]).toContain(from);
      for (const stage of parseSpec(quickly(spec), run, environments).stages)
        expect(stage).toMatchObject(stage.kind === 'supervised' ? { maxRounds: 1 } : { maxSteps: 2 });
      made.add(run);
    }
  });

  test('compares runs that do all of their steps, so that none has learnt for longer', () => {
    for (const { spec } of recipe.runs.slice(1))
      for (const stage of parseSpec(spec, 'run', environments).stages) {
        if (stage.kind === 'supervised')
          expect(stage).toMatchObject({ maxRounds: 1, graduation: { successAtLeast: 0 } });
        else
          expect(stage).toMatchObject({ graduation: { everySteps: stage.kind === 'rl' && stage.maxSteps } });
      }
  });

  test('is used with a real model by changing two lines', () => {
    const [first, ...later] = recipe.runs;
    expect(first!.name).toBe('warm-start');
    for (const { spec, name: run } of later.filter(({ spec }) =>
      JSON.stringify(spec).includes('"learningRate":0.0003'),
    )) {
      const text = JSON.stringify(spec, undefined, 2);
      const changed = text
        .replace('"from": "warm-start"', '"from": "my-model"')
        .replace('"learningRate": 0.0003', '"learningRate": 0.000001');
      const lines = changed.split('\n');
      expect(text.split('\n').filter((line, i) => line !== lines[i])).toHaveLength(2);
      expect(parseSpec(JSON.parse(changed), run, environments).model).toMatchObject({ run: 'my-model' });
    }
  });

  test('says on its page whose paper it is, what it claims, and how it is run', () => {
    const { readme, arxiv, claims } = recipe;
    expect(readme).toContain(`https://arxiv.org/abs/${arxiv}`);
    expect(readme).toContain(`npm run bench -- recipes --recipe ${name}`);
    // Where it is not installed, npx would look on npm for another package of that name.
    const [before] = readme.split('npx gradus init');
    expect(before).toContain('[with the package installed](../../README.md#your-own-agent)');
    for (const { claim } of claims) expect(readme).toContain(claim);
    for (const heading of ['What is equal', 'What is scaled down', 'With a real model', 'Measured'])
      expect(readme).toContain(`## ${heading}`);
  });
});

test('a recipe that is not there is named beside those that are', async () => {
  await expect(readRecipe('r2')).rejects.toThrow(/no recipe "r2": .*r1-grpo/);
});
