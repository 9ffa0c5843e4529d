import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { caseOf, SETTING, unmasked } from '../../../bench/methods/cases.ts';
import { compareMethods } from '../../../bench/methods/comparison.ts';
import type { Trial } from '../../../bench/methods/trial.ts';

let out: string;
beforeAll(async () => {
  out = await mkdtemp(path.join(tmpdir(), 'gradus-trials-'));
});
afterAll(() => rm(out, { recursive: true, force: true }));

const small = { groupsPerStep: 4, numGenerations: 4 };
const comparison = {
  name: 'small',
  title: 'Small',
  setting: {
    ...SETTING,
    name: 'small',
    warmStart: { updatesPerRound: 5, successAtLeast: 0 },
    budget: 1500,
    looks: 2,
    tasks: 16,
  },
  cases: [
    caseOf('grpo', small),
    caseOf('unmasked', small, { alter: unmasked }),
    caseOf('remax', { ...small, algorithm: { kind: 'remax' } }),
  ],
  seeds: [1],
  panels: [{ heading: 'all', cases: ['grpo', 'unmasked', 'remax'] }],
};

const compareThose = (only: string[], resume: boolean): Promise<Trial[]> =>
  compareMethods(
    { ...comparison, only: new Set(only) },
    { quick: true, out, resume, say: () => undefined, signal: new AbortController().signal },
  );

test('trials begin alike, end with the step in which they have their tokens, and are taken up where they were left', async () => {
  const first = await compareThose(['grpo', 'unmasked'], false);
  expect(first.map((trial) => trial.case)).toEqual(['grpo', 'unmasked']);
  const all = await compareThose(['grpo', 'unmasked', 'remax'], true);
  expect(all.slice(0, 2)).toEqual(first);

  for (const { points, steps } of all) {
    expect(points[0]).toEqual(first[0]!.points[0]);
    const { tokens } = points.at(-1)!;
    expect(tokens).toBeGreaterThanOrEqual(1500);
    // Without its last step it had not had them: no step has twice the mean.
    expect(tokens * (1 - 2 / steps)).toBeLessThan(1500);
  }
  // Of the same samples something else was learnt.
  expect(new Set(all.map(({ weights }) => weights)).size).toBe(3);

  const file = JSON.parse(await readFile(path.join(out, 'small.json'), 'utf8')) as { trials: unknown[] };
  expect(file.trials).toEqual(all);
  expect(await readFile(path.join(out, 'small.svg'), 'utf8')).toContain('<polyline');
}, 600_000);
