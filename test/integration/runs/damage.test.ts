import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepMadeRun } from '../../support/keep-made-run.ts';
import { MADE_STAGE } from '../../support/made-run.ts';
import { runCommand } from '../../../infra/setup/command.ts';
import { EpisodeIndex } from '../../../runs/find/episode-index.ts';
import { searchEpisodes } from '../../../runs/find/find.ts';
import { readQuery } from '../../../runs/find/find-query.ts';
import { FactCache } from '../../../runs/find/fact-cache.ts';
import { rolloutKey, runKey, stepFactsKey } from '../../../store/keys.ts';
import { COMMAND } from '../../support/gradus-command.ts';
import { ROOT } from '../../support/markdown.ts';
import { pagesOf } from './plain-runs.ts';
import { openTestStore } from '../../support/test-store.ts';

// Of a run some objects are damaged: what is sound is shown, with what cannot be read.

const SIZE = { steps: 3, groups: 2, samples: 2 };
const { server, store } = await openTestStore();
const nowhere = '127.0.0.1:1';
const spec = runKey('made');
const facts = stepFactsKey('made', MADE_STAGE, 2);
const group = rolloutKey('made', MADE_STAGE, 1, 'group-0001');
let folder: string;
let cacheBefore: string | undefined;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-damage-'));
  cacheBefore = process.env['GRADUS_CACHE'];
  process.env['GRADUS_CACHE'] = path.join(folder, 'cache');
  await keepMadeRun(store, 'made', SIZE);
  await keepMadeRun(store, 'twin', SIZE);
  for (const key of [spec, facts, group]) await writeFile(server.fileOf(key), 'no JSON');
}, 600_000);
afterAll(async () => {
  if (cacheBefore === undefined) delete process.env['GRADUS_CACHE'];
  else process.env['GRADUS_CACHE'] = cacheBefore;
  await rm(folder, { recursive: true, force: true });
});

test('pages show the rest, and name what is damaged', async () => {
  const look = pagesOf(store, nowhere);
  const at = (step: number) => `${MADE_STAGE}/${step}`;
  const pages: [path: string, shown: string, named: string[]][] = [
    ['/', 'made unknown levels-1-3, 3 of 3', [spec]],
    ['/runs/made', 'step 3 of 3', [spec, facts]],
    [`/runs/made/steps/${at(1)}`, 'Groups, by how much', [spec, facts, group]],
    [`/runs/made/steps/${at(2)}`, 'Groups, by how much', [spec, facts]],
    [`/runs/made/groups/${at(1)}/0`, 'sample', [spec, group]],
    [`/runs/made/episodes/${at(1)}/0/0`, 'Turns', []],
    ['/runs/made/ladder', 'ladder', [spec]],
    ['/runs/made/checkpoints', 'Checkpoints', []],
    ['/find?run=made', 'of 10 episodes', [spec, group]],
    ['/compare?runs=made,twin', 'do not part in the 2 steps', [spec, facts]],
    ['/compare?runs=made,twin&parting=episodes', 'Every stored episode was compared', [spec, facts]],
    [`/compare?runs=made,twin&at=${MADE_STAGE}/1`, 'that all were asked', [spec, facts, group]],
  ];
  for (const [path, shown, named] of pages) {
    const { status, text } = await look(path);
    expect([path, status, text]).toEqual([path, 200, expect.stringContaining(shown)]);
    expect(text).not.toMatch(/forgotten by Temporal|no sample has solved/);
    for (const key of named) expect([path, text]).toEqual([path, expect.stringContaining(key)]);
  }
}, 600_000);

test('commands give the rest, and name what is damaged', async () => {
  const gradus = (...args: string[]) => {
    const { GRADUS_CACHE: _, ...surroundings } = server.environment();
    const env = {
      ...surroundings,
      ...(cacheBefore && { GRADUS_CACHE: cacheBefore }),
      TEMPORAL_ADDRESS: nowhere,
    };
    return runCommand(process.execPath, [...COMMAND.split(' '), ...args], { env, cwd: ROOT });
  };
  const parquet = path.join(folder, 'rows.parquet');
  const commands: [args: string[], shown: string, named: string[]][] = [
    [['find', 'made'], `made/${MADE_STAGE}/1/0/0`, [spec, group]],
    [['find', 'made', '--jsonl', path.join(folder, 'rows.jsonl')], '', [spec, group]],
    [['find', 'made', '--parquet', path.join(folder, 'found.parquet')], '', [spec, group]],
    [['find', 'made', '--text', 'e', '--atif', path.join(folder, 'with-text')], '', [spec, group]],
    [['compare', 'made', 'twin'], 'do not part in the 2 steps', [spec, facts]],
    [['metrics', 'made'], MADE_STAGE, [spec, facts]],
    [['metrics', 'made', '--parquet', parquet], '', [spec, facts, group]],
    [['episode', `made/${MADE_STAGE}/1/0/0`], 'turn 1', [spec]],
  ];
  for (const [args, shown, named] of commands) {
    const { code, stdout, stderr } = await gradus(...args);
    expect([args, code, stdout, stderr]).toEqual([args, 1, expect.stringContaining(shown), stderr]);
    for (const key of named) expect([args, stderr]).toEqual([args, expect.stringContaining(key)]);
  }
}, 600_000);

test('what was read without a spec is read anew when the spec is mended', async () => {
  const cache = new FactCache();
  const successes = async (): Promise<number> => {
    const index = await EpisodeIndex.open(store, 'made', { cache });
    await index.build();
    return (await searchEpisodes(index, readQuery({}))).success.trials;
  };
  expect(await successes()).toBe(0);
  const whole = (await readFile(server.fileOf(runKey('twin')), 'utf8')).replaceAll('twin', 'made');
  await writeFile(server.fileOf(spec), whole);
  expect(await successes()).toBeGreaterThan(0);
});

test('a stage that there is not is told with those that there are', async () => {
  const index = await EpisodeIndex.open(store, 'twin');
  await index.build();
  const { unknown, total } = await searchEpisodes(
    index,
    readQuery({ stage: [`${MADE_STAGE}x`], tool: ['zzzzzzzz'] }),
  );
  expect(total).toBe(0);
  expect(unknown).toEqual([
    expect.stringMatching(
      new RegExp(
        `no episode has the stage "${MADE_STAGE}x"; did you mean "${MADE_STAGE}"\\? \\(there are: .*${MADE_STAGE}`,
      ),
    ),
    expect.stringMatching(/no episode has the tool "zzzzzzzz" \(there are: /),
  ]);
});

test('a far-fetched name is not suggested', async () => {
  const look = pagesOf(store, nowhere);
  const { text } = await look('/runs/quite-another-one/checkpoints');
  expect(text).toContain('there is no run "quite-another-one" in this store; ');
  expect(text).not.toContain('did you mean');
  expect((await look('/runs/mad/checkpoints')).text).toContain('did you mean "made"');
});
