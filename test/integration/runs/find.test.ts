import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepMadeRun } from '../../support/keep-made-run.ts';
import { MADE_EVALUATION, MADE_STAGE, madeEvaluation, madeGroup, madeSpec } from '../../support/made-run.ts';
import { episodeFactsOf } from '../../../core/episode/facts.ts';
import type { EpisodeFacts } from '../../../core/episode/facts.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { matches, readQuery } from '../../../runs/find/find-query.ts';
import { commonTasks } from '../../../runs/comparison/compare.ts';
import { placeOf } from '../../../runs/episodes/place.ts';
import type { TextHit } from '../../../runs/find/search-text.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { assertOutput } from '../../support/json-output.ts';
import { ROOT } from '../../support/markdown.ts';
import { pagesOf } from './plain-runs.ts';
import { openTestStore } from '../../support/test-store.ts';

// What is found by a command, with nothing but a store.

const { server, store } = await openTestStore();
const SIZE = { steps: 20, groups: 3, samples: 8 };
const { reward } = madeSpec('made');
let folder: string;
let all: (EpisodeFacts & { stage: string; step: number; place: string })[];

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-find-'));
  await keepMadeRun(store, 'made', SIZE);
  const stages = Array.from({ length: SIZE.steps }, (_, i) =>
    [0, 1, 2].map((group) => ({
      stage: MADE_STAGE,
      step: i + 1,
      group,
      made: madeGroup(SIZE, i + 1, group),
    })),
  ).flat();
  const held = { stage: MADE_EVALUATION, step: 20, group: 0, made: madeEvaluation(SIZE, 20) };
  all = [...stages, held].flatMap(({ made, ...place }) =>
    episodeFactsOf(made, reward).map((facts) => ({
      ...place,
      ...facts,
      place: placeOf({ run: 'made', ...place, episode: facts.episode }),
    })),
  );
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function gradus(...args: string[]): Promise<{ code: number | null; stdout: string; stderr: string }> {
  const env = {
    ...server.environment(),
    GRADUS_CACHE: path.join(folder, 'cache'),
    TEMPORAL_ADDRESS: '127.0.0.1:1',
  };
  const command = ['--import', 'tsx', 'cli/gradus.ts', ...args];
  const done = await runCommand(process.execPath, command, { env, cwd: ROOT });
  if (args.includes('--json')) assertOutput(args, done.stdout);
  return done;
}

const WORDS = ['--split', 'train', '--level', '2', '--level', '3', '--max-reward', '0.5', '--from-step', '3'];
const wanted = () => {
  const query = readQuery({ split: ['train'], level: ['2', '3'], 'max-reward': ['0.5'], 'from-step': ['3'] });
  return all.filter(({ stage, step, ...facts }) => matches(query, { stage, step, facts }));
};

test('what matches is printed, sorted, with how much there is', async () => {
  const { code, stdout, stderr } = await gradus(
    'find',
    'made',
    ...WORDS,
    '--sort',
    'tokens',
    '--order',
    'descending',
    '--limit',
    '7',
  );
  expect(code, stderr).toBe(0);
  const expected = wanted()
    .toSorted((a, b) => b.sampledTokens - a.sampledTokens)
    .slice(0, 7);
  expect(
    stdout
      .trim()
      .split('\n')
      .map((line) => line.split('  ')[0]),
  ).toEqual(expected.map(({ place }) => place));
  expect(stderr).toContain(`${wanted().length} of ${all.length} episodes, 0.0 % solved`);

  const json = await gradus('find', 'made', '--error', 'malformed-call', '--json', '--limit', '1000');
  const lines = json.stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as EpisodeFacts & { place: string });
  const erred = all.filter(({ errors }) => errors['malformed-call'] !== undefined);
  expect(lines.map(({ place }) => place).toSorted()).toEqual(erred.map(({ place }) => place).toSorted());
});

test('a text is found where it stands, whatever case it is in', async () => {
  const { code, stdout, stderr } = await gradus(
    'find',
    'made',
    '--stage',
    MADE_STAGE,
    '--text',
    'THERE IS NO TOOL',
    '--limit',
    '1000',
  );
  expect(code, stderr).toBe(0);
  const places = all.filter(
    ({ errors, stage }) => stage === MADE_STAGE && errors['unknown-tool'] !== undefined,
  );
  expect(places.length).toBeGreaterThan(0);
  const lines = stdout.trim().split('\n');
  expect(lines.map((line) => line.split('  ')[0])).toEqual(places.map(({ place }) => place));
  expect(lines[0]).toContain('observation 1: error: »there is no tool« "search"');
});

test('what was found is written for other programs', async () => {
  const file = (name: string): string => path.join(folder, name);
  const { code, stderr } = await gradus(
    'find',
    'made',
    ...WORDS,
    '--parquet',
    file('rows.parquet'),
    '--jsonl',
    file('chats.jsonl'),
    '--atif',
    file('atif'),
  );
  expect(code, stderr).toBe(0);
  const places = wanted().map(({ place }) => place);

  const rows = await parquetReadObjects({ file: await asyncBufferFromFile(file('rows.parquet')) });
  expect(rows).toHaveLength(places.length);
  expect(rows[0]).toMatchObject({ stage: MADE_STAGE, tools: JSON.stringify(wanted()[0]!.tools) });

  const lines = (await readFile(file('chats.jsonl'), 'utf8')).trim().split('\n');
  const chats = lines.map(
    (line) => JSON.parse(line) as { place: string; messages: { role: string }[]; reward: number | null },
  );
  expect(chats.map(({ place }) => place)).toEqual(places);
  expect(chats.every(({ messages }) => messages[0]!.role === 'user')).toBe(true);

  const schema = JSON.parse(await readFile('test/fixtures/atif/trajectory.schema.json', 'utf8')) as object;
  const validate = new Ajv2020({ strict: false }).compile(schema);
  const names = await readdir(file('atif'));
  expect(names).toHaveLength(places.length);
  const written = await Promise.all(
    names.map(
      async (name) =>
        JSON.parse(await readFile(path.join(file('atif'), name), 'utf8')) as { trajectory_id: string },
    ),
  );
  for (const trajectory of written) expect(validate(trajectory), JSON.stringify(validate.errors)).toBe(true);
  expect(written.map(({ trajectory_id }) => trajectory_id).toSorted()).toEqual(places.toSorted());
});

test('samples with a hint are told from the others, and found alone', async () => {
  const size = { steps: 1, groups: 1, samples: 4 };
  await keepMadeRun(store, 'hinted', size);
  const { tasks, ...group } = madeGroup(size, 1, 0);
  const hinted = tasks.map((task) => ({ ...task, learntBehind: [1, 2, 3] }));
  const place = { run: 'hinted', stage: MADE_STAGE, step: 1 };
  await putTrajectories(store, place, { ...group, id: 'group-0001', tasks: hinted });
  const at = (number: number) => `hinted/${MADE_STAGE}/1/${number}/0`;

  // What hints brought about is not how often the task is solved without.
  const { tasks: common } = await commonTasks(store, ['hinted', 'made'], { stage: MADE_STAGE, step: 1 });
  expect(common.map(({ of }) => of[0]!.length)).toEqual([4]);

  const [without, withHint, both, shown] = await Promise.all([
    gradus('find', 'hinted', '--hint', 'no', '--json'),
    gradus('find', 'hinted', '--hint', 'yes'),
    gradus('find', 'hinted', '--jsonl', path.join(folder, 'hinted.jsonl')),
    gradus('episode', at(1)),
  ]);
  const rows = without.stdout.trim().split('\n');
  expect(rows.map((line) => (JSON.parse(line) as { group: number; hinted: boolean }).hinted)).toEqual(
    Array.from({ length: 4 }, () => false),
  );
  expect(withHint.stderr).toContain('4 of 8 episodes');
  expect(withHint.stdout.split('\n')[0]).toMatch(/, with a hint {2}/u);
  expect(both.code, both.stderr).toBe(0);
  const chats = (await readFile(path.join(folder, 'hinted.jsonl'), 'utf8')).trim().split('\n');
  expect(chats.map((line) => (JSON.parse(line) as { hinted: boolean }).hinted)).toEqual(
    Array.from({ length: 8 }, (_, i) => i >= 4),
  );
  expect(shown.stdout).toMatch(/^calculator, level \d, train \d+, with a hint behind the prompt; weights /);
  expect((await gradus('episode', at(0))).stdout).not.toContain('hint');

  const page = pagesOf(store, '127.0.0.1:1');
  const textOf = async (path: string): Promise<string> => (await page(path)).text;
  const stepOne = `${MADE_STAGE}/1`;
  expect(await textOf('/find?run=hinted')).toContain('(with a hint)');
  expect(await textOf('/find?run=made')).not.toContain('with a hint');
  expect(await textOf(`/runs/hinted/episodes/${stepOne}/1/0`)).toContain(', with a hint; sampled by');
  expect(await textOf(`/runs/hinted/groups/${stepOne}/1`)).toContain(
    'with a hint, because samples had failed it',
  );
  const step = await textOf(`/runs/hinted/steps/${stepOne}`);
  expect(step.match(/\(with a hint\)/gu)).toHaveLength(1);
  // Rewards are those of samples without a hint.
  const rewarded = episodeFactsOf({ ...group, tasks }, reward).filter(
    ({ reward: earned }) => earned !== null,
  );
  expect(step).toContain(`Rewards of ${rewarded.length} episodes`);
});

test('what has a text is written for other programs, and how often it succeeded is said', async () => {
  const words = ['find', 'made', '--stage', MADE_STAGE, '--text', 'there is no tool'];
  const places = all.filter(
    ({ errors, stage }) => stage === MADE_STAGE && errors['unknown-tool'] !== undefined,
  );
  const file = path.join(folder, 'with-text.jsonl');
  const { code, stderr } = await gradus(...words, '--jsonl', file);
  expect(code, stderr).toBe(0);
  const lines = (await readFile(file, 'utf8')).trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { place: string }).place)).toEqual(
    places.map(({ place }) => place),
  );
  const [said, json] = await Promise.all([
    gradus(...words, '--limit', '1000'),
    gradus(...words, '--limit', '2', '--json'),
  ]);
  expect(said.stderr).toContain(`${places.length} episodes, 0.0 % solved`);
  expect(
    json.stdout
      .trim()
      .split('\n')
      .map((line) => (JSON.parse(line) as TextHit).success),
  ).toEqual([false, false]);
});

test('one episode is shown turn by turn; what cannot be asked, or is not there, is said', async () => {
  const [failed] = all.filter(({ status, step }) => status === 'answered' && step < 20);
  const { stdout, stderr, code } = await gradus('episode', failed!.place);
  expect(code, stderr).toBe(0);
  expect(stdout).toMatch(/^calculator, level \d, train \d+; weights [0-9a-f]{12}\n— prompt\n/);
  expect(stdout).toContain('<tool_call>{"name":"calculator"');
  expect(stdout).toContain('exact-match@1 ');

  const [badWord, badPlace, noGroup, noRun] = await Promise.all([
    gradus('find', 'made', '--outcome', 'won'),
    gradus('episode', 'made/1/0'),
    gradus('episode', `made/${MADE_STAGE}/3/77/0`),
    gradus('find', 'mad'),
  ]);
  expect(badWord.stderr).toMatch(/outcome cannot be looked for/);
  expect(badPlace.stderr).toMatch(/3 parts and not five/);
  expect(noGroup.stderr).toMatch(/no such group\. ".*find made --stage [^"]+" shows the places of episodes/u);
  expect(noRun.stderr).toMatch(/did you mean "made"/);
  expect([badWord, badPlace, noGroup, noRun].map((said) => said.code)).toEqual([1, 1, 1, 1]);
});
