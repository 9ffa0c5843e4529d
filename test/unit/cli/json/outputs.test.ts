import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { OUTPUTS, outputJsonSchema } from '../../../../cli/json/outputs.ts';
import { recipeOutput } from '../../../../cli/json/recipes.ts';
import { runCommand } from '../../../../infra/setup/command.ts';
import { recipeNames } from '../../../../recipes/recipe.ts';
import { assertOutput } from '../../../support/json-output.ts';
import { ROOT } from '../../../support/markdown.ts';

const SCHEMA = path.join(ROOT, 'examples/output.schema.json');

async function gradus(...args: string[]): Promise<string> {
  const done = await runCommand(
    process.execPath,
    ['--import', 'tsx', path.join(ROOT, 'cli/gradus.ts'), ...args],
    { cwd: ROOT },
  );
  if (done.stdout === '') throw new Error(done.stderr);
  assertOutput(args, done.stdout);
  return done.stdout;
}

test('examples/output.schema.json is the schema; `npm run schema` writes it', () => {
  expect(readFileSync(SCHEMA, 'utf8')).toBe(outputJsonSchema());
});

test('what `check` prints is as the published schema says, also to another program’s validator', async () => {
  const stdout = await gradus('check', 'test/support/uneven-environments.ts', '--json', '--tasks', '2', '--environment', 'repeats'); // prettier-ignore
  const ajv = new Ajv2020({
    schemas: [{ ...(JSON.parse(readFileSync(SCHEMA, 'utf8')) as object), $id: 'output' }],
  });
  const validate = ajv.getSchema('output#/$defs/check')!;
  expect(validate(JSON.parse(stdout))).toBe(true);
  expect(validate({ environments: [], findings: [], more: 1 })).toBe(false);
});

test('what `environments` prints is as its schema says', async () => {
  const lines = (await gradus('environments', '--json')).trim().split('\n');
  expect(lines.length).toBeGreaterThan(5);
});

test('what `recipes` prints names each recipe once, with runs that its claims compare', async () => {
  const lines = (await gradus('recipes', '--json')).trim().split('\n');
  const recipes = lines.map((line) => recipeOutput.parse(JSON.parse(line)));
  expect(recipes.map(({ name }) => name)).toEqual(await recipeNames());
  for (const { runs, claims } of recipes)
    for (const { treatment, control } of claims)
      expect(runs).toEqual(expect.arrayContaining([treatment, ...(control === null ? [] : [control])]));
});

test('each command that has --json has a schema, and prints by it', () => {
  const folder = path.join(ROOT, 'cli/commands');
  const sources = readdirSync(folder).map((file) => ({
    name: path.basename(file, '.ts'),
    source: readFileSync(path.join(folder, file), 'utf8'),
  }));
  const having = sources.filter(({ source }) => source.includes("'--json'"));
  expect(having.length).toBeGreaterThan(12);
  for (const { name, source } of having) {
    expect(Object.keys(OUTPUTS).map((one) => one.split('-')[0])).toContain(name);
    expect(source).toMatch(/printJson\('|messagesLine\(|runAndReport\(/u);
  }
});
