import { once } from 'node:events';
import { expect, test } from 'vitest';
import { recipesBench } from '../../../bench/recipes/recipes.ts';
import type { BenchRow } from '../../../bench/bench.ts';
import { timeoutSignal } from '../../../core/timeout-signal.ts';
import { readRecipe, recipeNames } from '../../../recipes/recipe.ts';

const LIMIT_MS = 500_000;

// Every run of a recipe in two tiny steps a stage, on real servers. What they teach is not looked at.

test.each(await recipeNames())(
  'all runs of %s come to their end, and each claim has its row',
  async (name) => {
    const said: string[] = [];
    const all: BenchRow[] = [];
    const say = (text: string): void => void said.push(text);
    const signal = timeoutSignal(LIMIT_MS);
    const ended = (async () => {
      for await (const row of recipesBench({ quick: true, only: [name], say, signal })) all.push(row);
      return true;
    })();
    // Whatever does not end, the start or the end of servers too: what was said last tells where it stood.
    const inTime = await Promise.race([ended, once(signal, 'abort').then(() => false)]);
    expect(inTime, said.slice(-20).join('\n')).toBe(true);
    const { runs, claims } = await readRecipe(name);
    for (const run of runs)
      expect(said.some((line) => line.startsWith(`${name}, seed 11, ${run.name}: `))).toBe(true);
    const rows = all.filter(({ seed }) => seed === undefined);
    expect(rows.map(({ claim }) => claim)).toEqual(claims.map(({ claim }) => claim));
    // One seed is all seeds here.
    expect(all).toEqual([...rows.map((row) => ({ ...row, seed: 11 })), ...rows]);
    for (const [i, row] of rows.entries()) {
      // One seed decides nothing.
      expect(row).toMatchObject({ runs: 1, verdict: 'undecided', difference: null });
      expect(row.ours).toBeGreaterThanOrEqual(0);
      expect(row.success !== undefined).toBe(claims[i]!.figure !== undefined);
      const success = row.success?.ours ?? row.ours;
      expect(success).toBeGreaterThanOrEqual(0);
      expect(success).toBeLessThanOrEqual(1);
    }
  },
);
