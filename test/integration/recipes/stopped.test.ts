import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { expect, test } from 'vitest';
import { recipesBench } from '../../../bench/recipes/recipes.ts';
import { readRecipe } from '../../../recipes/recipe.ts';
import type { BenchRow } from '../../../bench/bench.ts';

const RECIPE = 'r1-grpo';
const RUN = path.resolve(import.meta.dirname, '../../../bench/run.ts');

test('each seed that has ended has its rows before the next one begins', async () => {
  const { claims } = await readRecipe(RECIPE);
  const said: string[] = [];
  const rows: BenchRow[] = [];
  const { signal } = new AbortController();
  const say = (text: string): void => void said.push(text);
  const measured = recipesBench({ quick: true, only: [RECIPE], seeds: [23, 5], say, signal });
  for await (const row of measured) {
    rows.push(row);
    // Stopped here, the measurement has this seed.
    if (rows.length === claims.length) break;
  }
  expect(rows.map(({ claim, seed, runs }) => ({ claim, seed, runs }))).toEqual(
    claims.map(({ claim }) => ({ claim, seed: 23, runs: 1 })),
  );
  expect(said.some((line) => line.startsWith(`${RECIPE}, seed 23, `))).toBe(true);
  expect(said.some((line) => line.startsWith(`${RECIPE}, seed 5, `))).toBe(false);
});

test('a measurement that is stopped in the middle of a run ends in order', async () => {
  const measuring = spawn(process.execPath, ['--import', 'tsx', RUN, 'recipes', '--recipe', RECIPE], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const ended = once(measuring, 'close');
  let shown = '';
  measuring.stdout.resume();
  measuring.stderr.setEncoding('utf8');
  for await (const text of measuring.stderr as AsyncIterable<string>) {
    const before = /^ {2}\S/m.test(shown);
    shown += text;
    // A line of progress: the run's result is waited for.
    if (!before && /^ {2}\S/m.test(shown)) measuring.kill('SIGINT');
  }
  const [code] = (await ended) as [number | null];
  expect(shown).toContain('stopping …');
  expect(shown).not.toMatch(/shut down|Error/);
  expect(code).toBe(130);
});
