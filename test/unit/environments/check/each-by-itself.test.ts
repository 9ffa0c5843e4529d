import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { checkEnvironments } from '../../../../environments/check/check.ts';
import type { CheckReport } from '../../../../environments/check/check.ts';

const support = (name: string): string => path.resolve(import.meta.dirname, '../../../support', name);
const UNEVEN = support('uneven-environments.ts');
const outcomes = ({ environments }: CheckReport) => environments.map(({ name, outcome }) => [name, outcome]);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-check-'));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true });
});

test('an environment that hangs or ends its process keeps no other from being looked at', async () => {
  const lines: string[] = [];
  const say = (line: string): void => void lines.push(line);
  const checked = await checkEnvironments([UNEVEN], { seconds: 30, saySeconds: 0.5, say });
  expect(outcomes(checked)).toEqual([
    ['waits-for-ever', 'errors'],
    ['repeats', 'nothing-found'],
    ['exits', 'errors'],
    ['repeats-too', 'nothing-found'],
  ]);
  expect(checked.findings.map(({ environment, what }) => [environment, what])).toEqual([
    ['waits-for-ever', 'task(train, level 1, index 0) was under way when 30 s were over'],
    ['exits', 'task(train, level 1, index 0) ended the process (exit code 7)'],
  ]);
  expect(lines).toContainEqual(
    expect.stringMatching(/^1 of 4, waits-for-ever: task\(train, level 1, index 0\), for \d+ s$/),
  );
  const done = lines.filter((line) => !line.includes(', for '));
  expect(done.map((line) => line.replace(/, [\d.]+ s$/, ''))).toEqual([
    '1 of 4, waits-for-ever: errors (1)',
    '2 of 4, repeats: nothing found',
    '3 of 4, exits: errors (1)',
    '4 of 4, repeats-too: nothing found',
  ]);
});

test('environments are chosen by name, and a name that is none is refused with the nearest one', async () => {
  const checked = await checkEnvironments([UNEVEN], { environments: ['repeats-too'] });
  expect(outcomes(checked)).toEqual([['repeats-too', 'nothing-found']]);
  await expect(checkEnvironments([UNEVEN], { environments: ['repeats-to'] })).rejects.toMatchObject({
    type: 'unknown',
    message: expect.stringContaining('did you mean "repeats-too"?') as string,
  });
});

test('what cannot be looked at because its module loads no second time is listed with the reason', async () => {
  vi.stubEnv('LOADS', path.join(folder, 'loads'));
  const checked = await checkEnvironments([UNEVEN], { environments: ['repeats', 'exits', 'repeats-too'] });
  expect(outcomes(checked)).toEqual([
    ['repeats', 'nothing-found'],
    ['exits', 'errors'],
    ['repeats-too', 'not-looked-at'],
  ]);
  expect(checked.environments[2]!.why).toContain('loaded too often');
});

test('a check that is interrupted lists what it has not looked at', async () => {
  const interrupted = new AbortController();
  const say = (line: string): void => {
    if (line.startsWith('1 of 2, repeats: nothing found')) interrupted.abort();
  };
  const { signal } = interrupted;
  const checked = await checkEnvironments([UNEVEN], {
    environments: ['repeats', 'repeats-too'],
    signal,
    say,
  });
  expect(outcomes(checked)).toEqual([
    ['repeats', 'nothing-found'],
    ['repeats-too', 'not-looked-at'],
  ]);
  expect(checked.findings).toEqual([]);
});

test('a module that cannot be loaded keeps no other module from being looked at', async () => {
  const checked = await checkEnvironments([support('nowhere.ts'), UNEVEN], { environments: ['repeats'] });
  expect(outcomes(checked)).toEqual([['repeats', 'nothing-found']]);
  expect(checked.findings).toMatchObject([{ is: 'error', environment: null }]);
  expect(checked.findings[0]!.what).toContain('nowhere.ts');
});

test('what a module says to whoever started its process is heard by nobody', async () => {
  const checked = await checkEnvironments([support('talking-environments.ts')], { tasks: 2, seconds: 300 });
  expect(checked.findings.map(({ what }) => what)).toEqual([]);
  expect(outcomes(checked)).toEqual([['talking', 'nothing-found']]);
});
