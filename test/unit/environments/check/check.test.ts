import path from 'node:path';
import { beforeAll, expect, test } from 'vitest';
import { checkEnvironments } from '../../../../environments/check/check.ts';
import type { CheckReport } from '../../../../environments/check/check.ts';
import { spread } from '../../../../environments/check/look.ts';

const module = (name: string): string => path.resolve(import.meta.dirname, '../../../support', name);

let checked: CheckReport;
beforeAll(async () => {
  checked = await checkEnvironments([module('careless-environments.ts')], { tasks: 50 });
});

const said = (environment: string): string =>
  checked.findings
    .filter((finding) => finding.environment === environment)
    .map(({ is, what }) => `${is}: ${what}`)
    .join('\n');

test('of an environment without mistakes nothing is said', () => {
  expect(checked.environments.map(({ name }) => name)).toContain('careful');
  expect(said('careful')).toBe('');
});

test.each([
  ['by-chance', 'error: task(train, level 1, index 0) differs in another process'],
  ['leaks', 'error: train, level 1, index 0 and heldout, level 1, index 0 are the same task, "Repeat 0."'],
  ['ends-early', 'error: task(train, level 1, index 41) failed: no such row'],
  ['few', "error: taskCount('test', 1) is 0"],
  ['few', "warning: taskCount('train', 1) is 3"],
  [
    'bad-expert',
    "error: exact-match says 0 of the expert's episode of train, level 1, index 0, way 0 (I do not",
  ],
  ['unknown-tool', 'error: the expert calls an unknown tool (train, level 1, index 0, way 0): "look {}"'],
  [
    'told-unknown-tool',
    'error: the expert calls an unknown tool (train, level 1, index 0, way 0): "look {}"',
  ],
  [
    'wrong-arguments',
    'warning: a tool refuses the arguments of the expert (train, level 1, index 0, way 0): "count {\\"to\\":3}"',
  ],
  [
    'pays-ten',
    "warning: environment says 1 of the expert's episode of train, level 1, index 0, way 0: the environment gave 10, beyond what counts, from 0 to 1",
  ],
  [
    'shares',
    'error: two episodes that are played alternately disturb each other: in that of train, level 1, index 7, way 0 call 2 gave "call 2", then "call 3" beside that of train, level 1, index 0, way 0',
  ],
  ['waits', 'the tool wait took longer than 0.5 s: raise limits.timeoutSeconds or make it faster'],
  [
    'shows-html',
    'warning: a subject of reader cannot be shown (train, level 1, index 0): present() of shows-html gave blocks that are no array',
  ],
  ['throws', 'the tool count failed: boom (test/support/careless-environments.ts:'],
  ['throws', "error: taskCount('test', 1) threw: no test (test/support/careless-environments.ts:"],
  ['ends-early', 'no such row (test/support/careless-environments.ts:'],
  ['misquotes', 'says that count answers "call one", and it answers "call 1"'],
  ['forgets', "error: the expert's episode of train, level 1, index 0, way 0 cannot be played"],
])('%s: %s', (environment, finding) => {
  expect(said(environment)).toContain(finding);
});

test('where a call has taken too long no other episode is played', () => {
  expect(checked.environments.find(({ name }) => name === 'waits')!.episodes).toBe(1);
});

test('a session that comes back as another one is named with both answers', () => {
  expect(said('forgets')).toMatch(/call \d/);
});

test('a module that cannot be loaded, or never is, is one finding', async () => {
  const missing = await checkEnvironments([module('nowhere.ts')]);
  expect(missing.findings).toMatchObject([{ is: 'error', environment: null }]);
  expect(missing.findings[0]!.what).toContain('nowhere.ts');
  const hanging = await checkEnvironments([module('never-loads.ts')], { seconds: 3 });
  expect(hanging.findings).toMatchObject([{ is: 'error', environment: null }]);
  expect(hanging.findings[0]!.what).toMatch(/^Loading .*never-loads\.ts took longer than 3 s$/);
  expect(hanging.findings[0]!.remedy).toContain('--seconds');
});

test('what keeps the process is named by tool, call and task, and has the time of its tool', async () => {
  const { findings } = await checkEnvironments([module('never-answers.ts')], { seconds: 200 });
  expect(findings).toMatchObject([
    {
      is: 'error',
      environment: 'never-answers',
      what: "the tool turn (call 1 of the expert's episode of train, level 1, index 0, way 0) blocked its process for longer than 1 s",
      remedy: expect.stringContaining('end the loop') as string,
    },
  ]);
});

test('tasks are looked at from the first to the last, each once', () => {
  expect(spread(3, 10)).toEqual([0, 1, 2]);
  expect(spread(101, 5)).toEqual([0, 25, 50, 75, 100]);
  expect(spread(101, 1)).toEqual([0]);
  expect(spread('endless', 3)).toEqual([0, 1, 2]);
  expect(spread({ broken: 'said nothing' }, 3)).toEqual([]);
});
