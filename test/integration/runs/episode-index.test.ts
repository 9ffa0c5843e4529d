import { mkdtemp, readdir, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepMadeRun } from '../../support/keep-made-run.ts';
import { MADE_EVALUATION, MADE_STAGE, madeGroup, madeSpec } from '../../support/made-run.ts';
import { episodeFactsOf } from '../../../core/episode/facts.ts';
import { EpisodeIndex } from '../../../runs/find/episode-index.ts';
import type { FactsInStep, IndexedStep, IndexProgress, Scanned } from '../../../runs/find/episode-index.ts';
import { FactCache } from '../../../runs/find/fact-cache.ts';
import { FindJobs, MOST_HITS } from '../../../runs/find/find-jobs.ts';
import { searchEpisodes } from '../../../runs/find/find.ts';
import { foundIn } from '../../../runs/find/found-episodes.ts';
import { foundWithText } from '../../../runs/find/search-text.ts';
import { messageLines, writeMessages } from '../../../runs/exports/export-found.ts';
import { readQuery } from '../../../runs/find/find-query.ts';
import { rolloutKey, runPrefix } from '../../../store/keys.ts';
import { putTrajectories } from '../../../store/rollout/trajectories.ts';
import { openTestStore } from '../../support/test-store.ts';

const { server, store } = await openTestStore();
const SIZE = { steps: 45, groups: 2, samples: 3 };
const { reward } = madeSpec('made');
let folder: string;
let cache: FactCache;

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-index-'));
  cache = new FactCache(path.join(folder, 'usual'));
  await keepMadeRun(store, 'made', SIZE);
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const files = async (within = folder): Promise<string[]> =>
  (await readdir(within, { recursive: true, withFileTypes: true }))
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));

async function scanned(
  index: EpisodeIndex,
): Promise<Scanned & { known: IndexedStep[]; rows: FactsInStep[] }> {
  const known: IndexedStep[] = [];
  const scan = await index.scan((step) => void known.push(step));
  return { ...scan, known, rows: known.flatMap(({ facts }) => facts) };
}

/** What the trajectories of a step say, as they were made. */
const fresh = (step: number, { groups, samples }: typeof SIZE = SIZE): FactsInStep[] =>
  Array.from({ length: groups }, (_, group) =>
    episodeFactsOf(madeGroup({ ...SIZE, groups, samples }, step, group), reward).map((facts) => ({
      ...facts,
      group,
    })),
  ).flat();

test('a build that is ended goes on where it was; what is known then is what the trajectories say', async () => {
  const index = await EpisodeIndex.open(store, 'made', { cache });
  expect(index.size).toBe(45 + 2);
  expect(await scanned(index)).toMatchObject({ steps: 0, missing: 47 });

  const ended = new AbortController();
  const seen: IndexProgress[] = [];
  const progress = (at: IndexProgress): void => {
    seen.push(at);
    if (at.done === 20) ended.abort(new Error('enough'));
  };
  await expect(index.build({ progress, signal: ended.signal })).rejects.toThrow('enough');
  const { missing } = await scanned(index);
  expect(missing).toBeGreaterThan(20);
  expect(missing).toBeLessThan(47);

  // Two at the same time, one of which takes over what the ended one has kept.
  const again: IndexProgress[] = [];
  const other = await EpisodeIndex.open(store, 'made', { cache: new FactCache(path.join(folder, 'usual')) });
  await Promise.all([index.build({ progress: (at) => again.push(at) }), other.build()]);
  expect(again.at(-1)).toEqual({ done: 47, total: 47 });

  const { rows, known, ...all } = await scanned(await EpisodeIndex.open(store, 'made', { cache }));
  expect(all).toMatchObject({ steps: 47, missing: 0, unreadable: [] });
  expect(rows).toHaveLength(45 * 6 + 2 * 64);
  for (const { stage, step, facts } of known) {
    if (stage === MADE_STAGE) expect(facts).toEqual(fresh(step));
    else expect(stage).toBe(MADE_EVALUATION);
  }
}, 600_000);

test('what is closed is not looked at again; what goes on is, and what a ladder says of it counts', async () => {
  const key = (step: number, group: string): string => rolloutKey('made', MADE_STAGE, step, group);
  await store.remove([key(3, 'group-0001')]);
  const place = { run: 'made', stage: MADE_STAGE, step: 45 };
  const judged = madeGroup(SIZE, 45, 1);
  for (const episode of judged.episodes) episode.outcome = { kind: 'pending', tier: 'simulation' };
  await putTrajectories(store, place, { ...judged, id: 'group-0001.judged' });
  await putTrajectories(store, place, { ...judged, id: 'group-0000.late-x-46' });

  const index = await EpisodeIndex.open(store, 'made', { cache });
  expect(await scanned(index)).toMatchObject({ steps: 47, missing: 1 });
  await index.build();
  const { known, missing } = await scanned(index);
  expect(missing).toBe(0);
  expect(known.find(({ step }) => step === 3)!.facts.length).toBe(6);
  const newest = known.find(({ stage, step }) => stage === MADE_STAGE && step === 45)!.facts;
  expect(newest.map(({ group, outcome }) => `${group} ${outcome}`)).toEqual([
    ...fresh(45)
      .slice(0, 3)
      .map(({ outcome }) => `0 ${outcome}`),
    '1 pending',
    '1 pending',
    '1 pending',
  ]);

  await keepMadeRun(store, 'made', { ...SIZE, steps: 46 }, { from: 46 });
  const later = await EpisodeIndex.open(store, 'made', { cache });
  expect((await scanned(later)).missing).toBe(1);
  await later.build();
  const { rows, total } = await searchEpisodes(later, readQuery({ 'from-step': ['46'] }));
  expect(total).toBe(6);
  expect(rows.map(({ stage, step, ...facts }) => [stage, step, facts])).toEqual(
    fresh(46).map((facts) => [MADE_STAGE, 46, facts]),
  );
});

test('files that are damaged, gone or too many are made anew, and nothing is told wrongly', async () => {
  const index = await EpisodeIndex.open(store, 'made', { cache });
  const [first, second] = await files(path.join(folder, 'usual'));
  await writeFile(first!, 'of a disk that lies');
  await truncate(second!, (await stat(second!)).size - 1);
  expect((await scanned(index)).missing).toBeGreaterThan(0);
  await index.build();
  expect((await scanned(index)).missing).toBe(0);

  const small = path.join(folder, 'small');
  const crowded = await EpisodeIndex.open(store, 'made', { cache: new FactCache(small, 150_000) });
  await crowded.build();
  const sizes = await Promise.all((await files(small)).map(async (file) => (await stat(file)).size));
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(150_000 * (1 + 1 / 16));
  const { rows, missing } = await scanned(crowded);
  expect(missing).toBeGreaterThan(0);
  expect(rows.length).toBeLessThan(46 * 6 + 2 * 64);
});

test('a group that is damaged is named, the others are there, and it is tried again', async () => {
  await keepMadeRun(store, 'torn', { steps: 3, groups: 2, samples: 2 });
  const key = rolloutKey('torn', MADE_STAGE, 2, 'group-0000');
  await writeFile(server.fileOf(key), '{}');
  const index = await EpisodeIndex.open(store, 'torn', { cache });
  await index.build();
  const { rows, missing, unreadable } = await scanned(index);
  expect({ rows: rows.length, missing }).toEqual({ rows: 10, missing: 0 });
  expect(unreadable).toEqual([{ key, message: expect.stringContaining('it was damaged or replaced') }]);

  await store.remove([key]);
  await putTrajectories(
    store,
    { run: 'torn', stage: MADE_STAGE, step: 2 },
    madeGroup({ ...SIZE, samples: 2 }, 2, 0),
  );
  await index.build();
  expect(await scanned(index)).toMatchObject({ missing: 0, unreadable: [], rows: { length: 12 } });
});

test('a group that is damaged after its facts were read is named, and the others are searched and written', async () => {
  await keepMadeRun(store, 'torn-later', { steps: 2, groups: 2, samples: 2 });
  const index = await EpisodeIndex.open(store, 'torn-later', { cache });
  await index.build();
  await writeFile(server.fileOf(rolloutKey('torn-later', MADE_STAGE, 1, 'group-0001')), '{}');
  const query = { ...readQuery({ text: ['e'] }), text: 'e' };
  const named = [expect.stringContaining('it was damaged or replaced')];
  const searched: string[] = [];
  const found = await foundWithText(store, index, query, { damaged: searched });
  expect(found.flatMap(({ groups }) => groups.flatMap(({ episodes }) => episodes))).toHaveLength(6);
  expect(searched).toEqual(named);

  const written: string[] = [];
  const lines: string[] = [];
  const all = await foundIn(index, readQuery({}));
  for await (const some of messageLines(store, index, all, { damaged: written })) lines.push(some);
  expect(lines.join('').trim().split('\n')).toHaveLength(6);
  expect(written).toEqual(named);
  const file = path.join(folder, 'torn-later.jsonl');
  expect(await writeMessages(file, store, index, all, { damaged: [] })).toBe(6);
  await expect(async () => {
    for await (const _ of messageLines(store, index, all));
  }).rejects.toThrow('it was damaged or replaced');
});

test('a run that was deleted and made anew under its name is another one', async () => {
  await keepMadeRun(store, 'again', { steps: 4, groups: 1, samples: 2 });
  await (await EpisodeIndex.open(store, 'again', { cache })).build();
  await store.remove((await store.list(runPrefix('again'))).map(({ key }) => key));
  await keepMadeRun(store, 'again', { steps: 4, groups: 1, samples: 3 }, { execution: 'another' });
  const index = await EpisodeIndex.open(store, 'again', { cache });
  expect(await scanned(index)).toMatchObject({ steps: 0, missing: 4 });
  await index.build();
  expect((await scanned(index)).rows).toHaveLength(12);
});

test('a search that nobody looks at ends, and begins anew when somebody does; one can be ended', async () => {
  const index = await EpisodeIndex.open(store, 'made', { cache });
  const query = { ...readQuery({ text: ['CALCULATOR'] }), text: 'CALCULATOR' };
  const unwatched = new FindJobs(store, { cache, unwatchedMs: 1 });
  const ended = await unwatched.search(index, query, 120_000);
  expect(ended.state).toBe('ended');
  expect(ended.hits.length).toBeLessThan(MOST_HITS);

  const jobs = new FindJobs(store, { cache });
  const begun = await jobs.search(index, query, 0);
  expect(await jobs.search(index, readAlike(query), 0)).toBe(begun);
  jobs.endSearch('made', query);
  const { state, hits, full } = await jobs.search(index, query, 120_000);
  expect(begun.state).toBe('ended');
  expect({ state, full, hits: hits.length }).toEqual({ state: 'done', full: true, hits: MOST_HITS });
});

test('a search that begins before facts are read finds what is there, and one of a longer run begins anew', async () => {
  await keepMadeRun(store, 'grows', { ...SIZE, steps: 2 });
  const fresh = new FactCache(path.join(folder, 'fresh'));
  const jobs = new FindJobs(store, { cache: fresh });
  const open = () => EpisodeIndex.open(store, 'grows', { cache: fresh });
  const query = { ...readQuery({}), text: 'a' };
  const first = await jobs.search(await open(), query, 120_000);
  expect(first).toMatchObject({ state: 'done', at: { total: 2 * SIZE.groups } });
  expect(first.hits.length).toBeGreaterThan(0);
  expect(await jobs.search(await open(), query, 120_000)).toBe(first);
  await keepMadeRun(store, 'grows', { ...SIZE, steps: 3 });
  const second = await jobs.search(await open(), query, 120_000);
  expect(second).toMatchObject({ state: 'done', at: { total: 3 * SIZE.groups } });
});

/** However it is sorted it is the same search. */
const readAlike = <Q extends object>(query: Q): Q => ({ ...query, sort: 'reward' });
