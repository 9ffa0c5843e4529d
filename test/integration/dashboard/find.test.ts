import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parquetReadObjects } from 'hyparquet';
import { unpackTar } from 'modern-tar';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepMadeRun } from '../../support/keep-made-run.ts';
import { MADE_STAGE, madeGroup, madeSpec } from '../../support/made-run.ts';
import { episodeFactsOf } from '../../../core/episode/facts.ts';
import { openDashboard } from '../../../dashboard/open.ts';
import type { Dashboard } from '../../../dashboard/server.ts';
import type { ObjectStore } from '../../../store/objects/object-store.ts';
import { HOSTILE, keepHostileRun } from '../../support/hostile-run.ts';
import { until } from '../../support/run-client.ts';
import { readSettings } from '../../../workers/settings.ts';
import type { WorkerSettings } from '../../../workers/settings.ts';
import { TestServer } from '../../support/store/server.ts';

// Find, of runs that Temporal has forgotten.

const SIZE = { steps: 24, groups: 3, samples: 8 };
const { reward } = madeSpec('made');
let folder: string;
let server: TestServer;
let store: ObjectStore;
let settings: WorkerSettings;
let dashboard: Dashboard;
let cacheBefore: string | undefined;

const all = Array.from({ length: SIZE.steps }, (_, i) =>
  [0, 1, 2].flatMap((group) =>
    episodeFactsOf(madeGroup(SIZE, i + 1, group), reward).map((facts) => ({ step: i + 1, group, ...facts })),
  ),
).flat();

beforeAll(async () => {
  folder = await mkdtemp(path.join(tmpdir(), 'gradus-find-page-'));
  server = await TestServer.start();
  store = await server.connect();
  await keepMadeRun(store, 'made', SIZE);
  await keepHostileRun(store, 'evil');
  cacheBefore = process.env['GRADUS_CACHE'];
  process.env['GRADUS_CACHE'] = path.join(folder, 'cache');
  settings = readSettings({ ...server.environment(), TEMPORAL_ADDRESS: '127.0.0.1:1' });
  dashboard = await openDashboard(settings, { actions: true, temporalUi: null, port: 0 });
}, 600_000);

afterAll(async () => {
  await dashboard?.close();
  store?.close();
  await server?.remove();
  if (cacheBefore === undefined) delete process.env['GRADUS_CACHE'];
  else process.env['GRADUS_CACHE'] = cacheBefore;
  await rm(folder, { recursive: true, force: true });
});

async function asked(of: string): Promise<{ status: number; body: string }> {
  const response = await fetch(new URL(of, dashboard.url));
  return { status: response.status, body: await response.text() };
}

/** The page once it is as it should be. */
const shown = (of: string, isSo: (body: string) => boolean): Promise<string> =>
  until(
    async () => {
      const { body } = await asked(of);
      return isSo(body) ? body : undefined;
    },
    300_000,
    () => `${of} is never as it should be`,
  );

/** The page once everything is read that it is about. */
const settled = (of: string): Promise<string> => shown(of, (body) => !body.includes('Look again'));

const episodesIn = (body: string): string[] =>
  [...body.matchAll(/<th scope="row"><a href="\/runs\/made\/episodes\/([^"]+)"/g)].map(([, at]) => at!);

test('runs are chosen, facts are read, and what matches is shown page by page', async () => {
  expect((await asked('/find')).body).toContain('href="/find?run=made"');
  const words = 'run=made&stage=levels-1-3&outcome=scored&success=no&sort=tokens&order=descending';
  const body = await settled(`/find?${words}`);
  const wanted = all
    .filter(({ outcome, success }) => outcome === 'scored' && success === false)
    .toSorted((a, b) => b.sampledTokens - a.sampledTokens)
    .map(({ step, group, episode }) => `${MADE_STAGE}/${step}/${group}/${episode}`);
  expect(wanted.length).toBeGreaterThan(100);
  expect(body).toContain(`${wanted.length} of ${all.length + 64} episodes`);
  expect(episodesIn(body)).toEqual(wanted.slice(0, 50));
  // What was asked stays in the form, and leads on.
  expect(body).toMatch(/name="outcome" value="scored" checked/);
  const [, next] = /rel="next" href="([^"]+)"/.exec(body)!;
  expect(episodesIn((await asked(next!.replaceAll('&amp;', '&'))).body)).toEqual(wanted.slice(50, 100));
});

test('a text is looked for while the page is looked at again, and only its own form ends the search', async () => {
  const words = `run=made&stage=${MADE_STAGE}&text=There+IS+no+tool`;
  const body = await settled(`/find?${words}`);
  const wanted = all.filter(({ errors }) => errors['unknown-tool'] !== undefined);
  expect(body).toContain(`${wanted.length} episodes have`);
  expect(body).toMatch(/observation 1: error: <mark>there is no tool<\/mark>/);

  const refused = await fetch(new URL('/find/end-search', dashboard.url), {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', origin: new URL(dashboard.url).origin },
    body: new URLSearchParams({ token: 'of another start', asked: words }).toString(),
  });
  expect(refused.status).toBe(403);
});

test('what was found comes as files', async () => {
  const words = 'run=made&stage=levels-1-3&error=malformed-call';
  const wanted = all.filter(({ errors }) => errors['malformed-call'] !== undefined);
  const file = async (kind: string): Promise<Response> => {
    const response = await fetch(new URL(`/find/episodes.${kind}?${words}`, dashboard.url));
    expect(response.headers.get('content-disposition')).toBe(`attachment; filename="made-episodes.${kind}"`);
    return response;
  };
  const lines = (await (await file('jsonl')).text()).trim().split('\n');
  expect(lines.map((line) => (JSON.parse(line) as { place: string }).place)).toEqual(
    wanted.map(({ step, group, episode }) => `made/${MADE_STAGE}/${step}/${group}/${episode}`),
  );
  const rows = await parquetReadObjects({ file: await (await file('parquet')).arrayBuffer() });
  expect(rows.map(({ step, group, sample }) => [step, group, sample])).toEqual(
    wanted.map(({ step, group, sample }) => [step, group, sample]),
  );
  const entries = await unpackTar(await (await file('atif.tar')).arrayBuffer());
  expect(entries).toHaveLength(wanted.length);
  expect(JSON.parse(new TextDecoder().decode(entries[0]!.data))).toMatchObject({
    schema_version: 'ATIF-v1.7',
  });
}, 600_000);

test('what models wrote is text; what cannot be asked is refused in words', async () => {
  const body = await settled('/find?run=evil');
  expect(body).toContain('alert(&quot;script&quot;)');
  expect(body).not.toMatch(/<script>|<img src=x|<svg onload/);
  // oxlint-disable-next-line no-control-regex -- it is what is looked for
  expect(body).not.toMatch(/[\u0000-\u0008\u000b-\u001f\u202a-\u202e\u2066-\u2069]/);
  const echoed = await settled(`/find?run=evil&text=${encodeURIComponent(HOSTILE.slice(0, 40))}`);
  expect(echoed).not.toContain('<script>alert');
  expect(echoed).toContain('<mark>');

  for (const [words, status, says] of [
    ['run=made&outcome=won', 400, 'outcome cannot be looked for'],
    ['run=made&colour=red', 400, 'colour'],
    ['run=made&page=0', 400, 'page is a whole number from 1'],
    ['run=mad', 404, 'did you mean'],
    ['run=..', 400, 'cannot be part of an object key'],
  ] as const) {
    const refused = await asked(`/find?${words}`);
    expect([words, refused.status]).toEqual([words, status]);
    expect(refused.body).toContain(says);
  }
});

test('while the store is away what is known is shown, and as of when', async () => {
  const before = await settled('/find?run=made&level=3');
  await server.kill();
  const away = await shown('/find?run=made&level=3', (body) => body.includes('The store does not answer'));
  expect(episodesIn(away)).toEqual(episodesIn(before));
  expect(away).toMatch(/as of <time/);
  await server.restart();
  await shown('/find?run=made&level=3', (body) => !body.includes('The store does not answer'));
}, 600_000);
